"""Searches answer alike whatever stands before the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest

from refdesk.core.context import Context
from refdesk.core.writing.sizes import open_counted
from refdesk.protocols import Store
from refdesk.stores.sqlite.read_only import ReadOnlyStore
from refdesk.telemetry.watching import watch_store
from tests.toolsets.azure_updates.samples import CALLER, Desk, ask


def as_it_comes(wrap: Callable[[Store], Store]) -> Callable[[Store], Awaitable[Store]]:
    async def open_wrapped(store: Store) -> Store:
        return wrap(store)

    return open_wrapped


WRAPPERS: dict[str, Callable[[Store], Awaitable[Store]]] = {
    "counted against a quota": lambda store: open_counted(store, 10**9),
    "traced": as_it_comes(watch_store),
    "read only": as_it_comes(lambda store: cast("Store", ReadOnlyStore(store))),
}


@pytest.mark.parametrize("way", WRAPPERS)
async def test_a_beginning_of_a_word_is_completed_whatever_the_store_is_behind(library: Desk, way: str) -> None:
    expected = await library.ask(query="retireme*")
    store = await WRAPPERS[way](library.knowledge_base.store)
    behind = Context(CALLER, replace(library.knowledge_base, store=store))
    assert expected["results"]
    assert await ask(behind, query="retireme*") == expected
