"""What `benchmarks.growth` kept: as a section of a page, as pictures, and as arithmetic for what nobody measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pictures import draw_lines
from benchmarks.results import FOLDER, REPOSITORY, name_run

ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "citus": "Citus", "neo4j": "Neo4j"}
PLAIN, MACHINE = "plain SQL", "the machine"
PAGE = "engines"
EXPLANATION = REPOSITORY / "docs" / "explanation" / "scale.md"
START, END = "<!-- measured -->\n", "<!-- /measured -->\n"

SEARCH, STORE = "search natural, ms", "notes stored a second, {}"
COSTS = ("processor of a search, ms", "processor of a note, ms", "bytes a note")
GROWING = (*(f"search {kind}, ms" for kind in ("topic", "natural", "frequent")), *COSTS)
"""What is to grow as little as may be."""

ORGS, NOTES, AGENTS = 10_000, 100_000, 10_000_000
SEARCH_EVERY, NOTE_EVERY = 600, 3600
"""Seconds from one search, and from one note, of an agent to its next."""

Figures = dict[str, dict[str, float]]
"""By what was measured, and by side."""

Parts = Mapping[str, Mapping[str, Any]]


def name_part(engine: str, notes: int) -> str:
    """Return what a part is kept under."""
    return f"{engine} {notes}"


def put_into(page: str, parts: Parts) -> str:
    """Return a page with what follows from the parts between its marks."""
    before, _, rest = page.partition(START)
    return f"{before}{START}{summarise(parts)}{END}{rest.partition(END)[2]}"


# Figures


def list_sizes(parts: Parts) -> dict[int, dict[str, Mapping[str, Any]]]:
    """Return the parts by size and engine."""
    sizes: dict[int, dict[str, Mapping[str, Any]]] = {}
    for part in parts.values():
        sizes.setdefault(part["notes"], {})[part["engine"]] = part
    return dict(sorted(sizes.items()))


def get_figures(parts: Parts, side: str, what: str) -> dict[int, float]:
    """Return a figure of an engine by size; plain SQL's and the machine's are those measured with PostgreSQL."""
    beside = side if side in ENGINES else "postgres"
    every = {
        part["notes"]: part["figures"].get(what, {}).get(side) for part in parts.values() if part["engine"] == beside
    }
    return {notes: value for notes, value in sorted(every.items()) if value is not None}


def get_exponent(figures: Mapping[int, float]) -> float | None:
    """Return the power of the size with which figures grow, by least squares; `None` for a single size."""
    if len(figures) < 2:
        return None
    slope, _ = np.polyfit([log(notes) for notes in figures], [log(value) for value in figures.values()], 1)
    return float(slope)


# The section


def render(parts: Parts) -> str:
    """Return the section."""
    lines = [
        "## By size, orgs and clients\n",
        "`python -m benchmarks.growth`. In brackets, how many times what plain SQL made in the same run.\n",
    ]
    lines += [f"![{title}]({picture})\n" for picture, title in list_pictures(parts).items()]
    for notes, engines in list_sizes(parts).items():
        lines += [f"### {notes:,} notes\n", *_list_rows(engines), ""]
    lines += ["### How it grows\n", *list_exponents(parts), "", "### The runs\n"]
    lines += [
        f"- {ENGINES[part['engine']]}, {part['notes']:,} notes, {part['seconds']} s: {name_run(dict(part))}"
        for part in parts.values()
    ]
    return "\n".join(lines) + "\n"


def _list_rows(engines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of one size; what plain SQL and the machine make is of the run with PostgreSQL, if there is one."""
    beside = engines.get("postgres") or next(iter(engines.values()))
    names = [name for name in ENGINES if name in engines]
    yield f"| | {' | '.join([*(ENGINES[name] for name in names), PLAIN, MACHINE])} |"
    yield "|---|" + "---:|" * (len(names) + 2)
    whats = dict.fromkeys(what for part in engines.values() for what in part["figures"])
    for what in sorted(whats, key=lambda what: (what.startswith("processor"), what.endswith(" orgs"))):
        cells = [_show_beside(engines[name]["figures"].get(what, {}), name) for name in names]
        cells += [_show(beside["figures"].get(what, {}).get(side)) for side in (PLAIN, MACHINE)]
        yield f"| {what} | {' | '.join(cells)} |"


def _show_beside(figures: Mapping[str, float], name: str) -> str:
    value, plain = figures.get(name), figures.get(PLAIN)
    return _show(value) if value is None or not plain else f"{_show(value)} ({value / plain:.2f})"


