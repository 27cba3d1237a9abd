"""What is counted again, and what is not."""

from __future__ import annotations

from pathlib import Path

from refdesk.core.clock import FixedClock
from refdesk.model import Collection, State
from tests.stores.conftest import open_sqlite
from tests.stores.samples import MODEL, NOTES, NOW, embed, make_document, passage, put
from tests.stores.sqlite.steps import counting_steps


async def test_a_collection_is_counted_again_only_once_it_was_written_to(tmp_path: Path) -> None:
    clock, small = FixedClock(NOW), Collection("zenith", "notes")
    with counting_steps() as steps:
        async with open_sqlite(tmp_path, clock) as store, open_sqlite(tmp_path, clock) as other:
            await put(store, *(make_document(f"{number:04}") for number in range(1000)))
            await put(store, document := make_document("a", collection=small))
            first = await store.get_statistics()
            steps.clear()
            assert await store.get_statistics() == first
            await embed(other, document, passage((1, 0, 0, 0)))
            assert [each.embedded for each in await store.get_statistics()] == [{}, {MODEL.name: 1}]
            assert sum(steps) < 2000
            await put(other, make_document("b"))
            assert (await store.get_statistics())[0].documents[State.CURRENT] == 1001
            assert [each.collection for each in first] == [NOTES, small]
