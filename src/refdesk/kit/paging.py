"""Pages of lists: a cursor names the last thing shown, so that what others write meanwhile shifts nothing."""

from __future__ import annotations

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
from refdesk.errors import InvalidInputError

CURSOR = "The `nextCursor` of the page before, instead of `offset`: whatever is written meanwhile shifts nothing."
NEXT_CURSOR = "Where the next page begins: give it as `cursor`. Absent on the last one."
NOTICE = "Why the page is empty, if it begins after the end of the list."

Rank: TypeAlias = "tuple[Any, ...]"
Cursor: TypeAlias = Annotated[str, Field(max_length=2000)] | SkipJsonSchema[None]
NextCursor: TypeAlias = str | SkipJsonSchema[None]
Notice: TypeAlias = str | SkipJsonSchema[None]
T = TypeVar("T")

_NO_CURSOR = "`cursor` is none of this list: send what `nextCursor` of the page before says, as it is."


class Asked(Protocol):
    """Which page somebody asks for."""

    @property
    def limit(self) -> int: ...  # noqa: D102 - as in every input that has it
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def cursor(self) -> str | None: ...  # noqa: D102


class Paged(BaseModel):
    """A page of a list, which knows the cursor behind each of its items, for whoever shows fewer of them."""

    _cursors: Sequence[str] = PrivateAttr(())

    @property
    def cursors(self) -> Sequence[str]:
        """What goes on behind each item, in their order."""
        return self._cursors

    def going_on(self, cursors: Sequence[str]) -> Self:
        """Return this page, with these."""
        self._cursors = cursors
        return self


@dataclass(frozen=True, slots=True)
class Place:
    """How far somebody has come in a list.

    Attributes:
        list: Its name: a cursor of another one is refused.
        shown: How many things came before.
        begun: When the first page was read.
        key: What the last thing shown was sorted by, unlike every other's; empty before the first.
    """

    list: str
    shown: int
    begun: datetime
    key: Rank = ()

    def go_on(self, key: Rank, count: int) -> str:
        """Return the cursor behind a thing, the `count`-th from here."""
        said = [self.list, self.shown + count, self.begun.isoformat(), *key]
        return urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some things of a list.

    Attributes:
        offset: How many came before.
        cursors: Behind each item.
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
    """Return where a page begins; without a cursor behind `offset` things, which the key does not name.

    Args:
        asked: By the caller.
        name: Of the list.
        example: A key of the list, whose values are of the types that every key has.
        now: Where the first page is asked for.

    Raises:
        InvalidInputError: The cursor is none of this list, or there is an offset beside it.
    """
    if asked.cursor is None:
        return Place(name, asked.offset, now)
    if asked.offset:
        raise InvalidInputError("`offset` and `cursor` both say where the page begins: leave `offset` out.")
    try:
        read = json.loads(urlsafe_b64decode(asked.cursor + "=" * (-len(asked.cursor) % 4)))
        said, shown, begun, *key = cast("list[object]", read)
        place = Place(name, int(cast("int", shown)), datetime.fromisoformat(str(begun)), cast("Rank", tuple(key)))
    except (ValueError, TypeError, RecursionError):
        raise refuse_cursor() from None
    is_whole = said == name and place.shown >= 0 and place.begun.tzinfo is not None
    types = [*map(type, example)]
    if not is_whole or [*map(type, key)] not in (types, types[-1:]):
        raise refuse_cursor()
    return place


def refuse_cursor() -> InvalidInputError:
    """Return the error for a cursor that is none of the list's."""
    return InvalidInputError(_NO_CURSOR)


def cut(
    items: Sequence[T],
    get_key: Callable[[T], Rank],
    place: Place,
    limit: int,
    has_moved: Callable[[T], bool] = lambda _: False,
) -> Page[T]:
    """Return a page of a list that is at hand.

    Args:
        items: All of them, sorted by their keys.
        get_key: Returns what a thing is sorted by, unlike every other's.
        place: Where the page begins.
        limit: At most so many.
        has_moved: Whether a thing may have moved since the first page: then it comes, perhaps again, after all others,
            rather than never. These are in the order of their keys' last values, which must tell them apart.
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
    """Return why nothing is left of a text that is read on in, where that begins at or behind its end."""
    if not offset or offset < len(text):
        return None
    return f"The body ends at character {len(text):,}: nothing is left from {offset:,} on."


def explain_end(page: Page[Any], one: str, many: str, total: int) -> str | None:
    """Return why a page of a list that has something is empty: it begins after the end.

    Args:
        page: The one shown.
        one: What a thing of the list is called.
        many: What several are called.
        total: How many there are.
    """
    if page.items or not page.offset or not total:
        return None
    known = say_count(total, one, many)
    return f"The list ends before this page: it has {known}, and the first {page.offset:,} are skipped."
