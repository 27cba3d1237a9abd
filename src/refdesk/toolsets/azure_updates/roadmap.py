"""Maps items of the Microsoft 365 roadmap to documents, by way of records like those of the Azure feed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, ConfigDict

from refdesk.toolsets.azure_updates import records
from refdesk.toolsets.azure_updates.feeds import FEED, ROADMAP, ROADMAP_PREFIX
from refdesk.toolsets.azure_updates.records import MONTHS, Names, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refdesk.model import Document, JsonObject, JsonValue

AUTHOR = "Microsoft 365"
BASE_URL = "https://www.microsoft.com"


class _Item(BaseModel):
    """The fields that only the roadmap has, or has otherwise."""

    model_config = ConfigDict(strict=True)

    cloudInstances: Names = []
    platforms: Names = []
    releaseRings: Names = []
    generalAvailabilityDate: str | None = None
    previewAvailabilityDate: str | None = None


@cache
def get_converter_version() -> str:
    """Return a version that changes whenever `to_document` may give another result; see that of `records`."""
    return hashlib.blake2b(
        Path(__file__).read_bytes(), key=records.get_converter_version().encode(), digest_size=16
    ).hexdigest()


def name_item(item: JsonObject) -> JsonObject:
    """Return the item with an id that no update of another feed has. One without a usable id stays as it is."""
    id = item.get("id")
    is_usable = isinstance(id, str | int) and not isinstance(id, bool) and id != ""
    return {**item, "id": f"{ROADMAP_PREFIX}{id}"} if is_usable else item


def to_document(item: JsonObject) -> Document:
    """Return the document of one item of the roadmap, as `name_item` returns it; see `records.to_document`.

    Clouds, platforms and release rings become its tags. A month of general availability or preview that is not among
    the availabilities becomes one, too.

    Raises:
        InvalidRecordError: See `records.to_document`.
    """
    read = read_fields(_Item, item)
    tags = cast("JsonValue", [*read.cloudInstances, *read.platforms, *read.releaseRings])
    record: JsonObject = {**item, "tags": tags, "availabilities": _complete(item.get("availabilities"), read)}
    document = records.to_document(record, BASE_URL)
    return replace(
        document,
        author=AUTHOR,
        facets={**document.facets, FEED: (ROADMAP,)},
        data={**document.data, "record": item},
    )


def _complete(availabilities: JsonValue, read: _Item) -> JsonValue:
    """Return the availabilities, adding those that only the dates name; a value that is not a list stays as it is."""
    if availabilities is not None and not isinstance(availabilities, list):
        return availabilities
    given = [*(availabilities or ())]
    rings = {str(each.get("ring")) for each in given if isinstance(each, dict)}
    return [*given, *(each for each in _list_dated(read) if each["ring"] not in rings)]


def _list_dated(read: _Item) -> Iterator[JsonObject]:
    dates = {"General Availability": read.generalAvailabilityDate, "Preview": read.previewAvailabilityDate}
    for ring, date in dates.items():
        year, _, month = (date or "").partition("-")
        is_short = len(year) <= 4 and len(month) <= 2
        if is_short and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= len(MONTHS):
            yield {"ring": ring, "year": int(year), "month": [*MONTHS][int(month) - 1]}
