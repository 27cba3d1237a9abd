from __future__ import annotations

from pathlib import Path

import pytest

from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import RandomCollection, to_row


@pytest.mark.parametrize("seed", range(6))
async def test_a_changing_index_finds_what_the_reference_engine_finds(seed: int, tmp_path: Path) -> None:
    world = RandomCollection(seed, CollectionIndex(compact_above=10))
    for _ in range(30):
        await world.change()
        if world.random.random() < 0.3:
            world.freeze(tmp_path)
        for _ in range(6):
            request = world.make_request()
            found, expected = await world.find_both(request)
            assert found == expected, request


async def test_an_index_made_at_once_finds_what_one_made_step_by_step_finds() -> None:
    world = RandomCollection(1, CollectionIndex())
    for _ in range(40):
        await world.change()
    fresh = CollectionIndex()
    fresh.apply([to_row(document) for document in world.documents.values()])
    for request in (world.make_request() for _ in range(100)):
        if request.vector is None:
            assert fresh.find(request) == world.index.find(request), request
