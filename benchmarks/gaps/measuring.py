"""Asks a desk what it knows and what it does not, and looks at its gap list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.quality import read_collection
from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from refdesk.server.calls import Caller
from refdesk.settings import compose

COLLECTION = "xquad-en"
PARAGRAPHS = 5
"""Of each article, one after the other."""

EACH = 100
SCOPES = frozenset({"knowledge:read", "knowledge:write", "skills:read", "updates:read"})


@dataclass(frozen=True, slots=True)
class World:
    """What is stored, and what is asked: questions that something stored answers, and such that nothing does."""

    documents: Sequence[tuple[str, str]]
    known: Sequence[str]
    unknown: Sequence[str]


def make_world(folder: Path) -> World:
    """Return half of the articles as what is stored, and a question about each of so many paragraphs of both halves."""
    collection, random = read_collection(folder / COLLECTION), Random(19)
    by_paragraph = defaultdict[int, list[str]](list)
    for question, relevant in zip(collection.queries, collection.relevant, strict=True):
        for number in relevant:
            by_paragraph[number].append(question)
    articles = range(len(collection.documents) // PARAGRAPHS)
    stored = set(random.sample(articles, len(articles) // 2))
    asked = {number: random.choice(questions) for number, questions in sorted(by_paragraph.items())}
    known = [asked[number] for number in asked if number // PARAGRAPHS in stored]
    unknown = [asked[number] for number in asked if number // PARAGRAPHS not in stored]
    documents = [each for number, each in enumerate(collection.documents) if number // PARAGRAPHS in stored]
    return World(documents, random.sample(known, EACH), random.sample(unknown, EACH))


def read_wordings(name: str) -> list[list[str]]:
    """Return groups of questions of ours that mean the same."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    lines = "\n".join("" if line.startswith("#") else line for line in text.splitlines())
    return [group.strip().splitlines() for group in lines.split("\n\n") if group.strip()]


@asynccontextmanager
async def open_own(folder: Path) -> AsyncGenerator[Desk]:
    """Yield a desk with the packaged model and nothing in it."""
    chosen = {"home": folder, "store": f"sqlite:///{folder / 'desk.sqlite3'}"}
    settings = compose().model_validate(chosen)
    async with open_desk(settings, load_toolsets(), in_background=False) as desk:
        base = await desk.get_base()
        assert base.knowledge_base.semantics is not None
        await base.knowledge_base.semantics.wanted.load()
        yield desk


@dataclass(frozen=True, slots=True)
class Agent:
    """Calls operations of a desk."""

    desk: Desk

    async def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Return the answer of an operation."""
        [operation] = [each for toolset in self.desk.toolsets for each in toolset.operations if each.name == name]
        return (await Caller(self.desk, Principal("acme", "ann", SCOPES), "rest").run(operation, arguments)).value


async def store(desk: Desk, documents: Iterable[tuple[str, str]]) -> None:
    """Store notes, and wait until they are embedded."""
    for title, body in documents:
        await Agent(desk).call("store_knowledge", title=title or " ".join(body.split()[:8]), body=body)
    await settle(desk)


async def settle(desk: Desk) -> None:
    """Do what happens in the background after writes."""
    base = await desk.get_base()
    for each in base.each():
        while await each.indexer.run_once():
            pass
    await desk.make_examiner(base).run_until_done()


async def ask(desk: Desk, questions: Iterable[str]) -> list[dict[str, Any]]:
    """Ask questions, and return the gap list."""
    caller = Agent(desk)
    for question in questions:
        await caller.call("search_knowledge", query=question)
    keeper = desk.make_gap_keeper(await desk.get_base())
    assert keeper is not None
    await keeper.run_until_done()
    listed = list[dict[str, Any]]()
    while (page := await caller.call("list_gaps", limit=100, offset=len(listed)))["gaps"]:
        listed += page["gaps"]
    return listed


def list_wordings(gap: dict[str, Any]) -> set[str]:
    """Return all wordings of a gap that are shown."""
    return {gap["question"], *gap["wordings"]}


@dataclass(frozen=True, slots=True)
class Figures:
    """What the gap list has.

    Attributes:
        listed: How many of the questions without an answer, each in a gap of its own.
        wrongly: How many of those with one.
        grouped: The share of our questions whose gap holds all of their wordings and nothing else.
        precision, recall: Of the pairs of wordings that share a gap.
    """

    listed: int
    wrongly: int
    grouped: float
    precision: float
    recall: float


async def measure(world: World, groups: Sequence[Sequence[str]], folder: Path) -> Figures:
    """Return what the gap list has after everything was asked."""
    async with open_own(folder) as desk:
        await store(desk, world.documents)
        wordings = [wording for group in groups for wording in group]
        questions = [*world.known, *world.unknown, *wordings]
        Random(20).shuffle(questions)
        gaps = [list_wordings(gap) for gap in await ask(desk, questions)]
    listed = sum({question} in gaps for question in world.unknown)
    wrongly = sum(any(question in gap for gap in gaps) for question in world.known)
    return Figures(listed, wrongly, *compare_groups(gaps, groups))


def compare_groups(gaps: Sequence[set[str]], groups: Sequence[Sequence[str]]) -> tuple[float, float, float]:
    """Return how well gaps are the groups: the share of questions in just their group, precision, recall of pairs."""
    ours = {wording for group in groups for wording in group}
    found = [gap & ours for gap in gaps if gap & ours]
    right = sum(len(group) for group in groups if set(group) in gaps) / len(ours)
    told = {pair for gap in found for pair in combinations(sorted(gap), 2)}
    wanted = {pair for group in groups for pair in combinations(sorted(group), 2)}
    return right, len(told & wanted) / max(1, len(told)), len(told & wanted) / len(wanted)
