"""When the search indexes are shown what was written, though nobody searches."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from refdesk.stores import sqlite
from refdesk.stores.sqlite import catching_up
from refdesk.stores.sqlite.freezing import Sizes
from tests.stores.samples import embed, make_document, passage, put
from tests.stores.sqlite.test_freezing import COUNT, EAST, NORTH, WORDS, check_answers, note_rows, wait_for_parts

open_store = partial(sqlite.open_store, index_sizes=Sizes(freeze_above=8, catch_up_above=COUNT))


async def test_what_is_written_and_embedded_is_in_files_before_anybody_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite3"
    async with open_store(path) as store:
        documents = [make_document(f"d{number:02}", WORDS[number % 4]) for number in range(COUNT)]
        await put(store, *documents)
        await wait_for_parts(path, COUNT)
        for number, document in enumerate(documents):
            await embed(store, document, passage(EAST if number % 2 else NORTH))
        await wait_for_parts(path, 2 * COUNT)
    read = note_rows(monkeypatch)
    async with open_store(path) as store:
        await check_answers(store)
    assert read == []


async def test_an_index_waits_for_a_pause_in_writing_unless_it_is_too_far_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAUSE_SECONDS", "MOST_WAIT_SECONDS"):
        monkeypatch.setattr(catching_up, name, 3600.0)
    read = note_rows(monkeypatch)
    path = tmp_path / "a.sqlite3"
    sizes = Sizes(freeze_above=8, catch_up_above=COUNT, catch_up_at=2 * COUNT)
    async with sqlite.open_store(path, index_sizes=sizes) as store:
        documents = [make_document(f"d{number:03}", WORDS[number % 4]) for number in range(2 * COUNT)]
        await put(store, *documents[:-1])
        await anyio.wait_all_tasks_blocked()
        assert read == []
        await put(store, documents[-1])
        await wait_for_parts(path, 2 * COUNT)
