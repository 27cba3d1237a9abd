"""Answers to searches: SOSL statements, and the parameters that stand for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sample_world.salesforce.articles import Record
from sample_world.salesforce.categories import compile_categories
from sample_world.salesforce.errors import ApiError, StatementError, point_at
from sample_world.salesforce.evaluation import Scope, project
from sample_world.salesforce.org import Org
from sample_world.salesforce.ranking import Index, get_word_pattern, strip_tags
from sample_world.salesforce.search_text import NOTHING, SearchExpression, parse_forgiving
from sample_world.salesforce.sosl import MOST_ROWS, Returned, Sosl, parse_sosl
from sample_world.salesforce.statements import CategoryFilter, Path, Reader, SortKey, get_conjuncts

_CODE = "MALFORMED_SEARCH"
_Parsed = TypeVar("_Parsed")
_Limit = Annotated[int, Field(ge=1, le=MOST_ROWS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OrderBy(_Strict):
    """One key of the order of an object's results."""

    field: str
    order: Literal["asc", "desc", "ASC", "DESC"] = "asc"
    nulls: Literal["first", "last", "FIRST", "LAST"] = "first"


class SearchedObject(_Strict):
    """One object of a parameterized search; what is not said is taken from the search."""

    name: str
    fields: tuple[str, ...] | None = None
    where: str | None = None
    limit: _Limit | None = None
    orderBy: tuple[OrderBy, ...] = ()


class SearchedCategory(_Strict):
    """The categories of one group that articles must be filed in."""

    groupName: str
    operator: Literal["at", "above", "below", "above_or_below", "AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW"]
    categories: Annotated[tuple[str, ...], Field(min_length=1)]