def _show(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def list_exponents(parts: Parts) -> Iterator[str]:
    """Yield a table of growth exponents, where there is more than one size."""
    sides = [*(name for name in ENGINES if any(part["engine"] == name for part in parts.values())), PLAIN]
    yield "Growth exponents: 0, the size does not matter; 1, twice as much takes twice as long.\n"
    yield f"| | {' | '.join(ENGINES.get(side, side) for side in sides)} |"
    yield "|---|" + "---:|" * len(sides)
    for what in GROWING:
        exponents = [get_exponent(get_figures(parts, side, what)) for side in sides]
        cells = ["–" if exponent is None else f"{exponent:.2f}" for exponent in exponents]
        yield f"| {what.partition(', ms')[0]} | {' | '.join(cells)} |"


# Pictures


def list_pictures(parts: Parts) -> dict[str, str]:
    """Return the titles of the pictures, by file."""
    return {f"{PAGE}-{name}.svg": title for name, (title, *_) in _list_drawings(parts).items()}


def draw(parts: Parts) -> dict[str, str]:
    """Return the pictures by file."""
    return {
        f"{PAGE}-{name}.svg": draw_lines(title, lines, across, up)
        for name, (title, lines, across, up) in _list_drawings(parts).items()
    }


_Drawing = tuple[str, dict[str, Sequence[tuple[float, float]]], str, str]


def _list_drawings(parts: Parts) -> dict[str, _Drawing]:
    sides = {**ENGINES, PLAIN: PLAIN, MACHINE: "a round trip"}
    searches = {name: list(get_figures(parts, side, SEARCH).items()) for side, name in sides.items()}
    processors = {
        name: list(get_figures(parts, side, "processor of a search, ms").items()) for side, name in sides.items()
    }
    drawings: dict[str, _Drawing] = {
        "searches": ("A search as people ask, median", _drop_empty(searches), "notes", "ms"),
        "processor": ("Processor time of a search, client and server", _drop_empty(processors), "notes", "ms"),
    }
    # The largest size that says something of more than one engine.
    sizes = [notes for notes, engines in list_sizes(parts).items() if len(engines) > 1] or list(list_sizes(parts))
    engines = list_sizes(parts)[sizes[-1]]
    for many in ("", ", many orgs"):
        lines = {name: list(_list_rates(engines, side, bool(many))) for side, name in sides.items()}
        name = f"clients{'-orgs' if many else ''}"
        title = f"Searches, {sizes[-1]:,} notes{many or ', one org'}"
        drawings[name] = (title, _drop_empty(lines), "clients", "a second")
    return drawings


def _drop_empty(lines: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Sequence[tuple[float, float]]]:
    return {name: line for name, line in lines.items() if line}


def _list_rates(engines: Mapping[str, Mapping[str, Any]], side: str, is_many: bool) -> Iterator[tuple[float, float]]:
    part = engines.get(side if side in ENGINES else "postgres")
    for what, sides in part["figures"].items() if part else ():
        if what.startswith("searches a second") and what.endswith("orgs") == is_many and side in sides:
            yield float(what.split(", ")[1].split()[0]), max(sides[side], 0.01)


# Arithmetic


def summarise(parts: Parts) -> str:
    """Return the pictures, the exponents, and what so many orgs and agents would take on PostgreSQL."""
    folder = Path("..") / FOLDER.name
    lines = [f"![{title}]({folder / picture})\n" for picture, title in list_pictures(parts).items()]
    lines += [*list_exponents(parts), ""]
    figures = {what: get_figures(parts, "postgres", what) for what in COSTS}
    if all(figures.values()):
        lines += [*_list_needs(parts, figures), ""]
    return "\n".join(lines)


def _list_needs(parts: Parts, figures: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    measured = max(figures[COSTS[0]])
    searching, storing, size = (_reach(parts, what, NOTES) for what in COSTS)
    searches, stored, per_org = AGENTS / SEARCH_EVERY, AGENTS / NOTE_EVERY, AGENTS // ORGS
    crowd = list(get_figures(parts, "postgres", STORE.format("64 in one org")).values())[-1]
    filling = list(get_figures(parts, "postgres", "notes filled in a second").values())[-1]
    beyond = (
        ""
        if measured >= NOTES
        else f", reckoned on from {measured:,} notes by the exponent or by plain SQL's, whichever is the larger"
    )
    yield (
        f"{ORGS:,} orgs of {NOTES:,} notes and {AGENTS:,} agents, {per_org:,} in each, of whom each searches once in "
        f"{SEARCH_EVERY // 60} minutes and stores a note an hour, all at work at once, on PostgreSQL{beyond}:\n"
    )
    yield (
        f"- {ORGS * NOTES:,} notes of {size / 1000:.1f} kB are {ORGS * NOTES * size / 1e12:.1f} TB, with indexes and "
        "vectors."
    )
    yield (
        f"- {searches:,.0f} searches a second, at {searching:.1f} ms of a processor each, client and server together, "
        f"keep {searches * searching / 1000:,.0f} cores busy."
    )
    yield (
        f"- {stored:,.0f} notes a second, at {storing:.1f} ms each, keep {stored * storing / 1000:,.0f} cores busy; "
        "their vectors come on top, made by as many workers as one likes, or by a service."
    )
    yield (
        f"- An org of them stores {per_org / NOTE_EVERY:.2f} notes a second, and could store {crowd:,.0f} before its "
        f"own turns hold it up: {crowd * NOTE_EVERY / per_org:,.0f} times as many."
    )
    yield (
        f"- Filled at {filling:,.0f} notes a second by each loader on two cores, all of it takes "
        f"{ORGS * NOTES / filling / 86400:,.0f} days of one, so a day of as many."
    )


def _reach(parts: Parts, what: str, notes: int) -> float:
    """Return a figure of PostgreSQL at a size: measured there, or reckoned on from the largest one below.

    Nothing is expected to become cheaper with size, and nothing to grow less than it does in plain SQL.
    """
    figures = get_figures(parts, "postgres", what)
    if notes in figures:
        return figures[notes]
    largest = max([each for each in figures if each < notes], default=min(figures))
    exponents = [get_exponent(get_figures(parts, side, what)) or 0.0 for side in ("postgres", PLAIN)]
    return figures[largest] * (notes / largest) ** max(0.0, *exponents)
