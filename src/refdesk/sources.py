"""The port of sources: the interface between the core and the upstreams from which documents come.

Sources are opened with `async with`, and raise only `refdesk.errors`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Some records from a source, as it gave them, and how many it holds in all (by id) if it says so.

    Attributes:
        name: Pages of the same name hold the same records and give the same total; `None` if that cannot be told.
        outline: What the source must know about a page of this name so that it need not read it again.
        unread: Returns the records, which were not read because the page is a known one; then `records` is empty.
        repeated: The ids of its records that occurred earlier in this reading.
    """

    records: tuple[JsonObject, ...]
    total: int | None = None
    name: str | None = None
    outline: JsonValue = None
    unread: Callable[[], tuple[JsonObject, ...]] | None = None
    repeated: frozenset[str] = frozenset()


class Source(Protocol):
    """Where a toolset's documents come from when they are not written by agents."""

    @property
    def is_complete(self) -> bool:
        """Whether it gives everything, so that what is missing is gone; a feed, which drops old entries, does not."""
        ...

    def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        """Yield the records changed at or after the watermark `since`, or all of them, each at least once.

        Raises:
            SourceError: The source failed in spite of retries; pages already yielded stay valid.
        """
        ...


@runtime_checkable
class RecognisingSource(Protocol):
    """A source that recognises pages it gave before, and does not read their records again; see `Source`."""

    def read_with(self, known: Mapping[str, JsonValue], since: str | None) -> AsyncIterator[SourcePage]:
        """Yield pages as `Source.read` does, given the outlines of pages that it gave before, by name."""
        ...
