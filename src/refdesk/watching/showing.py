"""Showing: what news say to their agent, with present titles, as far as the agent may read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.writing.tombstones import is_erased
from refdesk.model import SHARED_ORG, Collection, State

if TYPE_CHECKING:
    from refdesk.core.keys import KeyRing
    from refdesk.core.reading_scopes import ReadingScopes
    from refdesk.model import Document, JsonObject, JsonValue
    from refdesk.protocols import Clock, Store
    from refdesk.watching.news import Event, News
    from refdesk.watching.watches import Watch

ANNOUNCEMENTS = frozenset(("updates:read",))


def may_know(scopes: ReadingScopes, held: frozenset[str], event: Event) -> bool:
    """Return whether the scopes held suffice to hear of an event."""
    is_announced = event.what == "impacted"
    return scopes.may_read(held, event.toolset) and (not is_announced or held >= ANNOUNCEMENTS)


async def read_documents(
    stores: Mapping[str, Store], org: str, wanted: set[tuple[str, str]]
) -> dict[tuple[str, str], Document]:
    """Return those of the documents that exist, in an org or in the shared org, by toolset and id.

    Args:
        stores: The stores by toolset; toolsets that are not named are in the first one.
        org: The org.
        wanted: Toolsets and ids of the documents.
    """
    found: dict[tuple[str, str], Document] = {}
    main = next(iter(stores.values()))
    for toolset in sorted({toolset for toolset, _ in wanted}):
        ids = sorted(id for each, id in wanted if each == toolset)
        for each in (SHARED_ORG, org):
            for document in await stores.get(toolset, main).get_documents(Collection(each, toolset), ids):
                if document is not None:
                    found[toolset, document.id] = document
    return found


def describe(news: News, label: str, document: Document | None) -> dict[str, JsonValue] | None:
    """Return what news say, keyed by the names on the wire; `None` if the document was erased."""
    if document is not None and is_erased(document):
        return None
    event = news.event
    is_readable = document is not None and document.state is not State.WITHDRAWN
    said: dict[str, JsonValue] = {
        "number": news.number,
        "what": event.what,
        "at": event.at.isoformat(),
        "watch": news.watch,
        "label": label or None,
        "toolset": event.toolset,
        "id": event.id,
        "title": document.title if document is not None and is_readable else None,
        "version": event.version or None,
        "other": event.other or None,
    }
    if event.what == "dated":
        said |= {"daysBefore": list(event.dates[0]), "daysNow": list(event.dates[1])}
    return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Payloads:
    """Makes what is sent to webhooks.

    Attributes:
        stores: The stores by toolset; the first is the main one.
        scopes: The scopes needed for reading each toolset.
        keys: The API keys. An agent that made a watch with a key only hears of what one of its valid keys may read.
    """

    stores: Mapping[str, Store]
    scopes: ReadingScopes
    keys: KeyRing
    clock: Clock

    async def show(self, watch: Watch, found: Sequence[News]) -> list[JsonObject | None]:
        """Return the payloads for news of one watch, in order; `None` for news that are not sent."""
        held = await self._find_scopes(watch)
        documents = await read_documents(
            self.stores, watch.org, {(each.event.toolset, each.event.id) for each in found}
        )
        shown: list[JsonObject | None] = []
        for each in found:
            document = documents.get((each.event.toolset, each.event.id))
            said = describe(each, watch.label, document) if may_know(self.scopes, held, each.event) else None
            shown.append(None if said is None else _wrap(each, said))
        return shown

    async def _find_scopes(self, watch: Watch) -> frozenset[str]:
        """Return the present scopes of a watch's agent or, if no known key made it, those it had when making it."""
        keys = await self.keys.list(watch.org)
        if all(key.id != watch.credential for key in keys):
            return watch.scopes
        now = self.clock.now()
        mine = [key for key in keys if key.agent == watch.agent and key.is_valid(now)]
        return frozenset(scope for key in mine for scope in key.scopes)


def _wrap(news: News, said: JsonObject) -> JsonObject:
    return {"type": f"news.{news.event.what}", "timestamp": news.event.at.isoformat(), "data": said}
