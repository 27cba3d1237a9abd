"""Builds what notifies agents of what is new, in all stores of a desk, and sends it to their webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from refdesk.core.keeping.acts import MAIN
from refdesk.discovery import find_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.core.operations import Call, Toolset
    from refdesk.factories.bases import Base
    from refdesk.watching.delivering import Deliverer
    from refdesk.watching.following import Watcher

PARTS = tuple(
    f"refdesk.watching.{name}" for name in ("news", "judging", "meaning", "happenings", "following", "delivering")
)
"""The modules that it needs, which are imported one by one after the start, when nobody calls."""


def choose_watcher(base: Base) -> Watcher:
    """Return what notifies agents of what is new in a desk's stores."""
    from refdesk.watching.following import Place, Watcher

    def make_place(one: Base) -> Place:
        return Place(one.knowledge_base.store, one.knowledge_base.semantics)

    places = {MAIN: make_place(base), **{name: make_place(each) for name, each in base.apart.items()}}
    readers = {each.name: each.announces() for each in find_descriptors() if each.announces is not None}
    return Watcher(base.knowledge_base.store, places, readers, base.knowledge_base.clock)


def choose_deliverer(base: Base, toolsets: Sequence[Toolset]) -> Deliverer:
    """Return what sends news about what these toolsets keep to webhooks."""
    from refdesk.core.reading_scopes import find_reading_scopes
    from refdesk.toolsets.watches.options import get_options
    from refdesk.watching.delivering import Deliverer
    from refdesk.watching.showing import Payloads

    main, clock = base.knowledge_base.store, base.knowledge_base.clock
    stores = {MAIN: main, **{name: each.knowledge_base.store for name, each in base.apart.items()}}
    payloads = Payloads(stores, find_reading_scopes(toolsets), base.keys, clock)
    return Deliverer(main, clock, get_options(base.knowledge_base).reach, payloads.show)


async def keep_watching(
    base: Base,
    toolsets: Sequence[Toolset],
    listeners: list[Callable[[Call], None]],
    news_listeners: Sequence[Callable[[], None]],
) -> None:
    """Notify agents of what is new in what they watch, and send it to their webhooks, until cancelled.

    Args:
        base: What is open.
        toolsets: Those that are served.
        listeners: Called with every call that has ended.
        news_listeners: Called when agents have news.
    """
    watcher, deliverer = choose_watcher(base), choose_deliverer(base, toolsets)
    reading = {each.name for toolset in toolsets for each in toolset.listed if each.effects.read_only}

    def note(call: Call) -> None:
        if call.target not in reading:
            watcher.doorbell.ring()

    def pass_on(news: Sequence[object]) -> None:
        if news:
            deliverer.doorbell.ring()
            for listener in news_listeners:
                listener()

    watcher.on_told = pass_on
    listeners.append(note)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(deliverer.run)
            await watcher.run()
    finally:
        listeners.remove(note)
