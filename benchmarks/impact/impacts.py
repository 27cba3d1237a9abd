"""Impacts: whether a note relies on what an announcement changes, on notes of ours beside real announcements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.impact.measuring import Figures, fit, measure
from benchmarks.impact.reading import Labelled, read_announcements, read_impacts
from refdesk.impact.changes import Change, read_change
from refdesk.impact.kinds import THRESHOLD
from refdesk.impact.matching import Match, compare, match, read_passages
from refdesk.impact.products import find_products


def run(data: Path, part: str, *, show: bool = False) -> Figures:
    """Return the figures of a part of the labelled pairs; `show` prints what is wrong."""
    pairs = read_impacts(part)
    found = [judge(change, pair.other) for pair, change in zip(pairs, read_changes(data, pairs), strict=True)]
    told = [each is not None and each.confidence >= THRESHOLD for each in found]
    if show:
        for pair, each, tells in zip(pairs, found, told, strict=True):
            if tells != pair.holds:
                evidence = {name: value for name, value in each.evidence.items() if value} if each else {}
                print(f"{'false' if tells else 'missed'} {pair.one}: {pair.other}\n    {evidence}")
    return measure([pair.holds for pair in pairs], told)


def run_by_products(data: Path, part: str) -> Figures:
    """Return the figures of telling wherever the same product is named: what the rest has to beat."""
    pairs = read_impacts(part)
    changes = read_changes(data, pairs)
    told = [
        change is not None
        and change.kind != "releases"
        and bool(change.products & {mention.product for mention in find_products(pair.other)})
        for pair, change in zip(pairs, changes, strict=True)
    ]
    return measure([pair.holds for pair in pairs], told)


def judge(change: Change | None, note: str) -> Match | None:
    """Return what a note relies on of a change."""
    return match(change, list(read_passages("", note))) if change is not None else None


def read_changes(data: Path, pairs: Sequence[Labelled]) -> list[Change | None]:
    """Return what the announcement of each pair changes."""
    announcements = read_announcements(data, [pair.one for pair in pairs])
    changes = {id: read_change(each) for id, each in announcements.items()}
    return [changes[pair.one] for pair in pairs]


def fit_weights(data: Path) -> Mapping[str, float]:
    """Return the weights that the development half gives."""
    pairs = read_impacts("dev")
    compared = [
        (evidence, pair.holds)
        for pair, change in zip(pairs, read_changes(data, pairs), strict=True)
        if change is not None
        for evidence in (compare(change, next(read_passages("", pair.other))),)
        if evidence is not None
    ]
    return fit([evidence for evidence, _ in compared], [holds for _, holds in compared])
