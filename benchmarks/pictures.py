"""Bars and lines as SVG, for pages that are read where pictures are shown on white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, LABELS, VALUES = 720, 170, 110
BAR, GAP, TOP = 18, 8, 44
COLOURS = ("#0b6bcb", "#7fb3e6")
OTHERS = ("#8a8f98", "#c5c8cd")
LINES = ("#0b6bcb", "#d1242f", "#1a7f37", "#9a6700", "#57606a", "#8250df")
LEFT, BOTTOM, HEIGHT = 70, 50, 380


def draw_bars(
    title: str,
    rows: Mapping[str, Sequence[float | None]],
    unit: str,
    *,
    series: Sequence[str] = (),
    ours: str = "refdesk",
) -> str:
    """Return a picture of horizontal bars, in the order given; lengths are proportional to the values.

    Args:
        title: What is shown.
        rows: One or two values for each name; `None` where there is none.
        unit: Of the values.
        series: What the values are called, where there are two.
        ours: The name whose bars have the other colour.
    """
    most = max((value for values in rows.values() for value in values if value is not None), default=1.0) or 1.0
    room, lines, y = WIDTH - LABELS - VALUES, list[str](), TOP
    for name, values in rows.items():
        colours = COLOURS if name == ours else OTHERS
        lines.append(_text(LABELS - 10, y + BAR * len(values) / 2 + 5, name, anchor="end", is_bold=name == ours))
        for value, colour in zip(values, colours, strict=False):
            length = max(1.0, value / most * room) if value is not None else 0.0
            lines.append(f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR - 3}" fill="{colour}"/>')
            lines.append(_text(LABELS + length + 6, y + BAR - 6, "–" if value is None else f"{value:,.4g} {unit}"))
            y += BAR
        y += GAP
    said = f"{title}: {', then '.join(series)}" if series else title
    head = _text(10, 24, said, is_bold=True)
    return _frame(said, y, f"{head}{''.join(lines)}")


def draw_lines(title: str, lines: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str) -> str:
    """Return a picture of lines on logarithmic scales, on which a straight one is a power: what is steeper grows more.

    Args:
        title: What is shown.
        lines: Points of each name, their coordinates above 0.
        across: What the first coordinate is.
        up: What the second one is.
    """
    points = [point for line in lines.values() for point in line]
    scales = [_Scale([point[axis] for point in points]) for axis in (0, 1)]
    right, bottom = WIDTH - VALUES, HEIGHT - BOTTOM

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return LEFT + scales[0].get(point[0]) * (right - LEFT), bottom - scales[1].get(point[1]) * (bottom - TOP)

    said = f"{title}, {up}"
    drawn = [_text(10, 24, said, is_bold=True), _text(right, HEIGHT - 10, across, anchor="end")]
    for value in scales[0].ticks:
        drawn += [_text(place((value, scales[1].low))[0], bottom + 18, _spell_tick(value), anchor="middle")]
    for value in scales[1].ticks:
        y = place((scales[0].low, value))[1]
        drawn.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#d8dee4"/>')
        drawn.append(_text(LEFT - 8, y + 4, _spell_tick(value), anchor="end"))
    ends = _spread([place(line[-1])[1] for line in lines.values()])
    for (name, line), colour, end in zip(lines.items(), LINES, ends, strict=False):
        places = [place(point) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
        drawn.append(_text(right + 10, end + 4, name, colour=colour))
    return _frame(f"{said}, by {across}", HEIGHT, "".join(drawn))


class _Scale:
    """A logarithmic scale over some values; its ticks are powers of ten, and their double and fivefold where few."""

    def __init__(self, values: Sequence[float]) -> None:
        least, most = min(values), max(values)
        powers = range(floor(log10(least)), ceil(log10(most)) + 1)
        every = [digit * 10.0**power for power in powers for digit in ((1, 2, 5) if len(powers) < 5 else (1,))]
        self.low = max([tick for tick in every if tick <= least], default=least)
        self._high = max(min([tick for tick in every if tick >= most], default=most), self.low * 2)
        self.ticks = [tick for tick in every if self.low <= tick <= self._high]

    def get(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        return log10(value / self.low) / log10(self._high / self.low)


def _spell_tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _spread(places: Sequence[float]) -> list[float]:
    """Return heights for names, as near as may be to where their lines end, and none over another."""
    moved, last = dict[int, float](), float("-inf")
    for number in sorted(range(len(places)), key=places.__getitem__):
        last = moved[number] = max(places[number], last + 16)
    return [moved[number] for number in range(len(places))]


def _frame(said: str, height: float, inner: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(said)}" font-family="system-ui, sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{inner}</svg>\n'
    )


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", is_bold: bool = False, colour: str = "#1c1f23"
) -> str:
    weight = ' font-weight="600"' if is_bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} fill="{colour}">{escape(text)}</text>'
