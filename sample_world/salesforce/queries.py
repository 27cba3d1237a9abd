"""Answers to SOQL statements, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from sample_world.salesforce.articles import Record
from sample_world.salesforce.categories import compile_categories
from sample_world.salesforce.errors import ApiError, StatementError, point_at
from sample_world.salesforce.evaluation import Binding, Scope, project
from sample_world.salesforce.ids import make_id
from sample_world.salesforce.org import Org
from sample_world.salesforce.soql import Soql, parse_soql
from sample_world.salesforce.statements import get_conjuncts

SMALLEST_PAGE, LARGEST_PAGE = 200, 2000
MOST_CURSORS = 10


class Queries:
    """The queries of one org, with the cursors of those that have more pages; the ten newest are kept."""

    def __init__(self, org: Org) -> None:
        self._org = org
        self._cursors: dict[str, list[Record]] = {}
        self._made = 0

    def run(self, statement: str, version: str, page_size: int) -> Record:
        """Return the first page of the answer.

        Raises:
            ApiError: the statement is wrong.
        """
        try:
            rows, total = self._select(parse_soql(statement), version)
        except StatementError as error:
            raise ApiError(400, error.code, point_at(statement, error.position, error.message)) from error
        if len(rows) <= page_size:
            return {"totalSize": total, "done": True, "records": rows}
        self._made += 1
        cursor = make_id("01g", self._made)
        self._cursors[cursor] = rows
        for old in list(self._cursors)[:-MOST_CURSORS]:
            del self._cursors[old]
        return self._page(cursor, 0, version, page_size)

    def more(self, locator: str, version: str, page_size: int) -> Record:
        """Return the page that a `nextRecordsUrl` names.

        Raises:
            ApiError: there is no such cursor, or no longer.
        """
        cursor, _, start = locator.partition("-")
        rows = self._cursors.get(cursor)
        if rows is None or not start.isdigit() or int(start) > len(rows):
            raise ApiError(400, "INVALID_QUERY_LOCATOR", "invalid query locator")
        return self._page(cursor, int(start), version, page_size)

    def _page(self, cursor: str, start: int, version: str, page_size: int) -> Record:
        rows = self._cursors[cursor]
        end = start + page_size
        page: Record = {"totalSize": len(rows), "done": end >= len(rows), "records": rows[start:end]}
        if end < len(rows):
            page["nextRecordsUrl"] = f"/services/data/v{version}/query/{cursor}-{end}"
        return page

    def _select(self, query: Soql, version: str) -> tuple[list[Record], int]:
        scope = self._org.get_scope(query.object, float(version), query.alias)
        bindings = _bind(query, scope)
        records = scope.sort(self._org.select(scope, query.where, float(version)), query.order)
        if query.categories:
            _check_categories(query, scope)
            records = list(filter(compile_categories(query.categories, "MALFORMED_QUERY"), records))
        records = records[query.offset :]
        records = records if query.limit is None else records[: query.limit]
        if "VIEWSTAT" in query.updates:
            self._org.count_views(records)
        if query.selected[0].kind == "count":
            return [], len(records)
        rows = [project(scope, bindings, record, version) for record in records]
        return rows, len(rows)


def _bind(query: Soql, scope: Scope) -> list[tuple[str | None, Binding]]:
    bindings: list[tuple[str | None, Binding]] = []
    for selected in query.selected:
        if selected.kind in ("field", "label"):
            bindings.append((selected.alias, scope.resolve(selected.path)))
        for field in scope.object.fields:
            custom = {"all": field.custom, "custom": True, "standard": False}.get(selected.kind)
            if custom is not None and field.custom == custom:
                bindings.append((None, Binding(field, (field.name,))))
    _check_duplicates(query, bindings)
    return bindings


def _check_duplicates(query: Soql, bindings: Sequence[tuple[str | None, Binding]]) -> None:
    names = [(alias,) if alias else binding.names for alias, binding in bindings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        text = f"duplicate field selected: {'.'.join(twice)}"
        raise StatementError("MALFORMED_QUERY", text, query.selected[0].path.position)


def _check_categories(query: Soql, scope: Scope) -> None:
    allowed = {"id", "knowledgearticleid", "publishstatus"}
    if scope.object.article is None or not any(
        comparison.path.names[-1].lower() in allowed for comparison in get_conjuncts(query.where)
    ):
        text = "WITH DATA CATEGORY needs an article object and a WHERE clause with PublishStatus or ids"
        raise StatementError("MALFORMED_QUERY", text, query.categories[0].position)
