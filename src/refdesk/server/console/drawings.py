"""Where the parts of a drawing go; the templates turn that into SVG. Lengths are in the drawing's own units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROW, LANE = 56, 18
"""Height of a row of a chain, and distance between its lanes."""

MOST_LANES = 6
MOST_ENDS = 8
"""Most links that are drawn on each side; all are listed."""


@dataclass(frozen=True, slots=True)
class Dot:
    """An entry of a chain: its place, and the line up to what replaced it, as an SVG path; the head has none."""

    x: float
    y: float
    line: str


@dataclass(frozen=True, slots=True)
class Rail:
    """A chain of supersessions, newest first."""

    width: int
    height: int
    dots: Sequence[Dot]


def draw_rail(ids: Sequence[str], successors: Mapping[str, str | None]) -> Rail:
    """Return where the entries of a chain go, and the lines from what was replaced to what replaced it.

    Args:
        ids: Newest first, one a row.
        successors: What directly replaced each.
    """
    rows = {id: row for row, id in enumerate(ids)}
    lanes = dict[str, int]()
    taken = set[str]()
    for id in ids:
        successor = successors.get(id)
        is_first = successor is not None and successor not in taken
        if successor is not None:
            taken.add(successor)
        inherited = lanes.get(successor, 0) if successor is not None and is_first else None
        lanes[id] = inherited if inherited is not None else min(MOST_LANES - 1, len(set(lanes.values())))
    dots = [_place(id, rows, lanes, successors.get(id)) for id in ids]
    width = (max(lanes.values(), default=0) + 1) * LANE
    return Rail(width, max(1, len(ids)) * ROW, dots)


def _place(id: str, rows: Mapping[str, int], lanes: Mapping[str, int], successor: str | None) -> Dot:
    x, y = _get_place(rows[id], lanes[id])
    if successor is None or successor not in rows:
        return Dot(x, y, "")
    to_x, to_y = _get_place(rows[successor], lanes[successor])
    bend = to_y + ROW / 2
    return Dot(x, y, f"M{x} {y}V{bend + ROW / 4}C{x} {bend} {to_x} {bend} {to_x} {bend - ROW / 4}V{to_y}")


def _get_place(row: int, lane: int) -> tuple[float, float]:
    return LANE / 2 + lane * LANE, ROW / 2 + row * ROW


@dataclass(frozen=True, slots=True)
class End:
    """A linked thing in the drawing: the height of its middle, and the link itself."""

    y: float
    link: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Star:
    """An entry with what links to it on the left, and what it links to on the right."""

    height: float
    middle: float
    incoming: Sequence[End]
    outgoing: Sequence[End]


def draw_star(links: Sequence[Mapping[str, Any]], row: float = 44.0) -> Star:
    """Return where an entry's links go, for the newest of each side."""
    sides = [[link for link in links if link["direction"] == side][-MOST_ENDS:] for side in ("in", "out")]
    height = row * max(1, *(len(side) for side in sides))
    incoming, outgoing = ([End(_spread(n, len(side), height), link) for n, link in enumerate(side)] for side in sides)
    return Star(height, height / 2, incoming, outgoing)


def _spread(place: int, count: int, height: float) -> float:
    return height * (place + 0.5) / count


@dataclass(frozen=True, slots=True)
class Mark:
    """A report in a plot: its place, and what it said."""

    x: float
    y: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Rates:
    """How often following a skill worked, report by report.

    Attributes:
        lines: A line for each version that was followed: its number, an SVG path, and where its name goes.
        marks: A mark for each report, on the line.
        last: The rate after the last report.
    """

    width: float
    height: float
    lines: Sequence[tuple[int, str, float, float]]
    marks: Sequence[Mark]
    last: float


SHARES = {"resolved": (1.0, 0.0), "likely_resolved": (0.5, 0.0), "likely_failed": (0.0, 0.5), "failed": (0.0, 1.0)}
"""What an outcome counts as: its shares of a success and of a failure."""


def draw_rates(reports: Sequence[tuple[int, str]], width: float = 640.0, height: float = 140.0) -> Rates:
    """Return the expected success rate of the version that was followed, after each report.

    Args:
        reports: The version and the outcome of each, oldest first.
        width: That of the drawing.
        height: That of the drawing; a rate of 1 is at its top.
    """
    tallies = dict[int, tuple[float, float]]()
    places = dict[int, list[tuple[float, float]]]()
    marks, last = list[Mark](), 0.5
    for number, (version, outcome) in enumerate(reports):
        good, bad = (old + new for old, new in zip(tallies.get(version, (0, 0)), SHARES[outcome], strict=True))
        tallies[version] = good, bad
        last = (1 + good) / (2 + good + bad)
        x, y = round(_spread(number, len(reports), width), 1), round(height * (1 - last), 1)
        places.setdefault(version, []).append((x, y))
        marks.append(Mark(x, y, outcome))
    lines = [
        (version, "M" + "L".join(f"{x} {y}" for x, y in points), *points[-1]) for version, points in places.items()
    ]
    return Rates(width, height, lines, marks, last)


@dataclass(frozen=True, slots=True)
class Month:
    """A month on a time line.

    Attributes:
        name: Such as `2027-03`.
        things: What falls into it, in order.
    """

    name: str
    x: float
    things: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Months in order, without a gap."""

    width: float
    step: float
    most: int
    months: Sequence[Month]


def draw_months(things: Mapping[str, Sequence[Mapping[str, Any]]], first: str, count: int) -> TimeLine:
    """Return a time line of `count` months from the first on, with what falls into each.

    Args:
        things: Those to show, by month, such as `2027-03`.
        first: The first month.
        count: How many months.
    """
    step = 40.0
    year, month = int(first[:4]), int(first[5:7])
    names = [f"{year + (month - 1 + n) // 12:04}-{(month - 1 + n) % 12 + 1:02}" for n in range(count)]
    months = [Month(name, step * (n + 0.5), things.get(name, ())) for n, name in enumerate(names)]
    return TimeLine(step * count, step, max((len(each.things) for each in months), default=0), months)
