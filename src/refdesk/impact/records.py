"""How impacts are kept: as metadata beside the documents, derived from them, but with none of their texts.

Each record is named by what it is about, `toolset/id` last, so that erasing a document erases the records about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from math import exp, log
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.impact.kinds import SEVERITY, THRESHOLD, ChangeKind
from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.impact.changes import Change
    from refdesk.impact.matching import Match
    from refdesk.model import Document, JsonObject, JsonValue
    from refdesk.protocols import Transaction

PENDING = "impact_pending"
"""A document that is to be examined: written in the commit that embeds it."""

CHANGE = "impact_change"
"""What an announcement changes; kept in the shared org."""

IMPACT = "impact"
"""An announcement and a document that relies on what it changes; due when the announcement takes effect."""

MARKS = "impact_marks"
"""The impacts on one document, so that showing the document takes only one record."""

REACH = "impact_reach"
"""The documents of an org that an announcement bears on."""

LEARNED = "impact_learned"
"""How many impacts an org confirmed and dismissed, by their grounds."""

MOST_LEARNED = 1.5
"""Judgements shift a confidence by at most this, in log odds: 0.5 becomes at most 0.82."""

Status: TypeAlias = Literal["open", "confirmed", "dismissed"]

_MAIN_EVIDENCE = ("series", "version", "former", "identified", "named only", "whole")


@dataclass(frozen=True, slots=True)
class Impact:
    """What an announcement does to a document of an org.

    Attributes:
        confidence: The confidence as computed, in [0, 1].
        grounds: The names under which judgements on it are counted.
        start, end: Offsets of the passage in the document's body.
        text_digest: The digest of the document's text when it was examined.
        by: Who judged it, or opened it again; empty if nobody did.
    """

    org: str
    announcement: str
    toolset: str
    id: str
    kind: ChangeKind
    due: date | None
    confidence: float
    grounds: tuple[str, ...]
    start: int
    end: int
    text_digest: str
    status: Status = "open"
    by: str = ""
    note: str = ""

    @property
    def key(self) -> MetadataKey:
        """Where it is kept."""
        return make_key(self.org, self.announcement, self.toolset, self.id)


@dataclass(frozen=True, slots=True)
class Learned:
    """How often an org confirmed and dismissed impacts, by their grounds."""

    counts: Mapping[str, tuple[int, int]]

    def adjust(self, impact: Impact) -> float:
        """Return an impact's confidence, adjusted by the org's judgements; 1 if it was confirmed, 0 if dismissed."""
        if impact.status != "open":
            return 1.0 if impact.status == "confirmed" else 0.0
        shift = sum(log((confirmed + 1) / (dismissed + 1)) for confirmed, dismissed in self._count(impact.grounds))
        shift = max(-MOST_LEARNED, min(MOST_LEARNED, shift / 2))
        odds = log(max(1e-6, impact.confidence) / max(1e-6, 1 - impact.confidence))
        return 1 / (1 + exp(-odds - shift))

    def is_told(self, impact: Impact) -> bool:
        """Return whether an impact is sure enough to be shown unasked."""
        return self.adjust(impact) >= THRESHOLD

    def _count(self, grounds: Iterable[str]) -> list[tuple[int, int]]:
        return [self.counts.get(name, (0, 0)) for name in grounds]


NOTHING_LEARNED = Learned({})


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the impacts on a document.

    Attributes:
        count: How many there are.
        worst: The kind of the most serious one.
        due: The earliest day on which one of them takes effect; `None` if none says.
    """

    count: int
    worst: ChangeKind
    due: date | None


def make_impact(change: Change, match: Match, document: Document) -> Impact:
    """Return the impact of a change on a document that relies on it."""
    main = [name for name in _MAIN_EVIDENCE if match.evidence.get(name)]
    grounds = (*(f"product {product}" for product in sorted(change.products)), f"by {main[0] if main else 'terms'}")
    return Impact(
        document.collection.org,
        change.id,
        document.collection.toolset,
        document.id,
        change.kind,
        change.due,
        round(match.confidence, 3),
        grounds,
        match.start,
        match.end,
        document.text_digest,
    )


