"""Compares two versions of an update."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from refdesk.toolsets.azure_updates.change_models import FieldChange
from refdesk.toolsets.azure_updates.models import FACETS
from refdesk.toolsets.azure_updates.results import get_description, get_modified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refdesk.model import Document


def compare(before: Document, after: Document, *, quoting: bool = False) -> list[FieldChange]:
    """Return the fields that differ, the description last and with its text only if `quoting`."""
    old, new = _get_fields(before), _get_fields(after)
    changed = [
        FieldChange.model_validate({"field": name, "before": _show_field(old[name]), "after": _show_field(new[name])})
        for name in new
        if old[name] != new[name]
    ]
    earlier, later = get_description(before), get_description(after)
    if earlier == later:
        return changed
    quotes = {"before": earlier, "after": later} if quoting else {}
    return [*changed, FieldChange.model_validate({"field": "description", **quotes})]


def _get_fields(document: Document) -> Mapping[str, str | tuple[str, ...]]:
    facets = {name: document.facets[name] for name in FACETS}
    status = next(iter(facets["status"]), "")
    fields = {"title": document.title, **facets, "status": status, "modified": get_modified(document)}
    return {**fields, "availabilities": tuple(_list_availabilities(document))}


def _list_availabilities(document: Document) -> Iterator[str]:
    """Yield each ring with its month, such as "Retirement 2027-08", so that a postponement shows."""
    for each in cast("Sequence[Mapping[str, str | None]]", document.data.get("availabilities", ())):
        yield " ".join(part for part in (each["ring"], (each["date"] or "")[: len("2027-08")]) if part)


def _show_field(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)
