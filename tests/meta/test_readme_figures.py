"""The figures of the README are those of the pages that they link to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from benchmarks.peers import page
from benchmarks.results import FOLDER, read_result
from tests.conftest import REPOSITORY

NUMBER = re.compile(r"(?<![\w.,])\d*\.?\d+(?![\w.]*\w)")
LINK = re.compile(r"\]\(docs/benchmarks/(?P<page>\w+)\.md(?:#(?P<anchor>[\w-]+))?\)")
OURS, THEIRS = "search_knowledge", "FTS5 porter (peer)"
COLLECTIONS = ("emanual", "cacm", "scifact", "xquad-en", "xquad-zh")


class Row(NamedTuple):
    """A row of the table: what is measured, refdesk's figures, those beside them, and where both are from."""

    what: str
    ours: str
    theirs: str
    command: str


def read_rows(readme: str) -> list[Row]:
    section = readme.partition("\n## Measured\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def read_section(row: Row) -> str:
    """Return the part of a page that a row links to."""
    found = LINK.search(row.command)
    assert found is not None, f"{row.what}: no page has its figures"
    text = (FOLDER / f"{found['page']}.md").read_text(encoding="utf-8")
    if found["anchor"] is None:
        return text
    _, heading, rest = text.partition(f"\n## {found['anchor']}\n")
    assert heading, f"{row.what}: the page has no such heading"
    return rest.partition("\n## ")[0]


def list_figures(row: Row) -> list[str]:
    """Return the numbers of a row's figures as they are written, in order."""
    return NUMBER.findall(row.ours) + NUMBER.findall(row.theirs)


def find(section: str, patterns: Sequence[str]) -> list[float]:
    """Return what each pattern has in its groups; all places where it is found count."""
    values: list[float] = []
    for pattern in patterns:
        found = re.findall(pattern, section, re.MULTILINE)
        assert found, f"nothing on the page is {pattern}"
        values += [float(each) for groups in found for each in ((groups,) if isinstance(groups, str) else groups)]
    return values


def is_rounded(written: str, value: float) -> bool:
    """Return whether a figure is a value rounded to as many digits as it is written with."""
    digits = len(written.partition(".")[2])
    return abs(float(written) - value) <= 0.5 * 10**-digits + 1e-9


def of_collections(ranking: str) -> list[str]:
    return [rf"^{name} +{re.escape(ranking)} +([\d.]+)" for name in COLLECTIONS]


NUMBERS = r" +([\d.]+)" * 4
DRAWINGS = r"^drawing \d: 14 skills of 20 .*\n(?:  .*\n)*?  {} +fused +2 turns +hit@1 ([\d.]+)"
PATTERNS = {
    "Start to the first": [
        r"^desk runs, CPU +([\d.]+)",
        r"^desk runs, wall +([\d.]+)",
        r"^no desk, kept answers, CPU of all +([\d.]+)",
        r"^no desk, kept answers, wall +([\d.]+)",
        r"^no desk yet, CPU of all +([\d.]+)",
        r"^no desk yet, wall +([\d.]+)",
    ],
    "961 real updates": [r"^first sync, found by words +([\d.]+)", r"^all vectors +([\d.]+)"],
    "Hybrid search": [r"^search, filters, facets +([\d.]+)", r"^a plain FTS5 table \(peer\) +([\d.]+)"],
    "Keyword search": [r"(?s)^100000 documents.*?^  8 words +[\d.]+ ms +FTS5 +[\d.]+ ms +ratio +([\d.]+)"],
    "Store a note": [
        r"^handler   1 writers.*?p95 +([\d.]+)",
        r"^handler  32 writers.*?p95 +([\d.]+)",
        r"^REST      1 writers.*?p95 +([\d.]+)",
        r"^REST     32 writers.*?p95 +([\d.]+)",
    ],
    "Overhead on": [r"^search .*\+ ([\d.]+) ms$", r"^search +bare +([\d.]+)"],
    "nDCG@10": [*of_collections(OURS), *of_collections(THEIRS)],
    "One of four": [
        r"^  as search_everything +([\d.]+) +([\d.]+) +[\d.]+$",
        r"^  plain reciprocal rank \(peer\) +([\d.]+) +([\d.]+) +[\d.]+$",
    ],
    "All four know": [
        rf"^  as search_everything{NUMBERS}",
        rf"^  plain reciprocal rank \(peer\){NUMBERS}",
        rf"^  one toolset has all{NUMBERS}",
    ],
    "Skills learned": [DRAWINGS.format(r"skills \(rules\)"), DRAWINGS.format("raw transcripts")],
}
"""For each row, by how it begins, where its figures stand on the page, in the row's order."""

PEERS = ("start to the list of tools", "a store, 1 client, p50", "a search, 1,000 notes, p50")


def list_peers() -> Iterator[float]:
    """Yield refdesk's figures beside other servers, then those of the best that keep what they acknowledge."""
    result = read_result("peers")
    assert result is not None
    losers = {*page.list_losers(result), page.OURS}
    measures = {measure.title: measure.values for measure in page.list_measures(result)}
    yield from (measures[title][page.OURS] for title in PEERS)
    for title in PEERS:
        yield min(value for name, value in measures[title].items() if name not in losers)


def list_values(row: Row) -> list[float]:
    if row.what.startswith("Beside other"):
        return list(list_peers())
    [patterns] = [patterns for start, patterns in PATTERNS.items() if row.what.startswith(start)]
    return find(read_section(row), patterns)


ROWS = read_rows((REPOSITORY / "README.md").read_text(encoding="utf-8"))


def test_every_row_of_the_readme_has_its_page() -> None:
    assert len(ROWS) == len(PATTERNS) + 1
    assert all(read_section(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.what.partition(",")[0] for row in ROWS])
def test_a_figure_of_the_readme_is_that_of_its_page(row: Row) -> None:
    written, values = list_figures(row), list_values(row)
    assert len(written) == len(values), f"{written} are not as many as {values}"
    wrong = [f"{one} is {value}" for one, value in zip(written, values, strict=True) if not is_rounded(one, value)]
    assert wrong == []


@pytest.mark.parametrize(("written", "value"), [("1.2", 1.26), (".98", 0.974), ("34", 34.6), ("0.6", 0.4)])
def test_a_planted_figure_that_is_of_no_page_is_found(written: str, value: float) -> None:
    assert not is_rounded(written, value)


def test_figures_are_read_as_they_are_written() -> None:
    row = Row("x", "3 ms; 34 ms (over REST 9; .120)", "FTS5 with porter: 12.6 ×, xquad-en 1 ×", "")
    assert list_figures(row) == ["3", "34", "9", ".120", "12.6", "1"]
