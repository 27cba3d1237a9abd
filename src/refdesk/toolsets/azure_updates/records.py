"""Maps records of the feed to documents, and documents to results."""

from __future__ import annotations

import hashlib
import json
import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from refdesk.core.background.records import InvalidRecordError
from refdesk.kit.markdown import drop_targets, to_line, to_markdown
from refdesk.model import DateRange, Document
from refdesk.toolsets.azure_updates.models import AVAILABILITY, COLLECTION, RETIREMENT, name_availability
from refdesk.toolsets.azure_updates.pages import is_deeper
from refdesk.toolsets.azure_updates.periods import find_days
from refdesk.toolsets.azure_updates.products import describe, find_products, name_tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from refdesk.model import JsonObject

AUTHOR = "Microsoft Azure"
BASE_URL = "https://azure.microsoft.com"
MODIFIED = "modified"
RETIRING = "Retirement"
MOST_LEVELS = 100
"""Most levels of nested lists and objects in a record that is kept."""

_CONVERTER_MODULES = (
    *(__name__, "refdesk.toolsets.azure_updates.models", "refdesk.toolsets.azure_updates.products"),
    *("refdesk.toolsets.azure_updates.periods", "refdesk.kit.html_tree", "refdesk.kit.markdown"),
    "refdesk.kit.markdown_writer",
)
_CONVERTER_PACKAGES = ("refdesk", "nh3")

Fields = TypeVar("Fields", bound=BaseModel)

_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _null_as_empty(value: object) -> object:
    return [] if value is None else value


Names = Annotated[list[str], BeforeValidator(_null_as_empty)]


class _Availability(BaseModel):
    model_config = ConfigDict(strict=True)

    ring: str = Field(min_length=1)
    year: int | None = None
    month: str | None = None


class _Record(BaseModel):
    """The fields that are understood; others are allowed and kept."""

    model_config = ConfigDict(strict=True)

    id: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x20\x7f]+$")
    title: str = Field(min_length=1)
    description: str | None = None
    status: str | None = None
    tags: Names = []
    productCategories: Names = []
    products: Names = []
    availabilities: Annotated[list[_Availability], BeforeValidator(_null_as_empty)] = []
    created: str
    modified: str


@cache
def get_converter_version() -> str:
    """Return a version that changes with this code and its libraries, as then `to_document` may give another result."""
    digest = hashlib.blake2b(digest_size=16)
    for module in _CONVERTER_MODULES:
        digest.update(Path(cast("str", import_module(module).__file__)).read_bytes())
    for package in _CONVERTER_PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    return digest.hexdigest()


def to_document(record: JsonObject, base_url: str = BASE_URL) -> Document:
    """Return the document of one record of the feed.

    `body` is what is searched: the description without the targets of its links, then its products with their other
    names; empty if there is neither. `data` holds `record`, with every field as the feed gave it, and `description`
    (Markdown), `availabilities` and `title_date` (the day that its title names, if any) as answers show them. The date
    range `RETIREMENT` is that day if it lies in the month that the feed gives. A month that cannot be read gives an
    availability without a date. A record without products gets those that its title names.

    Args:
        record: The record as the feed gave it.
        base_url: The base of relative links.

    Raises:
        InvalidRecordError: The record lacks a required field, or holds what cannot be stored; the message says which.
    """
    _refuse_unstorable(record)
    read = read_fields(_Record, record)
    title = to_line(read.title)
    if not title:
        raise InvalidRecordError("title: is blank")
    description = to_markdown(read.description or "", base_url)
    facets = _read_facets(read, title)
    months = [(each.ring.strip(), _read_month(each)) for each in read.availabilities]
    modified = _read_instant("modified", read.modified)
    day = _find_day(title, months)
    availabilities = [{"ring": ring, "date": span.start.date().isoformat() if span else None} for ring, span in months]
    return Document(
        collection=COLLECTION,
        id=read.id,
        title=title,
        body=_join(drop_targets(description), describe(facets["products"])),
        author=AUTHOR,
        created_at=_read_instant("created", read.created),
        modified_at=modified,
        facets=facets,
        date_ranges={
            MODIFIED: (DateRange(modified, modified),),
            AVAILABILITY: tuple(span for _, span in months if span),
            **_group_by_ring(months),
            **_date_retirement(months, day),
        },
        data={
            "record": record,
            "description": description,
            "availabilities": availabilities,
            "title_date": None if day is None else day.isoformat(),
        },
    )


