"""Maps Salesforce's rows to the contract's articles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from refdesk.toolsets.salesforce_knowledge.failures import UnreachableError
from refdesk.toolsets.salesforce_knowledge.models import Article, ArticleSummary
from refdesk.toolsets.salesforce_knowledge.plain_text import tidy, to_plain_text

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.objects import BodyField, ObjectDescription

Row = Mapping[str, object]

LIGHTNING_NAME = "Knowledge__kav"
"""What the one object of a Lightning org's articles is called unless an administrator renamed it."""

STANDARD_FIELDS = (
    *("Id", "KnowledgeArticleId", "Title", "Summary", "UrlName", "LastPublishedDate"),
    *("PublishStatus", "Language", "ArticleType"),
)
"""The fields that are requested, as far as an object has them."""

BODY_CHARACTERS = 200_000
"""Most characters of an article's body that are shown; six full fields of a real org have a tenth of that."""


def read_found(data: object) -> list[Row]:
    """Return the rows of a search: `{"searchRecords": […]}`, or the bare list that old API versions give.

    Raises:
        UnreachableError: It is neither.
    """
    return _read_rows(cast("object", data) if isinstance(data, list) else get_field(data, "searchRecords"))


def read_queried(data: object) -> list[Row]:
    """Return the rows of a query's first page; errors as `read_found`."""
    return _read_rows(get_field(data, "records"))


def show_summaries(rows: Sequence[Row], limit: int) -> list[ArticleSummary]:
    """Return what a search found, in its order: published, with id and title, each once, at most `limit`."""
    shown: dict[str, ArticleSummary] = {}
    for row in rows:
        id, title = get_text(row, "Id"), get_text(row, "Title")
        if id and title and is_published(row):
            shown.setdefault(id, ArticleSummary.model_validate({"id": id, "title": title, **_read_standard(row, None)}))
    return list(shown.values())[:limit]


def show_article(row: Row, description: ObjectDescription, fields: Sequence[BodyField]) -> Article:
    """Return the whole article.

    Raises:
        UnreachableError: The row lacks its id.
    """
    id = get_text(row, "Id")
    if id is None:
        raise UnreachableError("an article it gave has no id", is_answered=True)
    title = get_text(row, "Title") or get_text(row, "UrlName") or id
    body = join_body(row, fields)
    return Article.model_validate({"id": id, "title": title, "body": body, **_read_standard(row, description)})


def join_body(row: Row, fields: Sequence[BodyField]) -> str:
    """Return the fields' text in their order, each under its label; a field that is the only one needs none.

    A body beyond `BODY_CHARACTERS` is cut off and ends in `…`.
    """
    texts = [(field.label, _to_text(row, field)) for field in fields]
    parts = [text if len(fields) == 1 else f"{label}:\n{text}" for label, text in texts if text]
    body = "\n\n".join(parts)
    return body if len(body) <= BODY_CHARACTERS else body[:BODY_CHARACTERS].rstrip() + "…"


def is_published(row: Row) -> bool:
    """Return whether a row is of a published version; one that does not say was asked for as such."""
    return row.get("PublishStatus", "Online") == "Online"


def get_text(row: Row, name: str) -> str | None:
    """Return a field's text, tidied; `None` if it has none."""
    value = row.get(name)
    return (tidy(value).strip() or None) if isinstance(value, str) else None


def _to_text(row: Row, field: BodyField) -> str:
    value = row.get(field.name)
    if not isinstance(value, str):
        return ""
    return to_plain_text(value) if field.is_html else tidy(value)


def _read_standard(row: Row, description: ObjectDescription | None) -> dict[str, object]:
    return {
        "summary": get_text(row, "Summary"),
        "url_name": get_text(row, "UrlName"),
        "last_published": _read_instant(row.get("LastPublishedDate")),
        "article_type": get_text(row, "ArticleType") or _get_type(row, description),
    }


def _get_type(row: Row, description: ObjectDescription | None) -> str | None:
    """Return the record type's name, as Lightning has it, or the object's, as Classic has it."""
    record_type = row.get("RecordType")
    if isinstance(record_type, dict):
        return get_text(cast("Row", record_type), "Name")
    is_own_type = description is not None and not description.has_record_types and description.name != LIGHTNING_NAME
    return description.name if description is not None and is_own_type else None


def _read_instant(value: object) -> datetime | None:
    """Return an instant that Salesforce writes as `2024-12-01T10:00:00.000+0000`; `None` if it is not one."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        return instant and (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def get_field(data: object, name: str) -> object:
    """Return what an object of an answer has under a name; `None` where it has nothing, or is no object."""
    return cast("Mapping[str, object]", data).get(name) if isinstance(data, dict) else None


def get_items(data: object) -> list[object]:
    """Return the items of a list in an answer; none where it is no list."""
    return cast("list[object]", data) if isinstance(data, list) else []


def _read_rows(value: object) -> list[Row]:
    if not isinstance(value, list):
        raise UnreachableError("the answer holds no list of records", is_answered=True)
    return [cast("Row", row) for row in cast("list[object]", value) if isinstance(row, dict)]
