"""Bars as SVG, for pages that are read where pictures are shown on white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, LABELS, VALUES = 720, 170, 110
BAR, GAP, TOP = 18, 8, 44
COLOURS = ("#0b6bcb", "#7fb3e6")
OTHERS = ("#8a8f98", "#c5c8cd")


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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" '
        f'aria-label="{escape(said)}" font-family="system-ui, sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{head}{"".join(lines)}</svg>\n'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", is_bold: bool = False) -> str:
    weight = ' font-weight="600"' if is_bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} fill="#1c1f23">{escape(text)}</text>'