def read_fields(model: type[Fields], record: JsonObject) -> Fields:
    """Return the fields of a record that a model understands.

    Raises:
        InvalidRecordError: A field does not fit the model; the message says which.
    """
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidRecordError(f"{place}: {first['msg']}") from None


def _refuse_unstorable(record: JsonObject) -> None:
    if is_deeper(record, MOST_LEVELS):
        raise InvalidRecordError(f"something is nested more than {MOST_LEVELS} levels deep")
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidRecordError("a number is not finite, or too large to be read") from None
    if "\\u0000" in text and _NUL.search(text):
        raise InvalidRecordError("a text holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRecordError("a text holds half of a surrogate pair, or a byte that is no UTF-8") from None


def _read_facets(read: _Record, title: str) -> Mapping[str, tuple[str, ...]]:
    return {
        "tags": _clean(map(name_tag, read.tags)),
        "productCategories": _clean(read.productCategories),
        "products": _clean(read.products) or find_products(title),
        "status": _clean([read.status or ""]),
        "availabilityRing": _clean(each.ring for each in read.availabilities),
    }


def _group_by_ring(months: Iterable[tuple[str, DateRange | None]]) -> Mapping[str, tuple[DateRange, ...]]:
    grouped: dict[str, tuple[DateRange, ...]] = {}
    for ring, span in months:
        if span is not None:
            name = name_availability(ring)
            grouped[name] = (*grouped.get(name, ()), span)
    return grouped


def _find_day(title: str, months: Iterable[tuple[str, DateRange | None]]) -> date | None:
    """Return the day that a title names; of several, the one in a month that the feed names, if there is just one."""
    days = find_days(title)
    spans = [span for _, span in months if span is not None]
    named = [day for day in days if any(span.start.date() <= day <= span.end.date() for span in spans)]
    [only] = days if len(days) == 1 else named if len(named) == 1 else [None]
    return only


def _date_retirement(
    months: Iterable[tuple[str, DateRange | None]], day: date | None
) -> Mapping[str, tuple[DateRange, ...]]:
    """Return when it retires: the feed's earliest month, or the title's day if that lies in it or there is no month."""
    spans = [span for ring, span in months if ring == RETIRING]
    dated = sorted((span for span in spans if span is not None), key=lambda span: span.start)
    if day is not None and spans and (not dated or (dated[0].start.date() <= day <= dated[0].end.date())):
        first = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return {RETIREMENT: (DateRange(first, first + timedelta(days=1, microseconds=-1)),)}
    return {RETIREMENT: tuple(dated[:1])} if dated else {}


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _clean(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for line in map(to_line, values) if line))


def _read_instant(name: str, text: str) -> datetime:
    """Return the instant in UTC, which is assumed if there is no offset. Digits below a microsecond are cut off."""
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidRecordError(f"{name}: is no instant") from None


def _read_month(availability: _Availability) -> DateRange | None:
    """Return the month from its first to its last instant, or `None` if the feed names none that exists."""
    month = MONTHS.get((availability.month or "").strip().casefold())
    year = availability.year
    if month is None or year is None or not 1 <= year <= 9999:
        return None
    last = monthrange(year, month)[1]
    return DateRange(datetime(year, month, 1, tzinfo=UTC), datetime(year, month, last, 23, 59, 59, 999_999, tzinfo=UTC))