def make_key(org: str, announcement: str, toolset: str, id: str) -> MetadataKey:
    """Return the key of the impact of an announcement on a document."""
    return MetadataKey(org, IMPACT, f"{announcement}/{toolset}/{id}")


def make_learned_key(org: str) -> MetadataKey:
    """Return the key of the counts of an org's judgements."""
    return MetadataKey(org, LEARNED, "judgements")


def make_change_key(announcement: str) -> MetadataKey:
    """Return the key of the record of what an announcement changes."""
    return MetadataKey(SHARED_ORG, CHANGE, announcement)


def make_pending(document: Document) -> Metadata:
    """Return the record of a document that is to be examined."""
    collection = document.collection
    key = MetadataKey(collection.org, PENDING, f"{collection.toolset}/{document.id}")
    return Metadata(key, {"toolset": collection.toolset, "id": document.id, "text_digest": document.text_digest})


def write_impact(impact: Impact) -> Metadata:
    """Return the record of an impact."""
    value: dict[str, JsonValue] = {
        name: getattr(impact, name)
        for name in (
            *("announcement", "toolset", "id", "kind", "confidence", "start", "end", "text_digest", "status", "by"),
            "note",
        )
    }
    value |= {"due": impact.due.isoformat() if impact.due else None, "grounds": list(impact.grounds)}
    due_at = datetime.combine(impact.due, time(), UTC) if impact.due else None
    return Metadata(impact.key, value, due_at=due_at)


def read_impact(org: str, value: JsonObject) -> Impact:
    """Return the impact that `write_impact` wrote."""
    due = value["due"]
    texts = {name: str(value[name]) for name in ("announcement", "toolset", "id", "text_digest", "by", "note")}
    return Impact(
        org=org,
        kind=cast("ChangeKind", value["kind"]),
        due=date.fromisoformat(str(due)) if due is not None else None,
        confidence=cast("float", value["confidence"]),
        grounds=tuple(cast("Sequence[str]", value["grounds"])),
        start=cast("int", value["start"]),
        end=cast("int", value["end"]),
        status=cast("Status", value["status"]),
        **texts,
    )


def make_mark_keys(org: str, toolset: str, ids: Sequence[str]) -> list[MetadataKey]:
    """Return the keys of the records that `read_impacts` takes."""
    return [*(MetadataKey(org, MARKS, f"{toolset}/{id}") for id in ids), make_learned_key(org)]


def read_impacts(org: str, records: Sequence[Metadata | None]) -> list[list[Impact]]:
    """Return for each document the impacts on it that are sure enough to be shown; see `make_mark_keys`."""
    *marks, learned = records
    known = read_learned(learned)
    return [[impact for impact in list_marked(org, record) if known.is_told(impact)] for record in marks]


def list_marked(org: str, record: Metadata | None) -> list[Impact]:
    """Return the impacts that a record of marks holds."""
    if record is None:
        return []
    return [read_impact(org, value) for value in cast("Sequence[JsonObject]", record.value["impacts"])]


def summarise(impacts: Sequence[Impact]) -> Summary | None:
    """Return a summary of impacts, or `None` if there are none."""
    if not impacts:
        return None
    worst = min(impacts, key=lambda impact: SEVERITY.index(impact.kind))
    return Summary(len(impacts), worst.kind, min((impact.due for impact in impacts if impact.due), default=None))


def read_learned(record: Metadata | None) -> Learned:
    """Return what was learned from an org's judgements."""
    if record is None:
        return NOTHING_LEARNED
    counts = cast("Mapping[str, Sequence[int]]", record.value["counts"])
    return Learned({name: (each[0], each[1]) for name, each in counts.items()})


