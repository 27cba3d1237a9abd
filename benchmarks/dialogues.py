"""Retrieval from long dialogues, as memory servers report it: LoCoMo and LongMemEval.

    python -m benchmarks.dialogues [--write]

Their data are licensed for research and not part of the repository: `dialogues/locomo10.json` and
`dialogues/longmemeval_s.json` in the folder of real records, as their authors publish them. Each conversation is a
collection of its own, kept in a store in a file and asked through `search_knowledge`, once with sessions and once with
turns as entries. No model answers or judges anything: what is measured is whether the evidence is found.

Others report either whether *any* evidence is among the first k or what *fraction* of it is; both are shown, besides
the reciprocal rank of the first evidence and nDCG@10. Questions without an answer are left out, and counted. Intervals
are 95 %, by drawing questions again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.quality import Judged, get_data_folder
from benchmarks.results import FOLDER, describe_run, name_run, read_result, write_result

Grain: TypeAlias = Literal["session", "turn"]
GRAINS: tuple[Grain, ...] = ("session", "turn")
DRAWS = 1000
KS = (5, 10)


@dataclass(frozen=True, slots=True)
class Asked:
    """A conversation with its questions.

    Attributes:
        collection: Sessions or turns as documents, questions and their evidence.
        kinds: What each question is about, as the data call it.
    """

    collection: Judged
    kinds: list[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question fared, each in [0, 1]; `any_hit` and `fraction` for each k of `KS`."""

    kind: str
    any_hit: tuple[float, ...]
    fraction: tuple[float, ...]
    reciprocal: float
    ndcg: float


def read_locomo(path: Path, grain: Grain) -> Iterator[Asked]:
    """Yield the conversations of `locomo10.json`: evidence is a turn, or a session that has one."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        documents, number = list[tuple[str, str]](), dict[str, int]()
        for session, date, turns in _list_sessions(sample["conversation"]):
            said = [_say(turn["speaker"], turn) for turn in turns]
            if grain == "session":
                number |= {turn["dia_id"]: len(documents) for turn in turns}
                documents.append((f"Session {session}, {date}", "\n".join(said)))
                continue
            for turn, text in zip(turns, said, strict=True):
                number[turn["dia_id"]] = len(documents)
                documents.append((f"Session {session}, {date}", text))
        questions = [(each, _read_evidence(each, number)) for each in sample["qa"]]
        asked = [(each, found) for each, found in questions if found]
        yield Asked(
            Judged(
                f"locomo-{sample['sample_id']}-{grain}",
                documents,
                [each["question"] for each, _ in asked],
                [dict.fromkeys(found, 1) for _, found in asked],
            ),
            [f"category {each['category']}" for each, _ in asked],
        )


def _list_sessions(conversation: Mapping[str, Any]) -> Iterator[tuple[int, str, list[dict[str, Any]]]]:
    number = 1
    while f"session_{number}" in conversation:
        yield number, conversation.get(f"session_{number}_date_time", ""), conversation[f"session_{number}"]
        number += 1


def _say(speaker: str, turn: Mapping[str, Any]) -> str:
    picture = f" [shows {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{speaker}: {turn['text']}{picture}"


def _read_evidence(question: Mapping[str, Any], number: Mapping[str, int]) -> list[int]:
    # Category 5 asks for what was never said; some evidence is several ids in one string.
    if question["category"] == 5:
        return []
    named = [each for said in question.get("evidence", ()) for each in said.replace(";", " ").split()]
    return sorted({number[each] for each in named if each in number})


def read_longmemeval(path: Path, grain: Grain) -> Iterator[Asked]:
    """Yield the haystacks of `longmemeval_s.json`, a question each; those that end in `_abs` have no answer."""
    for each in json.loads(path.read_text(encoding="utf-8")):
        if each["question_id"].endswith("_abs"):
            continue
        documents, relevant = list[tuple[str, str]](), list[int]()
        sessions = zip(each["haystack_session_ids"], each["haystack_dates"], each["haystack_sessions"], strict=True)
        for name, date, turns in sessions:
            if grain == "session":
                relevant += [len(documents)] if name in each["answer_session_ids"] else []
                documents.append((f"Session of {date}", "\n".join(f"{t['role']}: {t['content']}" for t in turns)))
                continue
            for turn in turns:
                relevant += [len(documents)] if turn.get("has_answer") else []
                documents.append((f"Session of {date}", f"{turn['role']}: {turn['content']}"))
        if relevant:
            name = f"longmemeval-{each['question_id']}-{grain}"
            collection = Judged(name, documents, [each["question"]], [dict.fromkeys(relevant, 1)])
            yield Asked(collection, [each["question_type"]])


READERS: dict[str, Callable[[Path, Grain], Iterator[Asked]]] = {
    "locomo10.json": read_locomo,
    "longmemeval_s.json": read_longmemeval,
}


def judge(kind: str, relevant: Mapping[int, int], ranked: Sequence[int]) -> Outcome:
    """Return how a question fared whose results are the documents of these numbers, best first."""
    places = [place for place, found in enumerate(ranked) if found in relevant]
    gained = sum(1 / log2(place + 2) for place in places if place < 10)
    ideal = sum(1 / log2(place + 2) for place in range(min(10, len(relevant))))
    counts = [sum(place < k for place in places) for k in KS]
    return Outcome(
        kind,
        tuple(float(count > 0) for count in counts),
        tuple(count / len(relevant) for count in counts),
        1 / (places[0] + 1) if places else 0.0,
        gained / ideal,
    )


def measure(conversations: Sequence[Asked], rank: Callable[[Judged], list[list[int]]]) -> list[Outcome]:
    """Return how every question of the conversations fared."""
    outcomes: list[Outcome] = []
    for asked in conversations:
        ranked = rank(asked.collection)
        for kind, relevant, found in zip(asked.kinds, asked.collection.relevant, ranked, strict=True):
            outcomes.append(judge(kind, relevant, found))
    return outcomes


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the means by measure, with the interval of each, and the number of questions."""
    columns = {
        **{f"any@{k}": [each.any_hit[place] for each in outcomes] for place, k in enumerate(KS)},
        **{f"fraction@{k}": [each.fraction[place] for each in outcomes] for place, k in enumerate(KS)},
        "MRR": [each.reciprocal for each in outcomes],
        "nDCG@10": [each.ndcg for each in outcomes],
    }
    means = {name: [round(sum(each) / len(each), 3), *_draw_interval(each)] for name, each in columns.items()}
    return {"questions": len(outcomes), **means}


