"""How good the playbooks are that are learned from real conversations, and how well they are found.

From each task of STAR (a folder `star/` of JSON Lines below the folder of real records) 20, 5 and one of the
conversations are learned into one skill. `benchmarks.playbooks` says how good it is. Then the opening turns of other
conversations are asked: does the skill of the right task come first? In the same run the raw transcripts are searched,
by words, by meaning and by both. A third of the first turns are greetings, which say nothing: so it also says how many
say something, how many of those find the right skill, and what the best possible answer to all would reach, that is one
which knows what every turn is about that says something, and the commonest task for those that do not. Last, unrelated
questions (`banking77/train.csv`) say which `min_score` keeps 95 % of the right answers, and what share of foreign
questions it refuses.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

from benchmarks import playbooks
from benchmarks.quality import LexicalIndex, get_data_folder
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.fusion import convex
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.language_models.rules import RulesModel
from refdesk.model import FindRequest, Principal, VectorQuery
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills import cases
from refdesk.toolsets.skills.learning import Learner, prepare
from refdesk.toolsets.skills.openings import leave_pleasantries, says_nothing
from refdesk.toolsets.skills.queries import get_queries
from refdesk.toolsets.skills.records import get_collection

LEARNED, ASKED = 20, 40
"""Conversations of each task; a task with fewer is asked with what is left."""

COUNTS = (20, 5, 1)
"""Conversations of each task that are learned into its skill."""

KEPT = 0.95
FOREIGN = 500
SAME_DOMAIN = ("bank",)
"""Tasks left out while questions about a bank are the foreign ones: there they are not foreign."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation of a task: its transcript as JSON, and what the customer says, turn by turn."""

    task: str
    transcript: str
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found: the tasks in the order of their best score, and that score."""

    tasks: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of the conversations.

    Attributes:
        tasks: Skill id → the task it was created from.
        foreign: Tasks whose first conversation was taken for a skill of another task.
    """

    context: Context
    tasks: Mapping[str, str]
    foreign: int


def read_talks(folder: Path, seed: int) -> tuple[list[Talk], list[Talk]]:
    """Return the conversations to learn and those to ask with, drawn at random by the seed."""
    learn: list[Talk] = []
    ask: list[Talk] = []
    random = Random(seed)
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        random.shuffle(lines)
        talks = [_read_talk(path.stem, line) for line in lines[: LEARNED + ASKED]]
        learn += talks[:LEARNED]
        ask += talks[LEARNED:]
    return learn, ask


def _read_talk(task: str, line: str) -> Talk:
    events: Sequence[Row] = json.loads(line)["Events"]
    return Talk(task, line, tuple(event["Text"] for event in events if event["Agent"] == "User" and event.get("Text")))


async def learn_all(talks: Sequence[Talk], embedder: LocalEmbedder) -> Learned:
    """Return a desk that has learned the conversations, those of a task into one skill."""
    store = MemoryStore()
    base = KnowledgeBase(store, Semantics(store, embedder))
    context = Context(Principal("benchmark", "benchmark", frozenset()), base)
    learner, skills, foreign = Learner(RulesModel()), dict[str, str](), 0
    for task in dict.fromkeys(talk.task for talk in talks):
        first, *others = [talk.transcript for talk in talks if talk.task == task]
        creation = await learner.create(context, first, False, {})
        foreign += creation.skill.skill_id in skills.values()
        skills[task] = creation.skill.skill_id
        if others:
            await learner.extend(context, skills[task], [cases.make_case(prepare(each)) for each in others])
    return Learned(context, {id: task for task, id in skills.items()}, foreign)


async def ask_skills(learned: Learned, question: str, leg: str) -> Found:
    """Return what the skills answer, by both legs or one alone."""
    base, queries = learned.context.knowledge_base, get_queries(learned.context)
    assert base.semantics is not None
    question = leave_pleasantries(question)  # as the tool does
    vector = await base.semantics.wanted.embed_query(question)
    if leg == "fused":
        matches = await queries.hybrid_search(vector.tolist(), question, top_k=len(learned.tasks))
        ranked = [(match["skill"].skill_id, match["score"]) for match in matches]
    else:
        name = base.semantics.wanted.model.name
        request = FindRequest(
            get_collection(queries.org),
            text=parse_query(question) if leg == "words" else None,
            vector=VectorQuery(vector, name) if leg == "meaning" else None,
            depth=len(learned.tasks),
        )
        found = (await base.store.find(request)).candidates
        ranked = [(candidate.id, candidate.lexical or candidate.cosine or 0.0) for candidate in found]
    return _to_found([(learned.tasks[id], score) for id, score in ranked])


def _to_found(ranked: Sequence[tuple[str, float]]) -> Found:
    return Found(tuple(dict.fromkeys(task for task, _ in ranked)), ranked[0][1] if ranked else 0.0)


async def make_raw_search(talks: Sequence[Talk], embedder: LocalEmbedder) -> Callable[[str, Any, str], Found]:
    """Return the peer: nearest neighbour over everything that the customers said, word for word."""
    texts = [" ".join(talk.said) for talk in talks]
    index, matrix = LexicalIndex([("", text) for text in texts]), np.stack(await embedder.embed_passages(texts))

    def search(question: str, vector: Any, leg: str) -> Found:  # noqa: ANN401 - a numpy array
        by_words = index.score(question)
        words, cosines = [by_words.get(number, 0.0) for number in range(len(talks))], (matrix @ vector).tolist()
        scores = {"words": words, "meaning": cosines, "fused": convex(words, cosines)}[leg]
        order = sorted(range(len(talks)), key=lambda number: -scores[number])
        return _to_found([(talks[number].task, scores[number]) for number in order])

    return search


