"""Pages of lists: a cursor names the last thing shown, so that what others write meanwhile shifts nothing."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, Protocol, Self, TypeAlias, TypeVar, cast

from pydantic import BaseModel, Field, PrivateAttr
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.counts import say_count
from refdesk.core.keeping.encoding import decode_instant, encode_instant
from refdesk.errors import InvalidInputError

CURSOR = "The `nextCursor` of the page before, instead of `offset`: whatever is written meanwhile shifts nothing."
NEXT_CURSOR = "Where the next page begins: give it as `cursor`. Absent on the last one."

Rank: TypeAlias = "tuple[Any, ...]"
Cursor: TypeAlias = Annotated[Annotated[str, Field(max_length=2000)] | SkipJsonSchema[None], Field(description=CURSOR)]
NextCursor: TypeAlias = Annotated[str | SkipJsonSchema[None], Field(description=NEXT_CURSOR)]
Notice: TypeAlias = Annotated[
    str | SkipJsonSchema[None], Field(description="Why the page is empty, if it begins after the end of the list.")
]
T = TypeVar("T")

_NO_CURSOR = "`cursor` does not belong to this list: send the `nextCursor` of the page before, unchanged."


class Asked(Protocol):
    """Which page a caller asks for."""

    @property
    def limit(self) -> int: ...  # noqa: D102 - as in every input that has it
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def cursor(self) -> str | None: ...  # noqa: D102


class Paged(BaseModel):
    """A page of a list that knows the cursor after each of its items, in case fewer of them are shown."""

    _cursors: Sequence[str] = PrivateAttr(())

    @property
    def cursors(self) -> Sequence[str]:
        """The cursor that continues after each item, in the order of the items."""
        return self._cursors

    def going_on(self, cursors: Sequence[str]) -> Self:
        """Return this page with these cursors."""
        self._cursors = cursors
        return self


@dataclass(frozen=True, slots=True)
class Place:
    """How far a caller has come in a list.

    Attributes:
        list: The name of the list: a cursor of another list is refused.
        shown: How many items came before.
        begun: When the first page was read.
        key: The unique sort key of the last item shown; empty before the first.
    """

    list: str
    shown: int
    begun: datetime
    key: Rank = ()

    def go_on(self, key: Rank, count: int) -> str:
        """Return the cursor after the item with this key, the `count`-th from here."""
        said = [_make_tag(self.list), self.shown + count, encode_instant(self.begun), *key]
        return urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list.

    Attributes:
        offset: How many items came before.
        cursors: The cursor after each item.
    """

    items: Sequence[T]
    offset: int
    has_more: bool
    cursors: Sequence[str]

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""
        return self.cursors[-1] if self.has_more and self.cursors else None


def find_place(asked: Asked, name: str, example: Rank, now: datetime) -> Place:
    """Return where a page begins; without a cursor that is after `offset` items, and the key is empty.

    Args:
        asked: The page that the caller asks for.
        name: The name of the list.
        example: Any key of the list; the values of every key have the same types.
        now: The present instant, at which a walk begins if this is its first page.

    Raises:
        InvalidInputError: The cursor is not one of this list, or an offset was given as well.
    """
    if asked.cursor is None:
        return Place(name, asked.offset, now)
    if asked.offset:
        raise InvalidInputError("`offset` and `cursor` both say where the page begins: leave `offset` out.")
    try:
        read = json.loads(urlsafe_b64decode(asked.cursor + "=" * (-len(asked.cursor) % 4)))
        said, shown, begun, *key = cast("list[object]", read)
        place = Place(name, int(cast("int", shown)), decode_instant(int(cast("int", begun))), cast("Rank", tuple(key)))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise refuse_cursor() from None
    is_whole = said == _make_tag(name) and place.shown >= 0
    types = [*map(type, example)]
    if not is_whole or [*map(type, key)] not in (types, types[-1:]):
        raise refuse_cursor()
    return place


def _make_tag(name: str) -> str:
    """Return what tells cursors of a list from those of others; short, as agents pay for each character."""
    return hashlib.blake2b(name.encode(), digest_size=3).hexdigest()


def refuse_cursor() -> InvalidInputError:
    """Return the error for a cursor that is not one of the list."""
    return InvalidInputError(_NO_CURSOR)


def cut(
    items: Sequence[T],
    get_key: Callable[[T], Rank],
    place: Place,
    limit: int,
    has_moved: Callable[[T], bool] = lambda _: False,
) -> Page[T]:
    """Return a page of a list that is in memory.

    Args:
        items: All of them, sorted by their keys.
        get_key: Returns the unique sort key of an item.
        place: Where the page begins.
        limit: The most items on the page.
        has_moved: Whether an item may have moved since the first page. If so it comes after all others, perhaps for a
            second time, rather than never. Moved items are ordered by the last values of their keys, which are unique.
    """
    keys = [get_key(each) for each in items]
    if not place.key:
        waiting = list(zip(items, keys, strict=True))[place.shown :]
    else:
        is_among_moved = bool(keys) and len(place.key) < len(keys[0])
        first = len(keys) if is_among_moved else bisect_right(keys, place.key)
        moved = [(each, key[-1:]) for each, key in zip(items[:first], keys, strict=False) if has_moved(each)]
        waiting = list(zip(items[first:], keys[first:], strict=True))
        waiting += sorted(
            (pair for pair in moved if not is_among_moved or pair[1] > place.key), key=lambda pair: pair[1]
        )
    shown = waiting[:limit]
    cursors = [place.go_on(key, count) for count, (_, key) in enumerate(shown, 1)]
    return Page([each for each, _ in shown], place.shown, len(waiting) > limit, cursors)


def explain_end_of_text(text: str, offset: int) -> str | None:
    """Return why nothing is left of a text, if reading continues at or after its end; else `None`."""
    if not offset or offset < len(text):
        return None
    return f"The body ends at character {len(text):,}: nothing is left from {offset:,} on."


def explain_end(page: Page[Any], one: str, many: str, total: int) -> str | None:
    """Return why a page of a list that has something is empty: it begins after the end.

    Args:
        page: The page shown.
        one: What one item is called.
        many: What several items are called.
        total: How many items the list has.
    """
    if page.items or not page.offset or not total:
        return None
    known = say_count(total, one, many)
    return f"The list ends before this page: it has {known}, and the first {page.offset:,} are skipped."
