"""Suggests what was meant by an unknown id: similar ids or, if words were sent instead of an id, what they find."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from refdesk.errors import NotFoundError
from refdesk.kit.nearest import MOST
from refdesk.model import InState, State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pydantic import BaseModel

    from refdesk.core.context import Context
    from refdesk.model import Collection

    Handler: TypeAlias = Callable[[Context, Any], Awaitable[BaseModel]]

_ID = re.compile(r"[0-9a-f-]{8,64}", re.IGNORECASE)
_MOST_WRONG = 4
"""Most wrong characters, at one place: left out, added, swapped or miscopied. Ids made within one hour share a third of
their characters, so a less similar id may be any other."""

_LEAST_BEGINNING = 8
"""Fewest characters of a truncated id."""

_MOST_CHARACTERS = 200
"""Most characters of words that were sent in place of an id."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How to find a toolset's documents if the id that was sent is unknown.

    Attributes:
        get_collection: Returns the collection of an org's documents.
        scope: The scope that a caller needs to get suggestions.
    """

    get_collection: Callable[[str], Collection]
    scope: str

    def offering(self, handler: Handler) -> Handler:
        """Return the handler of an operation, with the nearest known ids in its error if an id is unknown."""

        async def handle(context: Context, asked: object) -> BaseModel:
            try:
                return await handler(context, asked)
            except NotFoundError as error:
                raise await self.explain(context, error) from error

        return handle

    async def explain(self, context: Context, error: NotFoundError) -> NotFoundError:
        """Return the error with the nearest known ids, if there are any and the caller may know them."""
        if error.unknown is None or self.scope not in context.principal.scopes:
            return error
        found = await self._find(context, error.unknown.strip())
        if not found:
            return error
        message = f"{error.message} Did you mean {' or '.join(found)}?"
        return NotFoundError(message, details={**(error.details or {}), "didYouMean": found}, choice=error.choice)

    async def _find(self, context: Context, id: str) -> list[str]:
        base, collection = context.knowledge_base, self.get_collection(context.principal.org)
        if _ID.fullmatch(id):
            return find_alike(id, await base.store.get_digests(collection))
        from refdesk.core.search import matching
        from refdesk.core.search.retrieval import SearchRequest  # not at start-up

        request = SearchRequest(collection, id[:_MOST_CHARACTERS], where=InState((State.CURRENT,)), limit=MOST)
        hits = (await base.search(request)).hits
        return [hit.document.id for hit in hits if matching.name(hit.strength) != "weak"]


def find_alike(id: str, known: Iterable[str]) -> list[str]:
    """Return the known ids that were probably meant: wrong at one place, or truncated at the end.

    If more than `MOST` qualify, none is returned.
    """
    folded = id.casefold()
    near = [other for other in known if _is_alike(folded, other)]
    return sorted(near) if len(near) <= MOST else []


def _is_alike(id: str, other: str) -> bool:
    if len(id) >= _LEAST_BEGINNING and other.startswith(id):
        return True
    if abs(len(id) - len(other)) > _MOST_WRONG or (id[:4] != other[:4] and id[-4:] != other[-4:]):
        return False  # rules out most ids at once
    before = _count_common(id, other)
    after = _count_common(id[before:][::-1], other[before:][::-1])
    return max(len(id), len(other)) - before - after <= _MOST_WRONG


def _count_common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