class ParameterizedSearch(_Strict):
    """The body of a parameterized search. Groups of fields and spelling make no difference to articles here."""

    q: str
    fields: tuple[str, ...] = ()
    sobjects: tuple[SearchedObject, ...] = ()
    dataCategories: tuple[SearchedCategory, ...] = ()
    defaultLimit: _Limit | None = None
    overallLimit: _Limit = MOST_ROWS
    offset: Annotated[int, Field(ge=0, le=MOST_ROWS)] = 0
    snippet: Annotated[int, Field(ge=50, le=1000)] | None = None
    metadata: Literal["LABELS"] | None = None
    spellCorrection: bool = True
    updateTracking: bool = False
    updateViewStat: bool = False


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of one org."""

    org: Org
    _index: Index = field(default_factory=Index)

    def run_sosl(self, statement: str, version: str) -> Record | list[Record]:
        """Return the answer to a SOSL statement; before version 37 a bare list.

        Raises:
            ApiError: the statement is wrong.
        """
        try:
            answer = self._search(parse_sosl(statement), version)
        except StatementError as error:
            code = _CODE if error.code == "MALFORMED_QUERY" else error.code
            text = point_at(statement, error.position, error.message, first_column=0)
            raise ApiError(400, code, text) from error
        return cast("list[Record]", answer["searchRecords"]) if float(version) < 37 else answer

    def run_parameters(self, search: ParameterizedSearch, version: str) -> Record:
        """Return the answer to a parameterized search.

        Raises:
            ApiError: a field, an object, a category or a condition is wrong, or the text is too short.
        """
        try:
            return self._search(_to_sosl(search), version)
        except StatementError as error:
            code = _CODE if error.code == "MALFORMED_QUERY" else error.code
            raise ApiError(400, code, error.message) from error

    def _search(self, search: Sosl, version: str) -> Record:
        if search.scopes:
            text = f"This organization has nothing that WITH {search.scopes[0]} could name"
            raise StatementError(_CODE, text, 0)
        rows: list[Record] = []
        labels: list[Record] = []
        for returned in search.returning:
            scope = self.org.get_scope(returned.object, float(version))
            found = self._find(search, returned, scope, version)
            rows += [_to_row(search, returned, scope, record, version) for record in found]
            labels.append(_describe_labels(returned, scope))
            if "VIEWSTAT" in search.updates:
                self.org.count_views(found)
        answer: Record = {"searchRecords": rows[: search.limit]}
        return {**answer, "metadata": {"entityMetadata": labels}} if search.metadata else answer

    def _find(self, search: Sosl, returned: Returned, scope: Scope, version: str) -> list[Record]:
        records = self.org.select(scope, returned.where, float(version))
        if search.categories or search.updates:
            _check_article_clauses(search, returned, scope)
            records = list(filter(compile_categories(search.categories, _CODE), records))
        if search.expression == NOTHING:
            return []
        searched = [each for each in scope.object.fields if each.searchable]
        found = scope.sort(self._index.rank(records, searched, search.expression), returned.order)
        end = None if returned.limit is None else returned.offset + returned.limit
        return found[returned.offset : end]


def parse_parameters(value: object) -> ParameterizedSearch:
    """Return the search that a decoded body asks for.

    Raises:
        ApiError: something in it is unknown, missing or out of its range.
    """
    try:
        return ParameterizedSearch.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise ApiError(400, "JSON_PARSER_ERROR", f"{first['msg']} at [{place}]") from error


def read_url_parameters(pairs: Sequence[tuple[str, str]]) -> Record:
    """Return the body that stands for the URL of a parameterized search: `sobject`, `Account.fields` and the like."""
    body: Record = {}
    objects: dict[str, Record] = {value: {"name": value} for name, value in pairs if name == "sobject"}
    for name, value in pairs:
        owner, _, key = name.rpartition(".")
        if name == "sobject":
            continue
        if name == "dataCategory":
            body["dataCategories"] = [_read_category(value)]
        elif owner in objects:
            objects[owner][key] = value.split(",") if key == "fields" else value
        else:
            body[name] = value.split(",") if name == "fields" else value
    return {**body, "sobjects": list(objects.values())} if objects else body


def _read_category(text: str) -> Record:
    match = re.fullmatch(r"\s*(\w+)\s+(\w+)\s+(\w+)\s*", text)
    if match is None:
        raise ApiError(400, _CODE, f"dataCategory is not understood: {text}")
    return {"groupName": match[1], "operator": match[2].lower(), "categories": [match[3]]}


def _to_sosl(search: ParameterizedSearch) -> Sosl:
    if (search.defaultLimit or search.fields) and not search.sobjects:
        raise StatementError(_CODE, "defaultLimit and fields need at least one sobject", 0)
    updates = {"TRACKING": search.updateTracking, "VIEWSTAT": search.updateViewStat}
    return Sosl(
        parse_forgiving(search.q),
        returning=tuple(_to_returned(object, search) for object in search.sobjects),
        categories=tuple(
            CategoryFilter(category.groupName, category.operator.upper(), category.categories, 0)
            for category in search.dataCategories
        ),
        snippet=search.snippet,
        metadata=search.metadata is not None,
        limit=search.overallLimit,
        updates=tuple(word for word, wanted in updates.items() if wanted),
    )


def _to_returned(object: SearchedObject, search: ParameterizedSearch) -> Returned:
    fields = search.fields if object.fields is None else object.fields
    return Returned(
        Path((object.name,), 0),
        tuple(_parse_whole(field, Reader.read_path) for field in fields),
        where=_parse_whole(object.where, Reader.read_condition) if object.where else None,
        order=tuple(_to_sort_key(key) for key in object.orderBy),
        limit=object.limit or search.defaultLimit,
        offset=search.offset,
    )


def _to_sort_key(key: OrderBy) -> SortKey:
    path = _parse_whole(key.field, Reader.read_path)
    return SortKey(path, key.order.lower() == "desc", key.nulls.lower() == "last")


def _parse_whole(text: str, read: Callable[[Reader], _Parsed]) -> _Parsed:
    reader = Reader(text, code=_CODE)
    parsed = read(reader)
    reader.require_end()
    return parsed


def _to_row(search: Sosl, returned: Returned, scope: Scope, record: Record, version: str) -> Record:
    paths = returned.fields or (Path(("Id",), returned.object.position),)
    row = project(scope, [(None, scope.resolve(path)) for path in paths], record, version)
    if search.snippet is None:
        return row
    return {**row, "snippet": _build_snippet(search.expression, record, scope, search.snippet)}


def _build_snippet(expression: SearchExpression, record: Record, scope: Scope, length: int) -> Record:
    pattern = get_word_pattern(expression)
    texts = [str(record[field.name] or "") for field in scope.object.fields if field.type == "textarea"]
    plain = re.sub(r"\s+", " ", strip_tags(" ".join(texts))).strip()
    found = pattern.search(plain) if pattern else None
    start = max(0, found.start() - length // 4) if found else 0
    cut = plain[start : start + length]
    title = str(record.get("Title", ""))
    if pattern is None:
        return {"text": cut, "wholeFields": []}
    marked = pattern.sub(r"<mark>\g<0></mark>", title)
    whole = [{"name": "Title", "value": marked}] if marked != title else []
    return {"text": pattern.sub(r"<mark>\g<0></mark>", cut), "wholeFields": whole}


def _describe_labels(returned: Returned, scope: Scope) -> Record:
    fields = [scope.resolve(path) for path in returned.fields]
    labels = [{"name": binding.names[-1], "label": binding.field.label} for binding in fields]
    return {"entityName": scope.object.name, "fieldMetadata": labels}


def _check_article_clauses(search: Sosl, returned: Returned, scope: Scope) -> None:
    names = {comparison.path.names[-1].lower() for comparison in get_conjuncts(returned.where)}
    if scope.object.article is None or "publishstatus" not in names:
        text = "WITH DATA CATEGORY and UPDATE need an article object and a WHERE clause with PublishStatus"
        raise StatementError(_CODE, text, returned.object.position)
    if search.updates and "language" not in names:
        raise StatementError(_CODE, "UPDATE needs a WHERE clause with one Language", returned.object.position)
