"""What is measured of each engine is kept part by part, and what follows from it follows from all that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth, growth_page, report, results
from benchmarks.growth_page import MACHINE, PLAIN
from benchmarks.results import describe_run

WHATS = {
    "search natural, ms": 2.0,
    "searches a second, 1 client": 300.0,
    "searches a second, 8 clients": 900.0,
    "searches a second, 8 clients, 16 orgs": 700.0,
    "processor of a search, ms": 2.0,
    "processor of a note, ms": 4.0,
    "bytes a note": 5000.0,
    "notes stored a second, 64 in one org": 100.0,
    "notes filled in a second": 500.0,
}


def make_part(engine: str, notes: int, power: float) -> dict[str, Any]:
    """Return a part whose figures grow by a power of the size."""
    growing = (notes / 1000) ** power
    figures = {what: {engine: value * growing, PLAIN: value, MACHINE: 0.1} for what, value in WHATS.items()}
    return {
        **describe_run(),
        "engine": engine,
        "notes": notes,
        "orgs": 16,
        "seconds": 60,
        "filling": 20,
        "figures": figures,
    }


@pytest.fixture
def explanation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (growth, report, results):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    page = tmp_path / "scale.md"
    page.write_text(f"# Before\n\n{growth_page.START}{growth_page.END}\nAfter.\n")
    monkeypatch.setattr(growth, "EXPLANATION", page)
    return page


def test_parts_are_kept_beside_others_and_beside_what_other_commands_printed(explanation: Path) -> None:
    folder = explanation.parent
    growth.keep("postgres 10000", make_part("postgres", 10_000, 0.5))
    report.keep("engines", "cluster", {"status": 0, "seconds": 4, "output": ["search topic: 1.3"]})
    growth.keep("sqlite 1000", make_part("sqlite", 1000, 0.0))
    growth.keep("postgres 1000", make_part("postgres", 1000, 0.5))
    kept = json.loads((folder / "engines.json").read_text())
    assert list(kept["growth"]) == ["sqlite 1000", "postgres 1000", "postgres 10000"]
    assert list(kept["commands"]) == ["cluster"]
    page = (folder / "engines.md").read_text()
    assert page == report.render("engines", kept)
    assert "| search natural, ms | 6.32 (3.16) | 2.00 | 0.10 |" in page, (
        "10,000 notes: beside plain SQL in the same run"
    )
    assert "| search natural | – | 0.50 | 0.00 |" in page, "how it grows"
    assert "search topic: 1.3" in page


def test_what_so_many_agents_take_is_reckoned_from_what_was_measured(explanation: Path) -> None:
    for notes in (1000, 10_000):
        growth.keep(f"postgres {notes}", make_part("postgres", notes, 0.5))
    told = explanation.read_text()
    assert told.startswith("# Before\n")
    assert told.endswith("\nAfter.\n")
    # 16,667 searches a second, of 2 ms at 1,000 notes and so of 20 ms at 100,000.
    assert "16,667 searches a second, at 20.0 ms of a processor each" in told
    assert "keep 333 cores busy" in told
    assert "reckoned on from 10,000 notes" in told
    for picture in growth_page.list_pictures(growth.read_parts()):
        assert (explanation.parent / picture).read_text().count("<polyline") >= 1


def test_a_part_is_expected_to_take_what_the_smaller_one_says() -> None:
    parts = {"postgres 1000": make_part("postgres", 1000, 0.5)}
    assert growth.guess_seconds(parts, "postgres", 10_000) == pytest.approx(growth.SLACK * (200 + 40))
    assert growth.guess_seconds(parts, "citus", 10_000) == 0


def test_nothing_is_expected_to_become_cheaper_with_size(explanation: Path) -> None:
    for notes in (1000, 10_000):
        growth.keep(f"postgres {notes}", make_part("postgres", notes, -0.5))
    # Plain SQL's takes the same at every size, so ours is expected to stay at what 10,000 notes took: 0.6 ms.
    assert "at 0.6 ms of a processor each" in explanation.read_text()
