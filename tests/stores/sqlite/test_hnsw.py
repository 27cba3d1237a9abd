from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from refdesk.model import EmbeddedPassage, EmbeddingModel
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.hnsw import Grower
from tests.stores.samples import NOTES, asking, find_ids, make_document, near, put

PATIENCE_SECONDS = 10


class Countdown:
    """Something that takes so many steps; each but the first waits for leave."""

    def __init__(self, steps: int, leave: threading.Event | None = None) -> None:
        self.left = steps
        self._leave = leave
        self.stepped = threading.Event()

    def extend_graphs(self, limit: int = 1) -> int:
        if limit:
            self.stepped.set()
            if self._leave is not None:
                assert self._leave.wait(PATIENCE_SECONDS)
            self.left = max(0, self.left - limit)
        return self.left


def test_an_index_is_grown_until_nothing_is_left() -> None:
    grower, index = Grower(), Countdown(50)
    grower.grow(index)
    grower.wait()
    assert index.left == 0
    grower.close()


def test_an_index_with_nothing_left_needs_no_thread() -> None:
    grower, index = Grower(), Countdown(0)
    grower.grow(index)
    assert not index.stepped.is_set()
    grower.close()


def test_one_index_is_grown_at_a_time() -> None:
    leave = threading.Event()
    grower, first, second = Grower(), Countdown(2, leave), Countdown(2)
    grower.grow(first)
    grower.grow(second)
    leave.set()
    grower.wait()
    assert (first.left, second.left) == (0, 2)
    grower.grow(second)
    grower.wait()
    assert second.left == 0
    grower.close()


def test_closing_stops_after_the_step_at_hand() -> None:
    leave = threading.Event()
    grower, index = Grower(), Countdown(1_000_000_000, leave)
    grower.grow(index)
    assert index.stepped.wait(PATIENCE_SECONDS)
    leave.set()
    grower.close()
    left = index.left
    grower.grow(index)
    grower.wait()
    assert 0 < index.left == left


@pytest.mark.soak
async def test_a_large_collection_is_searched_alike_while_its_graph_grows(tmp_path: Path) -> None:
    random, model = np.random.default_rng(1), EmbeddingModel("wide", 8)
    documents = [make_document(f"d{number}") for number in range(300)]
    async with open_store(tmp_path / "store.sqlite3") as store:
        await put(store, *documents)
        for document in documents:
            drawn = random.normal(size=(400, 8)).astype(np.float32)
            passages = [EmbeddedPassage(0, 1, each / np.float32(np.linalg.norm(each))) for each in drawn]
            async with store.transaction() as transaction:
                await transaction.put_vectors(NOTES, document.id, model, document.text_digest, passages)
        request = asking(vector=near(list(range(1, 9)), model.name), depth=3)
        expected = await find_ids(store, request)
        (grower,) = [thread for thread in threading.enumerate() if thread.name == "refdesk-graphs"]
        assert await find_ids(store, request) == expected
        grower.join(600)
        assert not grower.is_alive()
        assert await find_ids(store, request) == expected
