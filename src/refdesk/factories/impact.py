"""Builds what finds impacts: of which toolsets' announcements, on which toolsets' documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from refdesk.discovery import find_descriptors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from refdesk.impact.examining import Examiner
    from refdesk.model import Collection, Document, Metadata
    from refdesk.protocols import Store

    Also: TypeAlias = Callable[[Store, Collection, Sequence[Document]], Awaitable[None]]

PARTS = tuple(
    f"refdesk.impact.{name}"
    for name in ("wording", "subjects", "changes", "change_reading", "quantities", "comparing", "examining")
)
"""The modules that it needs, which are imported one by one after the start, when nobody calls."""


def choose_examiner(get_store: Callable[[str], Store], also: Also | None = None) -> Examiner:
    """Return what finds impacts in all stores; `get_store` returns a toolset's store. For `also` see `Examiner`."""
    from refdesk.core.clock import SystemClock
    from refdesk.impact.examining import Examiner

    announcing = {each.name: each.announces for each in find_descriptors() if each.announces is not None}
    relying = frozenset(each.name for each in find_descriptors() if each.relies)
    stores = {name: get_store(name) for name in (*announcing, *sorted(relying))}
    disputing = frozenset(each.name for each in find_descriptors() if each.disputes)
    return Examiner(stores, announcing, relying, SystemClock(), disputing, also=also)


def choose_note() -> Callable[[Document], Metadata | None]:
    """Return a function that makes the note that an embedded document is to be examined."""
    names = frozenset(each.name for each in find_descriptors() if each.announces is not None or each.relies)

    def make_note(document: Document) -> Metadata | None:
        from refdesk.impact.records import make_pending

        return make_pending(document) if document.collection.toolset in names else None

    return make_note
