from __future__ import annotations

import csv
import io
import json

import pytest

from refdesk.core.context import Context
from refdesk.toolsets.azure_updates.export import Format, list_matching, render
from refdesk.toolsets.azure_updates.models import SearchInput, Update
from tests.toolsets.azure_updates.samples import Desk, make_context, make_record


async def collect(context: Context, **arguments: object) -> list[Update]:
    return [update async for update in list_matching(context, SearchInput.model_validate(arguments))]


async def test_all_pages_are_exported_whatever_limit_and_offset_say(library: Desk) -> None:
    updates = await collect(library.context, limit=1, offset=200, sortBy="created:asc")
    assert len({update.id for update in updates}) == 306
    created = [update.created for update in updates]
    assert created == sorted(created)


async def test_an_export_is_filtered_like_a_search(library: Desk) -> None:
    updates = await collect(library.context, filters={"tags": ["Retirements"]})
    assert len(updates) == (await library.ask(filters={"tags": ["Retirements"]}))["total"]


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_json_is_one_array_of_what_the_tool_answers(count: int) -> None:
    context = await make_context([make_record(str(number), status=None) for number in range(count)])
    text = "".join(render(await collect(context), "json"))
    updates = json.loads(text)
    assert len(updates) == count
    assert all(update["status"] is None and update["productCategories"] == ["Compute"] for update in updates)


async def test_csv_has_a_header_and_survives_commas_quotes_and_lines() -> None:
    record = make_record(title='A, "B"', description="<p>one</p><p>two</p>", tags=["x", "y"], status=None)
    text = "".join(render(await collect(await make_context([record])), "csv"))
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["title"], row["description"], row["tags"], row["status"]) == ('A, "B"', "one\n\ntwo", "x; y", "")
    assert row["availabilities"] == "General Availability 2026-03"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝"])
async def test_csv_never_holds_a_formula(start: str) -> None:
    record = make_record(title=f"{start}HYPERLINK(1)", tags=[f"{start}1"], status=f"{start}2")
    text = "".join(render(await collect(await make_context([record])), "csv"))
    [row] = csv.reader(io.StringIO(text.split("\r\n", 1)[1]))
    assert not any(cell.startswith(start) for cell in row)
    assert f"'{start}HYPERLINK(1)" in row


async def test_markdown_has_a_heading_and_the_facts_of_each_update() -> None:
    records = [make_record("1"), make_record("2", description=None, status=None, tags=[])]
    text = "".join(render(await collect(await make_context(records)), "md"))
    assert text.count("\n## ") + text.startswith("## ") == 2
    assert "- Status: Launched\n" in text
    assert text.count("- Tags:") == 1
    assert "It is here." in text


@pytest.mark.parametrize("format", ["csv", "md"])
def test_an_empty_export_is_well_formed(format: Format) -> None:
    text = "".join(render([], format))
    assert text == ("" if format == "md" else text)
    assert len(text.splitlines()) == (1 if format == "csv" else 0)
