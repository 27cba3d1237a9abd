"""The query options of one request to the feed, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sample_world.azure_updates.filters import COLLECTIONS, PROPERTIES, BadFilterError, Predicate, parse_filter

SORTABLE = tuple(name for name in PROPERTIES if name not in ("description", "locale"))
SYSTEM_OPTIONS = frozenset({"count", "top", "skip", "orderby", "filter", "select", "search"})
LARGEST_NUMBER = 2**31 - 1

_Value = TypeVar("_Value")


class BadQueryError(ValueError):
    """A query option is wrong; the message says which and why."""


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """What one request asks. `order` holds (property, descending); `top` and `select` are `None` where not said.

    `options` are all options as asked, without paging: what a link to the next page has to repeat.
    """

    matches: Predicate | None = None
    order: tuple[tuple[str, bool], ...] = ()
    skip: int = 0
    top: int | None = None
    count: bool = False
    select: tuple[str, ...] | None = None
    search: tuple[str, ...] = ()
    facets: bool = False
    options: tuple[tuple[str, str], ...] = ()


def parse_query(pairs: Sequence[tuple[str, str]]) -> FeedQuery:
    """Return what the decoded query string asks. Options work with and without `$`, without regard to case.

    Names that are no option of the service are ignored unless they start with `$`, as OData wants it.

    Raises:
        BadQueryError: an option is unknown, said twice, or has a value that the service refuses.
    """
    options = _collect(pairs)
    return FeedQuery(
        matches=_read(options, "filter", _read_filter),
        order=_read(options, "orderby", _read_order) or (),
        skip=_read(options, "skip", _read_number) or 0,
        top=_read(options, "top", _read_number),
        count=_read(options, "count", _read_boolean) or False,
        select=_read(options, "select", _read_select),
        search=tuple(options.get("search", "").casefold().replace('"', " ").split()),
        facets=_read(options, "includefacets", _read_boolean) or False,
        options=tuple(pair for pair in pairs if _normalize(pair[0]) not in ("skip", "top")),
    )


def _normalize(name: str) -> str:
    return name.removeprefix("$").lower()


def _collect(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in pairs:
        option = _normalize(name)
        if name.startswith("$") and option not in SYSTEM_OPTIONS:
            raise BadQueryError(f"The query parameter '{name}' is not supported.")
        if option in options:
            raise BadQueryError(f"Query option '{name}' was specified more than once.")
        options[option] = value
    return options


def _read(options: dict[str, str], name: str, read: Callable[[str], _Value]) -> _Value | None:
    return read(options[name]) if name in options else None


def _read_filter(text: str) -> Predicate:
    try:
        return parse_filter(text)
    except BadFilterError as error:
        raise BadQueryError(f"The query specified in the URI is not valid. {error}") from error


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_NUMBER):
        raise BadQueryError(f"'{text[:40]}' is not a non-negative number for $skip or $top.")
    return int(text)


def _read_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BadQueryError(f"'{text[:40]}' is neither true nor false.")
    return text.lower() == "true"


def _read_order(text: str) -> tuple[tuple[str, bool], ...]:
    return tuple(_read_key(part) for part in text.split(","))


def _read_key(text: str) -> tuple[str, bool]:
    name, *direction = text.split() or [""]
    if name not in SORTABLE or direction not in ([], ["asc"], ["desc"]):
        raise BadQueryError(f"The $orderby expression '{text[:80]}' is not valid.")
    return name, direction == ["desc"]


def _read_select(text: str) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in text.split(","))
    if names == ("*",):
        return None
    for name in names:
        if name not in PROPERTIES and name not in COLLECTIONS:
            raise BadQueryError(f"Could not find a property named '{name[:80]}' on type 'Azure'.")
    return names
