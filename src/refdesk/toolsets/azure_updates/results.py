"""Formats documents and sync metadata for answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from refdesk.toolsets.azure_updates.feeds import ROADMAP_PREFIX
from refdesk.toolsets.azure_updates.models import Availability, FacetValue, Update

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.search.matches import Match
    from refdesk.model import Document, FacetCount

PUBLIC_PAGE = "https://azure.microsoft.com/en-us/updates/?id="
ROADMAP_PAGE = "https://www.microsoft.com/microsoft-365/roadmap?id="
_MONTH = len("2026-11")
_DAY = len("2026-11-22")
DESCRIPTION_CHARACTERS = 200_000
"""Most characters of descriptions in one answer; a hundred real updates have about 90,000."""


def show_update(
    document: Document, *, relevance: float | None, longest: int | None, match: Match | None = None
) -> Update:
    """Return the update as answers show it.

    Args:
        document: The document, as made by `records.to_document`.
        relevance: Its relevance; `None` leaves it out.
        longest: How many characters of the description are shown; 0 leaves it out, `None` shows all.
        match: How well it matches; `None` leaves it out.
    """
    record = cast("Mapping[str, object]", document.data["record"])
    availabilities = cast("Sequence[Mapping[str, str | None]]", document.data["availabilities"])
    optional = _compare_dates(document)
    if longest != 0:
        optional["description"] = _shorten(get_description(document), longest) or None
    if relevance is not None:
        optional["relevance"] = relevance
    if match is not None:
        optional["match"] = match
    return Update.model_validate(
        {
            "id": document.id,
            "title": document.title,
            "status": next(iter(document.facets["status"]), None),
            "tags": list(document.facets["tags"]),
            "productCategories": list(document.facets["productCategories"]),
            "products": list(document.facets["products"]),
            "availabilities": [Availability.model_validate(dict(each)) for each in availabilities],
            "created": record["created"],
            "modified": get_modified(document),
            "url": get_public_page(document.id),
            **optional,
        }
    )


def outline_update(document: Document, match: Match | None) -> Update:
    """Return what a survey needs of an update, without its address, which follows from its id."""
    availabilities = cast("Sequence[Mapping[str, str | None]]", document.data["availabilities"])
    return Update.model_validate(
        {
            "id": document.id,
            "title": document.title,
            "status": next(iter(document.facets["status"]), None),
            "tags": list(document.facets["tags"]),
            "products": list(document.facets["products"]),
            "availabilities": [_outline_availability(each) for each in availabilities],
            "modified": get_modified(document)[:_DAY],
            **({"match": match} if match is not None else {}),
            **_compare_dates(document),
        }
    )


def _compare_dates(document: Document) -> dict[str, object]:
    """Return the day that the title names, if any, and whether the feed names other months."""
    day = document.data.get("title_date")
    if not isinstance(day, str):
        return {}
    availabilities = cast("Sequence[Mapping[str, str | None]]", document.data["availabilities"])
    months = {date[:_MONTH] for each in availabilities if (date := each["date"])}
    return {"titleDate": day, **({"datesDiffer": True} if months and day[:_MONTH] not in months else {})}


def _outline_availability(availability: Mapping[str, str | None]) -> Availability:
    """Return a stage with its date written as a month, such as 2026-11."""
    date = availability["date"]
    return Availability.model_validate({**availability, "date": date and date[:_MONTH]})


def get_description(document: Document) -> str:
    """Return the description of an update in Markdown; empty if it has none."""
    # Updates and versions stored by an earlier refdesk have it as their body until the next sync converts them.
    return cast("str", document.data.get("description", document.body))


def get_public_page(id: str) -> str:
    """Return the address of an update's page at Microsoft."""
    if id.startswith(ROADMAP_PREFIX):
        return ROADMAP_PAGE + quote(id.removeprefix(ROADMAP_PREFIX), safe="")
    return PUBLIC_PAGE + quote(id, safe="")


def show_counts(counts: Sequence[FacetCount]) -> list[FacetValue]:
    """Return counts as answers show them, in the same order."""
    return [FacetValue(value=each.value, count=each.count) for each in counts]


def get_modified(document: Document) -> str:
    """Return when the update was modified last, as the feed writes it."""
    return str(cast("Mapping[str, object]", document.data["record"])["modified"])


def show_instant(instant: datetime) -> str:
    """Return an instant as the feed writes them: UTC, seven fractional digits, `Z`."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def _shorten(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[:longest].rstrip() + "…"
