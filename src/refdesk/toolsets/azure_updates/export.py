"""Exports updates as JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never, cast

import anyio.to_thread

from refdesk.kit.files import write_text
from refdesk.kit.walks import FARTHEST
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.results import get_description
from refdesk.toolsets.azure_updates.search import search_updates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from refdesk.core.context import Context
    from refdesk.toolsets.azure_updates.models import SearchInput, Update

Format: TypeAlias = Literal["json", "csv", "md"]

PAGE = 100
SEPARATOR = "; "
COLUMNS = (
    *("id", "title", "status", "tags", "productCategories", "products", "availabilities", "created", "modified"),
    *("url", "description"),
)
# A spreadsheet runs a cell that begins with one of these as a formula (OWASP, "CSV Injection").
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


async def list_matching(context: Context, request: SearchInput) -> AsyncIterator[Update]:
    """Yield every update that matches, whole, in order; `limit` and `offset` of the request do not count.

    Which they are is read once, so that a sync meanwhile shows none twice and leaves none out.
    """
    everything = {"limit": FARTHEST, "offset": 0, "include_description": False}
    found = (await search_updates(context, request.model_copy(update=everything))).results
    if not request.include_description or request.detail == "concise":
        for update in found:
            yield update
        return
    store = context.knowledge_base.store
    for start in range(0, len(found), PAGE):
        page = found[start : start + PAGE]
        documents = await store.get_documents(COLLECTION, [update.id for update in page])
        for update, document in zip(page, documents, strict=True):
            text = get_description(document) if document is not None else ""
            yield update.model_copy(update={"description": text or None})


async def export_updates(context: Context, request: SearchInput, format: Format, target: Path | TextIO) -> int:
    """Write every update that matches, as `render` does, and return how many there are.

    Raises:
        ConfigurationError: The target cannot be written; whatever was there is unchanged.
    """
    found = [update async for update in list_matching(context, request)]
    await anyio.to_thread.run_sync(write_text, target, render(found, format))
    return len(found)


def render(updates: Iterable[Update], format: Format) -> Iterator[str]:
    """Yield the updates as one text in pieces: a JSON array, CSV with a header (RFC 4180), or Markdown by headings.

    In CSV, a cell that a spreadsheet would run as a formula gets a leading apostrophe, and lists are joined by `; `.
    """
    match format:
        case "json":
            return _render_json(updates)
        case "csv":
            return _render_csv(updates)
        case "md":
            return _render_markdown(updates)
        case _:
            assert_never(format)


def _render_json(updates: Iterable[Update]) -> Iterator[str]:
    separator = "["
    for update in updates:
        yield separator + "\n" + json.dumps(update.model_dump(mode="json"), ensure_ascii=False)
        separator = ","
    yield "[]\n" if separator == "[" else "\n]\n"


def _render_csv(updates: Iterable[Update]) -> Iterator[str]:
    yield _write_row(COLUMNS)
    for update in updates:
        values = {**update.model_dump(mode="json"), "availabilities": _list_availabilities(update)}
        yield _write_row([_to_cell(values.get(column)) for column in COLUMNS])


def _write_row(cells: Sequence[str]) -> str:
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue()


def _to_cell(value: object) -> str:
    if value is None:
        return ""
    text = SEPARATOR.join(cast("list[str]", value)) if isinstance(value, list) else str(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _render_markdown(updates: Iterable[Update]) -> Iterator[str]:
    for update in updates:
        facts = {
            "Status": update.status or "",
            "Availability": SEPARATOR.join(_list_availabilities(update)),
            "Products": SEPARATOR.join(update.products),
            "Categories": SEPARATOR.join(update.product_categories),
            "Tags": SEPARATOR.join(update.tags),
            "Modified": update.modified,
            "Page": update.url,
        }
        lines = [f"- {name}: {value}" for name, value in facts.items() if value]
        body = f"\n\n{update.description}" if update.description else ""
        yield f"## {update.title}\n\n" + "\n".join(lines) + f"{body}\n\n"


def _list_availabilities(update: Update) -> list[str]:
    return [f"{each.ring} {each.date[:7]}" if each.date else each.ring for each in update.availabilities]