def score(found: Sequence[Found], talks: Sequence[Talk]) -> tuple[float, float]:
    """Return hit@1 and the mean reciprocal rank of the right task."""
    pairs = zip(found, talks, strict=True)
    places = [one.tasks.index(talk.task) + 1 if talk.task in one.tasks else 0 for one, talk in pairs]
    return sum(place == 1 for place in places) / len(places), sum(1 / place for place in places if place) / len(places)


async def compare(seed: int, embedder: LocalEmbedder, folder: Path) -> Iterator[str]:
    """Return the lines of the table for one drawing of conversations."""
    drawn, ask = read_talks(folder, seed)
    lines = list[str]()
    for count in COUNTS:
        learn = take(drawn, count)
        learned, raw = await learn_all(learn, embedder), await make_raw_search(learn, embedder)
        lines.append(
            f"drawing {seed}: {len(learned.tasks)} skills of {count} conversations each, {len(ask)} asked, "
            f"{learned.foreign} tasks taken for another"
        )
        for turns in (1, 2):
            questions = [" ".join(talk.said[:turns]) or "-" for talk in ask]
            for leg in ("words", "meaning", "fused"):
                skills = [await ask_skills(learned, question, leg) for question in questions]
                peer = [raw(question, await embedder.embed_query(question), leg) for question in questions]
                lines += [_line("skills (rules)", leg, turns, *score(skills, ask))]
                lines += [_line("raw transcripts", leg, turns, *score(peer, ask))]
                if leg == "fused":
                    lines += [write_bound(skills, peer, ask, questions)]
        if count == COUNTS[0]:
            lines += await choose_min_score(learn, ask, embedder, folder.parent)
    return iter(lines)


def take(talks: Sequence[Talk], count: int) -> list[Talk]:
    """Return the first so many conversations of each task."""
    taken: Counter[str] = Counter()
    kept: list[Talk] = []
    for talk in talks:
        taken[talk.task] += 1
        if taken[talk.task] <= count:
            kept.append(talk)
    return kept


def _line(what: str, leg: str, turns: int, hit: float, reciprocal: float) -> str:
    return f"  {what:<18}{leg:<10}{turns} turn{'s' if turns > 1 else ' '}   hit@1 {hit:.3f}   MRR {reciprocal:.3f}"


def write_bound(skills: Sequence[Found], peer: Sequence[Found], talks: Sequence[Talk], questions: Sequence[str]) -> str:
    """Return how many questions say something, what finds the right task of those, and what all could reach at most."""
    telling = [not says_nothing(question) for question in questions]
    silent = Counter(talk.task for talk, tells in zip(talks, telling, strict=True) if not tells)
    asked = [talk for talk, tells in zip(talks, telling, strict=True) if tells]
    hits = [
        score([one for one, tells in zip(found, telling, strict=True) if tells], asked)[0] for found in (skills, peer)
    ]
    most = (len(asked) + max(silent.values(), default=0)) / len(talks)
    return (
        f"    {len(asked) / len(talks):.0%} say something; of those hit@1 {hits[0]:.3f}, raw {hits[1]:.3f}; "
        f"of all at most {most:.3f}"
    )


async def choose_min_score(
    learn: Sequence[Talk], ask: Sequence[Talk], embedder: LocalEmbedder, data: Path
) -> list[str]:
    """Return which `min_score` keeps `KEPT` of the right answers, and what share of foreign questions it refuses."""
    learned = await learn_all([talk for talk in learn if not talk.task.startswith(SAME_DOMAIN)], embedder)
    right: list[float] = []
    for talk in ask:
        found = await ask_skills(learned, " ".join(talk.said[:2]) or "-", "fused")
        if found.tasks[:1] == (talk.task,):
            right.append(found.score)
    scores = [(await ask_skills(learned, question, "fused")).score for question in read_foreign(data)]
    least = sorted(right)[int((1 - KEPT) * len(right))]
    refused = sum(value < least for value in scores) / max(1, len(scores))
    lines = [
        f"  {len(scores)} questions to a bank, where no skill is about one",
        f"  min_score {least:.3f}  keeps {KEPT:.1%}  refuses {refused:.1%}",
    ]
    for value in (0.3, 0.4, 0.45, 0.5, 0.6):
        kept, refused = (sum(test) / len(test) for test in ([s >= value for s in right], [s < value for s in scores]))
        lines.append(f"  min_score {value:.2f}  keeps {kept:.1%}  refuses {refused:.1%}")
    return lines


def read_foreign(data: Path) -> list[str]:
    """Return questions about something else."""
    path = data / "banking77" / "train.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        questions = [row["text"] for row in csv.DictReader(file)]
    Random(1).shuffle(questions)
    return questions[:FOREIGN]


async def _main(seeds: int) -> None:
    folder = get_data_folder().parent / "star"
    if not folder.is_dir():
        sys.exit(f"No conversations in {folder}: set REFDESK_TEST_DATA to the folder of real records.")
    async with LocalEmbedder() as embedder:
        await embedder.load()
        for count in COUNTS[:2]:
            measured = await playbooks.measure(folder, count, range(1, seeds + 1), embedder)
            print("\n".join(playbooks.write_table(measured, count)), flush=True)
        for seed in range(1, seeds + 1):
            for line in await compare(seed, embedder, folder):
                print(line, flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawings", type=int, default=3, metavar="N", help="how often to draw conversations anew")
    asyncio.run(_main(parser.parse_args().drawings))


if __name__ == "__main__":
    main()
