"""Pages of the feed: parsed, or recognised by their bytes.

A bad record does not spoil its page: any part of it that cannot be read is replaced by a value that the converter
refuses.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from refdesk.core.retrying import PassingError
from refdesk.sources import SourcePage

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue

Adapt: TypeAlias = "Callable[[JsonObject], JsonObject]"
_IDS, _TOTAL = "ids", "total"

MOST_LEVELS = 200
"""Most levels of nesting in a page; anything deeper is cut. Records that are kept may have fewer."""

_TEXT_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """A page as received.

    Attributes:
        digest: The digest of its body.
        ids: The id of each of its records; `None` for a record without one.
        total: How many records there are in all, if the page says so.
        records: Its records; `None` if the page is known by its digest.
        adapt: Changes each record when it is read.
    """

    body: bytes
    digest: str
    ids: Sequence[JsonValue]
    total: int | None
    records: tuple[JsonObject, ...] | None = None
    adapt: Adapt | None = None

    def to_source_page(self, start: int, repeated: frozenset[str], repeats: int) -> SourcePage:
        """Return its records from a given one on.

        Args:
            start: The index of the first record to return.
            repeated: The ids of records that were returned before.
            repeats: How many of all records up to here were repetitions, which the page's total counts.
        """
        # The same page adds different records when read from another start.
        name = f"{self.digest}/{start}"
        outline: JsonValue = {_IDS: self.ids, _TOTAL: self.total}
        total = None if self.total is None else self.total - repeats
        if self.records is None:
            unread = partial(_read_records, self.body, start, self.adapt)
            return SourcePage((), total, name, outline, unread, repeated)
        return SourcePage(self.records[start:], total, name, outline, repeated=repeated)


def read_page(known: Mapping[str, JsonValue], body: bytes, *, adapt: Adapt | None = None) -> Page:
    """Return the page of an answer.

    Args:
        known: The outlines of pages read before, by the names that `Page.to_source_page` gives them.
        body: JSON in UTF-8.
        adapt: Changes each record; `None` leaves them as received.

    Raises:
        PassingError: It is not a page.
    """
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    outline = known.get(f"{digest}/0", known.get(f"{digest}/1"))
    if outline is not None:
        told = cast("Mapping[str, JsonValue]", outline)
        return Page(
            body, digest, cast("Sequence[JsonValue]", told[_IDS]), cast("int | None", told[_TOTAL]), None, adapt
        )
    records, total = _parse(body, adapt)
    return Page(body, digest, [record.get("id") for record in records], total, records)


def _read_records(body: bytes, start: int, adapt: Adapt | None) -> tuple[JsonObject, ...]:
    return _parse(body, adapt)[0][start:]


def _parse(body: bytes, adapt: Adapt | None) -> tuple[tuple[JsonObject, ...], int | None]:
    try:
        page = _load(body.decode("utf-8-sig", "surrogateescape"))
    except ValueError:
        raise PassingError("the answer is not JSON") from None
    records = cast("dict[str, object]", page).get("value") if isinstance(page, dict) else None
    if not isinstance(records, list):
        raise PassingError("the answer holds no list of records")
    total = cast("dict[str, object]", page).get("@odata.count")
    objects = map(_as_object, cast("list[object]", records))
    return (
        tuple(objects if adapt is None else map(adapt, objects)),
        total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
    )


def _as_object(record: object) -> JsonObject:
    return cast("JsonObject", record if isinstance(record, dict) else {"value": record})


def _load(text: str) -> object:
    """Return the value of a JSON text, cut if nested too deeply. A number that cannot be read becomes infinity."""
    load = partial(json.loads, parse_int=_read_int, parse_constant=_read_constant)
    try:
        page = load(text)
        return load(_cut_levels(text)) if is_deeper(page, MOST_LEVELS) else page
    except RecursionError:
        return load(_cut_levels(text))


def _read_int(digits: str) -> float:
    try:
        return int(digits)
    except ValueError:
        # It has more digits than Python can read.
        return math.inf


def _read_constant(_: str) -> float:
    # NaN is not equal to itself, but the ids of pages are compared.
    return math.inf


def is_deeper(value: object, levels: int) -> bool:
    """Return whether lists and objects are nested more deeply than this many levels."""
    if not isinstance(value, dict | list):
        return False
    inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    return levels == 0 or any(is_deeper(each, levels - 1) for each in inner)


def _cut_levels(text: str) -> str:
    """Return a JSON text without anything nested more deeply than `MOST_LEVELS`."""
    kept: list[str] = []
    level, start = 0, 0
    for match in _TEXT_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            level += 1
            if level == MOST_LEVELS:
                kept.append(text[start : match.end()])
                start = len(text)
        elif match[0] in "]}":
            if level == MOST_LEVELS:
                start = match.start()
            level -= 1
    return "".join((*kept, text[start:]))
