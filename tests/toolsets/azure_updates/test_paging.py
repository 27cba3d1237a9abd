"""Updates listed page by page, while syncs change them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from refdesk.core.background.change_log import add_changes
from refdesk.core.background.sync_log import Change
from refdesk.core.clock import FixedClock
from refdesk.errors import InvalidInputError
from refdesk.toolsets.azure_updates.records import to_document
from tests.toolsets.azure_updates.samples import ask, get_ids, make_context, make_record


async def test_a_sync_between_two_pages_shows_nothing_twice_and_leaves_nothing_out() -> None:
    records = [make_record(str(number), modified=f"2026-02-{number:02}T15:00:00Z") for number in range(10, 19)]
    context = await make_context(records)
    base = context.knowledge_base
    page = await ask(context, limit=2)
    shown = get_ids(page)
    assert isinstance(base.clock, FixedClock)
    base.clock.advance(timedelta(minutes=1))
    changed = {"10": "2026-03-01T15:00:00Z", "12": "2026-02-17T16:00:00Z", "18": "2026-03-02T15:00:00Z"}
    documents = [
        replace(to_document(make_record(id, modified=modified)), version=2) for id, modified in changed.items()
    ]
    async with base.store.transaction() as transaction:
        await transaction.put_documents([*documents, to_document(make_record("30"))])
        changes = [*(Change(id, "changed", 2) for id in changed), Change("30", "added", 1)]
        await add_changes(transaction, "azure-updates", base.clock.now(), changes)
    while "nextCursor" in page:
        page = await ask(context, limit=2, cursor=page["nextCursor"])
        shown += get_ids(page)
    assert [id for id in shown if id != "30"] == [str(number) for number in range(18, 9, -1)]


async def test_a_cursor_goes_on_browsing_alone() -> None:
    context = await make_context([make_record(str(number)) for number in range(3)])
    cursor = (await ask(context, limit=1))["nextCursor"]
    for other in ({"query": "thing"}, {"sortBy": "title:asc"}):
        with pytest.raises(InvalidInputError, match="leave out `query` and `sortBy`"):
            await ask(context, cursor=cursor, **other)
    assert "nextCursor" not in await ask(context, limit=1, query="thing")
    assert "The list ends before this page: it has 3 updates" in str((await ask(context, offset=7))["notes"])
