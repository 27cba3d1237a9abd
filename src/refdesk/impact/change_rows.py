"""Changes as values that any store can hold, with none of the announcement's text except terms and names from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import cast

from refdesk.impact.changes import Change, ChangeKind
from refdesk.impact.versions import Version
from refdesk.model import JsonObject, JsonValue

_SETS = (
    *("products", "related", "context", "series", "identifiers", "phrases", "counted", "qualifiers", "tiers"),
    *("former", "successors"),
)


def write_change(change: Change) -> dict[str, JsonValue]:
    """Return a change as it is stored."""
    row: dict[str, JsonValue] = {name: sorted(getattr(change, name)) for name in _SETS}
    row |= {name: getattr(change, name) for name in ("id", "kind", "is_named", "start", "end")}
    row["versions"] = [[each.name, each.number, each.and_below] for each in change.versions]
    row["pairs"] = [list(pair) for pair in sorted(change.pairs)]
    row["terms"] = dict(change.terms)
    row["due"] = change.due.isoformat() if change.due is not None else None
    return row


def read_row(row: JsonObject) -> Change:
    """Return the change that `write_change` wrote."""
    sets = {name: frozenset(cast("Sequence[str]", row[name])) for name in _SETS}
    due = row["due"]
    return Change(
        id=str(row["id"]),
        kind=cast("ChangeKind", row["kind"]),
        is_named=bool(row["is_named"]),
        versions=tuple(
            Version(name, number, and_below, 0, 0)
            for name, number, and_below in cast("Sequence[tuple[str, str, bool]]", row["versions"])
        ),
        terms=cast("dict[str, float]", dict(cast("JsonObject", row["terms"]))),
        pairs=frozenset((first, second) for first, second in cast("Sequence[tuple[str, str]]", row["pairs"])),
        due=date.fromisoformat(str(due)) if due is not None else None,
        start=cast("int", row["start"]),
        end=cast("int", row["end"]),
        products=sets["products"],
        related=sets["related"],
        context=sets["context"],
        series=sets["series"],
        identifiers=sets["identifiers"],
        phrases=sets["phrases"],
        counted=sets["counted"],
        qualifiers=sets["qualifiers"],
        tiers=sets["tiers"],
        former=sets["former"],
        successors=sets["successors"],
    )
