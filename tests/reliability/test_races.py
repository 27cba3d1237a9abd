"""Many agents in many processes on one file: counts are exact, nothing is lost or doubled, no circle closes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import TypeAlias, cast
from uuid import UUID

import pytest

from refdesk.core.writing import quotas
from refdesk.core.writing.quotas import Quota
from refdesk.model import Collection, Document
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import TOOLSET_NAME
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from tests.acceptance.processes import Running, start
from tests.reliability.agents import ORG, Answer
from tests.reliability.chains import find_broken_chains
from tests.reliability.counting import count

COLLECTION = Collection(ORG, TOOLSET_NAME)
Answers: TypeAlias = list[list[list[Answer]]]

PROCESSES, AGENTS_EACH, CALLS_EACH = 4, 16, 6
BATCH = 20


@contextmanager
def running(count: int, path: Path, manner: str) -> Generator[list[Running]]:
    with ExitStack() as stack:
        module = ["-m", "tests.reliability.agents", str(path), manner]
        workers = [stack.enter_context(start(module, path.parent)) for _ in range(count)]
        assert [worker.receive() for worker in workers] == ["ready"] * count
        yield workers


def order(
    workers: Sequence[Running],
    agents: Sequence[Sequence[Sequence[Answer]]],
    quota: int | None = None,
    *,
    last_first: bool = False,
) -> Answers:
    """Give each worker its agents' calls at the same time; return the answers by worker, agent and call.

    Args:
        last_first: Whether the last worker is told first: the few microseconds may decide who is always first.
    """
    pairs = [*zip(workers, agents, strict=True)]
    for worker, own in reversed(pairs) if last_first else pairs:
        worker.send({"agents": own, "quota": quota})
    return cast("Answers", [worker.receive() for worker in workers])


def is_odd(first: int) -> bool:
    """Return whether the batch that begins with this pair is every second one."""
    return first // BATCH % 2 == 1


def flatten(nested: Answers) -> list[Answer]:
    return [answer for of_worker in nested for of_agent in of_worker for answer in of_agent]


async def read(path: Path) -> list[Document]:
    async with open_store(path) as store:
        ids = sorted(await store.get_digests(COLLECTION))
        return [document for document in await store.get_documents(COLLECTION, ids) if document is not None]


def draw_work(random: Random, worker: int, agent: int) -> list[Answer]:
    """Return what an agent does: it stores, now and then repeats a call with its token, and searches."""
    name, calls = f"agent-{worker}-{agent}", list[Answer]()
    for number in range(CALLS_EACH):
        title = f"note {worker}-{agent}-{number}"
        call: Answer = {"do": "store", "agent": name, "title": title}
        if random.random() < 0.5:
            call["token"] = str(UUID(int=random.getrandbits(128), version=4))
        calls += [call, call] if "token" in call else [call]
        calls += [{"do": "search", "agent": name, "query": title}] if random.random() < 0.2 else []
    return calls


async def crowd(path: Path, limit: int, manner: str, seed: int) -> set[str]:
    """Let 64 agents of four processes store against a quota; return what is wrong then."""
    random = Random(seed)
    work = [[draw_work(random, worker, agent) for agent in range(AGENTS_EACH)] for worker in range(PROCESSES)]
    with running(PROCESSES, path, manner) as workers:
        answers = flatten(order(workers, work, limit))
    errors = Counter(answer["error"] for answer in answers if "error" in answer)
    acknowledged = {answer["title"]: answer["id"] for answer in answers if "title" in answer}
    documents = await read(path)
    titles = Counter(document.title for document in documents)
    async with open_store(path) as store:
        usage = await quotas.read_usage(store, Quota(QUOTA_NAME), ORG, "agent-0-0")
        authors = Counter(document.author for document in documents)
        found = {
            "errors other than the quota's": set(errors) - {"QUOTA_EXCEEDED"},
            "the quota was passed": len(documents) > limit,
            "the quota was not used up": len(documents) < limit,
            "the count is wrong": usage.org != len(documents) or usage.agent != authors["agent-0-0"],
            "a note is doubled": [title for title, count in titles.items() if count > 1],
            "a note is lost": acknowledged.keys() - titles.keys(),
            "a note nobody knows of": titles.keys() - acknowledged.keys(),
            "an id is wrong": {document.id for document in documents} ^ set(acknowledged.values()),
        }
    return {name for name, is_so in found.items() if is_so}


async def test_sixty_four_agents_in_four_processes_fill_a_quota_exactly(tmp_path: Path) -> None:
    assert await crowd(tmp_path / "store.sqlite3", 220, "honest", seed=1) == set()


@pytest.mark.soak
async def test_sixty_four_agents_fill_a_quota_exactly_fifty_times(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        assert await crowd(tmp_path / f"{seed}.sqlite3", 1 + seed % 7 * 60, "honest", seed) == set(), f"seed {seed}"


async def test_the_proof_catches_a_store_that_checks_before_it_begins(tmp_path: Path) -> None:
    wrong = await crowd(tmp_path / "store.sqlite3", 220, "racy", seed=1)
    assert {"the quota was passed", "the count is wrong"} <= wrong


def race_tokens(path: Path, pairs: int, manner: str, seed: int) -> tuple[Counter[str], Counter[int]]:
    """Let two processes use each token at once; return how each pair ended, and how often each process was first.

    Every fourth pair disagrees about what to store.
    """
    random, ends, winners = Random(seed), Counter[str](), Counter[int]()
    with running(2, path, manner) as workers:
        for first in range(0, pairs, BATCH):
            numbers = range(first, min(first + BATCH, pairs))
            tokens = {number: str(UUID(int=random.getrandbits(128), version=4)) for number in numbers}
            work: list[list[list[Answer]]] = [
                [[name_call(number, which, token)] for number, token in tokens.items()] for which in range(2)
            ]
            for pair in zip(*order(workers, work, last_first=is_odd(first)), strict=True):
                ends[judge_pair([answer for [answer] in pair], winners)] += 1
    return ends, winners


def name_call(number: int, which: int, token: str) -> Answer:
    title = f"note {number}" + (f" of {which}" if number % 4 == 3 else "")
    return {"do": "store", "agent": "ann", "title": title, "token": token}


def judge_pair(pair: Sequence[Answer], winners: Counter[int]) -> str:
    winners.update(which for which, answer in enumerate(pair) if answer.get("replayed") is False)
    errors = [answer["error"] for answer in pair if "error" in answer]
    replays = sorted(answer["replayed"] for answer in pair if "replayed" in answer)
    if not errors and replays == [False, True] and pair[0]["id"] == pair[1]["id"]:
        return "one note"
    return "one note, one conflict" if errors == ["CONFLICT"] and replays == [False] else f"{errors} {replays}"


async def check_token_race(path: Path, pairs: int, seed: int) -> None:
    ends, winners = race_tokens(path, pairs, "honest", seed)
    quarrels = pairs // 4
    assert ends == {"one note": pairs - quarrels, "one note, one conflict": quarrels}, f"seed {seed}"
    documents = await read(path)
    assert len({document.title for document in documents}) == len(documents) == pairs
    assert min(winners[0], winners[1]) >= 1, "one process was always first: this was no race"
    count("racing calls", 2 * pairs)


async def test_racing_calls_with_one_token_make_one_note(tmp_path: Path) -> None:
    await check_token_race(tmp_path / "store.sqlite3", 300, seed=1)


@pytest.mark.soak
async def test_ten_thousand_racing_token_pairs_make_one_note_each(tmp_path: Path, first_seed: int) -> None:
    await check_token_race(tmp_path / "store.sqlite3", 10_000, first_seed)


def test_the_proof_catches_tokens_that_are_looked_up_before_the_transaction(tmp_path: Path) -> None:
    ends, _ = race_tokens(tmp_path / "store.sqlite3", 100, "racy", seed=3)
    assert ends["[] [False, False]"] > 0


def race_supersedes(path: Path, pairs: int, manner: str) -> tuple[Counter[str], Counter[int]]:
    """Let two processes supersede each of two entries by the other at once; return how each pair ended and who won.

    Every fourth pair instead quarrels over one old entry, with two new ones.
    """
    ends, winners = Counter[str](), Counter[int]()
    with running(2, path, manner) as workers:
        for first in range(0, pairs, BATCH):
            numbers = range(first, min(first + BATCH, pairs))
            stores = [[{"do": "store", "agent": "ann", "title": f"{n} {part}"} for part in "abc"] for n in numbers]
            [stored] = order(workers[:1], [stores])
            edges = [
                choose_edges(n, *(answer["id"] for answer in three)) for n, three in zip(numbers, stored, strict=True)
            ]
            work = [[[name_edge(*pair[which])] for pair in edges] for which in range(2)]
            for pair in zip(*order(workers, work, last_first=is_odd(first)), strict=True):
                answers = [answer for [answer] in pair]
                winners.update(which for which, answer in enumerate(answers) if "head" in answer)
                ends[" ".join(sorted(answer.get("error", "done") for answer in answers))] += 1
    return ends, winners


def choose_edges(number: int, one: str, other: str, third: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ((one, other), (one, third)) if number % 4 == 3 else ((one, other), (other, one))


def name_edge(old: str, new: str) -> Answer:
    return {"do": "supersede", "agent": "ann", "old": old, "new": new}


async def find_broken(path: Path) -> list[str]:
    async with open_store(path) as store:
        return await find_broken_chains(store, ORG)


async def check_supersede_race(path: Path, pairs: int) -> None:
    ends, winners = race_supersedes(path, pairs, "honest")
    assert ends == {"CONFLICT done": pairs}
    assert await find_broken(path) == []
    assert min(winners[0], winners[1]) >= 1, "one process was always first: this was no race"
    count("racing calls", 2 * pairs)


async def test_racing_supersedes_close_no_circle_and_leave_true_heads(tmp_path: Path) -> None:
    await check_supersede_race(tmp_path / "store.sqlite3", 300)


@pytest.mark.soak
async def test_ten_thousand_racing_supersede_pairs_close_no_circle(tmp_path: Path) -> None:
    await check_supersede_race(tmp_path / "store.sqlite3", 10_000)


async def test_the_proof_catches_circles_that_are_looked_for_before_the_transaction(tmp_path: Path) -> None:
    ends, _ = race_supersedes(tmp_path / "store.sqlite3", 100, "racy")
    assert ends["done done"] > 0
    assert await find_broken(tmp_path / "store.sqlite3")