def _draw_interval(values: Sequence[float]) -> tuple[float, float]:
    chance, count = random.Random(1), len(values)
    means = sorted(sum(chance.choices(values, k=count)) / count for _ in range(DRAWS))
    return round(means[int(0.025 * DRAWS)], 3), round(means[int(0.975 * DRAWS)], 3)


def rank_by_tool(collection: Judged) -> list[list[int]]:
    """Return what `search_knowledge` answers."""
    from benchmarks.asking import ask_search_knowledge

    return asyncio.run(ask_search_knowledge(collection))


def rank_by_words(collection: Judged) -> list[list[int]]:
    """Return what SQLite's FTS5 finds: what every figure is to be read beside."""
    from benchmarks.quality import rank_by_fts5

    ranking = rank_by_fts5(collection)
    return [list(ranking(number)) for number in range(len(collection.queries))]


def measure_file(path: Path) -> dict[str, Any]:
    """Return what was measured on a file of dialogues, by grain and ranking."""
    figures: dict[str, Any] = {}
    for grain in GRAINS:
        conversations = list(READERS[path.name](path, grain))
        for name, rank in (("refdesk", rank_by_tool), ("FTS5", rank_by_words)):
            outcomes = measure(conversations, rank)
            figures[f"{grain}s, {name}"] = {"all": summarise(outcomes)} | {
                kind: summarise([each for each in outcomes if each.kind == kind])
                for kind in sorted({each.kind for each in outcomes})
            }
    return figures


def render(result: dict[str, Any]) -> str:
    """Return the page."""
    lines = [
        "# Retrieval from long dialogues\n",
        "Whether the evidence of a question is found, in LoCoMo and LongMemEval, by `python -m benchmarks.dialogues`.",
        "No model answers or judges. *Any* is the share of questions with some evidence among the first k, *fraction*",
        "how much of it is there: other servers report one or the other, and the two are not to be compared.\n",
        f"{name_run(result)}\n",
    ]
    for name, figures in result["files"].items():
        lines.append(f"## {name}\n")
        columns = [f"any@{k}" for k in KS] + [f"fraction@{k}" for k in KS] + ["MRR", "nDCG@10"]
        lines += [f"| | questions | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 2)}"]
        for way, kinds in figures.items():
            for kind, each in kinds.items():
                values = " | ".join(f"{each[c][0]:.3f} ({each[c][1]:.3f} to {each[c][2]:.3f})" for c in columns)
                lines.append(f"| {way}, {kind} | {each['questions']} | {values} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Measure the files that are there, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = get_data_folder().parent / "dialogues"
    present = [folder / name for name in READERS if (folder / name).is_file()]
    if not present:
        print(f"no dialogues in {folder}: {' and '.join(READERS)} are wanted there", file=sys.stderr)
        return
    measured = {path.name: measure_file(path) for path in present}
    before = read_result("dialogues") or {"files": {}}
    result = {**describe_run(), "files": {**before["files"], **measured}}
    if options.write:
        write_result("dialogues", result)
        (FOLDER / "dialogues.md").write_text(render(result), encoding="utf-8")
    else:
        print(render(result))


if __name__ == "__main__":
    main()
