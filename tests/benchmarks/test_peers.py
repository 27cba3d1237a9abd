"""The comparison with rivals measures what it says, and notices who loses notes or answers with what is outdated."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import page
from benchmarks.peers.client import PeerError, list_marked
from benchmarks.peers.filling import Keeper, fill
from benchmarks.peers.installing import install, list_rivals
from benchmarks.peers.libraries import Library
from benchmarks.peers.material import KINDS, Writer, make_facts
from benchmarks.peers.measuring import (
    FORMS,
    check_keeping,
    measure_corrections,
    measure_kills,
    measure_quality,
    measure_searches,
    measure_start,
    measure_stores,
)
from benchmarks.peers.rival import Note
from benchmarks.peers.servers import Refdesk
from benchmarks.results import describe_run

TINY = FORMS["tiny"]


class Honest(Library):
    """A rival that keeps what it acknowledges."""

    name = "honest"
    package = "none"
    script = "none"
    settings = "none"
    corrects = "`replace`"
    manner: ClassVar[str] = "honest"

    def command(self, home: Path) -> Sequence[str]:
        return [sys.executable, str(Path(__file__).with_name("library.py")), self.manner]


class Late(Honest):
    """One that answers before it writes."""

    name = manner = "late"


class Stale(Honest):
    """One that shows what was replaced."""

    name = manner = "stale"


class Silent(Honest):
    """One that is never filled."""

    name = manner = "silent"


def test_who_loses_what_it_acknowledged_is_found_out(tmp_path: Path) -> None:
    figures = measure_kills([Honest(tmp_path), Late(tmp_path)], TINY)
    assert figures["honest"]["lost"] == 0
    assert figures["late"]["lost"] > 0
    assert all(each["acknowledged"] >= each["kills"] == TINY.kills for each in figures.values())
    stores = measure_stores([Honest(tmp_path), Late(tmp_path)], TINY)
    assert [stores["honest"][clients]["lost"] for clients in ("1", "2")] == [0, 0]
    assert stores["late"]["2"]["lost"] > 0


def test_who_answers_with_what_is_outdated_is_found_out(tmp_path: Path) -> None:
    figures = measure_corrections([Honest(tmp_path), Stale(tmp_path)], TINY)
    assert [figures["honest"]["corrected"][kind]["outdated shown"] for kind in KINDS] == [0, 0, 0]
    assert figures["honest"]["corrected"]["new wording"]["current first"] == TINY.facts
    assert figures["stale"]["corrected"]["old wording"]["outdated first"] == TINY.facts
    # Whoever only adds has the older ones, however honest the store is.
    assert figures["honest"]["added"]["old wording"]["outdated shown"] == TINY.facts


def test_the_order_of_a_collection_says_nothing_of_what_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFDESK_TEST_DATA", str(tmp_path))
    folder = tmp_path / "retrieval" / "in-order"
    folder.mkdir(parents=True)
    numbers = range(200)
    documents = [{"_id": f"d{n}", "title": "", "text": f"text {n}"} for n in numbers]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    questions = [{"_id": f"q{n}", "text": "nothing has these words"} for n in numbers]
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    form = replace(TINY, collections={folder.name: 10})
    # Finding nothing, it answers with its oldest.
    figures = measure_quality([Honest(tmp_path)], form, tmp_path / "vectors")["honest"][folder.name]
    assert figures["questions"] == 10
    assert figures["ndcg"] < 0.2


def test_a_door_that_keeps_nothing_over_a_clean_end_is_not_held_against_the_rival(tmp_path: Path) -> None:
    class Forgetful(Honest):
        def list_keys(self, home: Path) -> set[str]:
            return super().list_keys(home / "elsewhere")

    check_keeping(Honest(tmp_path))
    with pytest.raises(PeerError, match="its door is at fault"):
        check_keeping(Forgetful(tmp_path))


def test_searches_are_timed_and_nothing_is_left_running(tmp_path: Path) -> None:
    rival = Honest(tmp_path)
    figures = measure_searches([rival], TINY, tmp_path / "filled")["honest"]["30"]
    assert figures["count"] == TINY.searches
    assert figures["p50"] <= figures["p95"]
    assert figures["memory"] > 1_000_000
    assert figures["disk"] > 0
    assert figures["fill seconds"] >= 0
    assert "seconds" in measure_start([rival], TINY, len)["honest"]
    client = rival.open(tmp_path)
    assert len(list_marked(client.mark)) == 1
    client.close()
    assert list_marked(client.mark) == []


def test_what_was_filled_once_is_searched_again_and_who_was_too_slow_is_not_tried_with_more(tmp_path: Path) -> None:
    tries: list[int] = []

    class Slow(Honest):
        def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
            tries.append(len(notes))
            if seconds < 60:
                raise subprocess.TimeoutExpired("fill", seconds)
            super().fill(home, notes, vectors, seconds)

    rival, notes = Slow(tmp_path), Writer().write(3)
    impatient, patient = (Keeper(tmp_path / "filled", seconds) for seconds in (1.0, 60.0))
    assert "not filled within 1 s" in impatient.fill(rival, notes[:2])[1]["error"]
    assert "not filled with 2" in impatient.fill(rival, notes)[1]["error"]
    assert "not filled within 1 s" in impatient.fill(rival, notes[:2])[1]["error"]
    assert tries == [2]
    home, figures = patient.fill(rival, notes)
    assert rival.list_keys(home) == {note.key for note in notes}
    assert patient.fill(rival, notes) == (home, figures) == impatient.fill(rival, notes)
    assert tries == [2, 3]


def test_filling_is_waited_for_as_long_as_it_may_take(tmp_path: Path) -> None:
    assert fill(Silent(tmp_path), tmp_path, Writer().write(1), None, 1.0)["error"] == "no answer within 1 s"


def test_numbers_of_notes_that_were_not_searched_now_keep_their_figures_and_their_run() -> None:
    first, second = (make_result(refdesk=ms, slow=90.0) for ms in (4.0, 5.0))
    first["parts"]["stores"]["form"] = "full"
    for each in second["parts"]["stores"]["figures"].values():
        each["8"] = each.pop("1")
    text = page.render(peers.merge(peers.merge(None, first), second))
    runs = dict(re.findall(r"\*\*(stores, \d clients?)\*\*.*`(full|tiny)`", text))
    assert runs == {"stores, 1 client": "full", "stores, 8 clients": "tiny"}
    assert "| refdesk | 4.0 ms |" in text
    assert "| refdesk | 5.0 ms |" in text
    assert text.index("### One client") < text.index("### 8 clients at once")


def test_who_cannot_be_started_is_said_so_and_costs_nobody_else(tmp_path: Path) -> None:
    class Broken(Honest):
        name = "broken"

        def command(self, home: Path) -> Sequence[str]:
            return [sys.executable, "-c", "raise SystemExit(1)"]

    rivals = [Broken(tmp_path), Honest(tmp_path)]
    assert "ended" in measure_stores(rivals, TINY)["broken"]["1"]["error"]
    figures = measure_kills(rivals, TINY)
    assert "ended" in figures["broken"]["error"]
    assert figures["honest"]["kills"] == TINY.kills


def test_refdesk_is_asked_as_everybody_is(tmp_path: Path) -> None:
    rival = Refdesk(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    first, second = Writer().write(2)
    rival.fill(home, [first], tmp_path / "vectors", 300)
    client = rival.open(home)
    try:
        handle = rival.store(client, second)
        assert rival.search(client, second.title)[0].key == second.key
        assert rival.correct(client, handle, second) != handle
    finally:
        client.close()
    assert rival.list_keys(home) == {first.key, second.key}


def test_facts_have_values_of_their_own_that_no_question_gives_away() -> None:
    facts = make_facts(300)
    values = [value for fact in facts for value in fact.values]
    assert len(set(values)) == len(values) == 900
    assert len({fact.notes[0].title for fact in facts}) == 300
    for fact in facts:
        assert all(value in note.body for value, note in zip(fact.values, fact.notes, strict=True))
        assert not any(value in question for value in fact.values for question in fact.questions.values())


def make_result(**stores: float) -> dict[str, Any]:
    figures = {name: {"1": {"p50": p50, "p95": 2 * p50, "lost": 0, "acknowledged": 9}} for name, p50 in stores.items()}
    part = {**describe_run(), "form": "tiny", "seconds": 1, "figures": figures}
    facts = {"version": "1", "package": "p", "door": "d", "settings": "s", "corrects": "", "server": True}
    return {"rivals": dict.fromkeys(stores, facts), "absent": {"gone": "no node"}, "parts": {"stores": part}}


def test_the_page_says_first_where_a_rival_is_ahead() -> None:
    text = page.render(make_result(refdesk=30.0, quick=10.0, slow=90.0))
    assert text.index("## Where others are ahead") < text.index("## Stores")
    assert "| [a store, 1 client, p50](#stores) | 30.0 ms | quick: 10.0 ms | 3.00 × |" in text
    assert page.REASONS["stores"] in text
    assert "gone is not compared: no node" in text
    assert "Nowhere in this run." in page.render(make_result(refdesk=5.0, slow=90.0))


def test_who_loses_notes_is_not_ranked_by_the_time_of_its_stores() -> None:
    result = make_result(refdesk=30.0, quick=10.0)
    result["parts"]["stores"]["figures"]["quick"]["1"]["lost"] = 3
    text = page.render(result)
    assert "Nowhere in this run." in text
    assert "quick: 3 of 9 with 1 client." in text


def test_everything_that_was_lost_is_told() -> None:
    result = make_result(refdesk=30.0, quick=10.0)
    figures = result["parts"]["stores"]["figures"]["quick"]
    figures["8"] = {**figures["1"], "lost": 2}
    result["parts"]["kills"] = {
        **result["parts"]["stores"],
        "figures": {"quick": {"kills": 3, "lost": 1, "acknowledged": 5}},
    }
    assert "quick: 1 of 5 after `kill -9`, 2 of 9 with 8 clients." in page.render(result)


def test_what_a_rival_says_in_lines_stays_within_its_row() -> None:
    result = make_result(refdesk=30.0, quick=10.0)
    result["parts"]["stores"]["figures"]["quick"]["1"]["why"] = "database is locked\n[SQL: a | b"
    assert "| database is locked [SQL: a / b |" in page.render(result)


def test_the_smallest_rival_is_installed_and_compared() -> None:
    if os.environ.get("REFDESK_PEERS") != "1":
        pytest.skip("installs a rival: REFDESK_PEERS=1 asks for it")
    [rival] = list_rivals(["server-memory"])
    try:
        install(rival)
    except PeerError as error:
        pytest.skip(str(error))
    assert measure_start([rival], TINY, len)["server-memory"]["tools"] == 9
    assert measure_kills([rival], TINY)["server-memory"]["kills"] == 1
    corrected = measure_corrections([rival], TINY)["server-memory"]["corrected"]
    assert corrected["new wording"]["current first"] == TINY.facts