async def put_impacts(transaction: Transaction, org: str, toolset: str, id: str, found: Sequence[Impact]) -> None:
    """Replace the impacts on a document by those found.

    Judgements stay: a dismissal whatever becomes of the texts, a confirmation while the document's text is unchanged.
    """
    mark_key = MetadataKey(org, MARKS, f"{toolset}/{id}")
    before = list_marked(org, await transaction.get_metadata(mark_key))
    kept = await _keep_judged(transaction, found, before)
    gone = {impact.announcement for impact in before} - {impact.announcement for impact in kept}
    await transaction.put_metadata([write_impact(impact) for impact in kept])
    await transaction.remove_metadata([make_key(org, announcement, toolset, id) for announcement in sorted(gone)])
    if kept:
        await transaction.put_metadata([write_marks(mark_key, kept)])
    elif before:
        await transaction.remove_metadata([mark_key])
    new = {impact.announcement for impact in kept} - {impact.announcement for impact in before}
    await _note_reach(transaction, org, f"{toolset}/{id}", new, gone)


def write_marks(key: MetadataKey, impacts: Iterable[Impact]) -> Metadata:
    """Return the record of the impacts on a document."""
    return Metadata(key, {"impacts": [write_impact(impact).value for impact in impacts]})


async def _keep_judged(transaction: Transaction, found: Sequence[Impact], before: Sequence[Impact]) -> list[Impact]:
    known = {impact.announcement: impact for impact in before}
    kept = [
        replace(impact, status=old.status, by=old.by, note=old.note)
        if (old := known.get(impact.announcement)) is not None and _still_holds(old, impact.text_digest)
        else impact
        for impact in found
    ]
    again = {impact.announcement for impact in kept}
    digest = kept[0].text_digest if kept else None
    return kept + [
        old for old in before if old.announcement not in again and old.status != "open" and _still_holds(old, digest)
    ]


def _still_holds(old: Impact, text_digest: str | None) -> bool:
    """Return whether a judgement still applies to the document as it is now."""
    return old.status == "dismissed" or (old.status == "confirmed" and text_digest in (None, old.text_digest))


async def _note_reach(transaction: Transaction, org: str, item: str, new: set[str], gone: set[str]) -> None:
    ids = sorted(new | gone)
    if not ids:
        return
    keys = [MetadataKey(org, REACH, id) for id in ids]
    for key, record in zip(keys, await transaction.get_many_metadata(keys), strict=True):
        items = set(list_reached(record))
        items = items | {item} if key.name in new else items - {item}
        if items:
            await transaction.put_metadata([Metadata(key, {"items": sorted(items)})])
        else:
            await transaction.remove_metadata([key])


def list_reached(record: Metadata | None) -> list[str]:
    """Return the documents, as `toolset/id`, that a record of reach holds."""
    return list(cast("Sequence[str]", record.value["items"])) if record is not None else []


async def judge(transaction: Transaction, impact: Impact, status: Status, by: str, note: str = "") -> Impact:
    """Confirm, dismiss or reopen an impact, update the counts, and return it as it is now."""
    judged = replace(impact, status=status, by=by, note=note)
    await transaction.put_metadata([write_impact(judged)])
    mark_key = MetadataKey(impact.org, MARKS, f"{impact.toolset}/{impact.id}")
    marked = list_marked(impact.org, await transaction.get_metadata(mark_key))
    others = [each for each in marked if each.announcement != impact.announcement]
    await transaction.put_metadata([write_marks(mark_key, [*others, judged])])
    key = make_learned_key(impact.org)
    counts = dict(read_learned(await transaction.get_metadata(key)).counts)
    for ground in impact.grounds:
        confirmed, dismissed = counts.get(ground, (0, 0))
        confirmed += (status == "confirmed") - (impact.status == "confirmed")
        dismissed += (status == "dismissed") - (impact.status == "dismissed")
        counts[ground] = (max(0, confirmed), max(0, dismissed))
    await transaction.put_metadata([Metadata(key, {"counts": {name: list(each) for name, each in counts.items()}})])
    return judged
