"""Pages of the feed: taken apart, or recognised by their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from refdesk.core.retrying import PassingError
from refdesk.protocols import SourcePage

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue

Adapt: TypeAlias = "Callable[[JsonObject], JsonObject]"
_IDS, _TOTAL = "ids", "total"


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it came.

    Attributes:
        digest: Of its body.
        ids: What each of its records has for an id; `None` where it has none.
        total: How many records there are in all, where the page says so.
        records: `None` of a page that is known by its digest.
        adapt: What records are changed by when they are read.
    """

    body: bytes
    digest: str
    ids: Sequence[JsonValue]
    total: int | None
    records: tuple[JsonObject, ...] | None = None
    adapt: Adapt | None = None

    def to_source_page(self, start: int, repeated: frozenset[str], repeats: int) -> SourcePage:
        """Return its records from one on.

        Args:
            start: The first record.
            repeated: The ids of those that came before.
            repeats: How many of all records up to here came before, which the page's total counts.
        """
        # A page that begins elsewhere adds other records.
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
        known: The outlines of pages that were read before, by the names of `Page.to_source_page`.
        body: JSON in UTF-8.
        adapt: Changes each record; `None`: they are as they came.

    Raises:
        PassingError: It is no page.
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
        page = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
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


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
