"""How good the playbooks are that are learned from real conversations, beside the flows their agents were given.

Each task of STAR has a flow graph: what the agent was to ask, call and say, in order. A playbook's step is the node
whose reply it means most, by the packaged embedding model; a step that calls a tool is the query of that kind. So:

- coverage: the share of the flow's nodes that a step is;
- precision: the share of the steps that are a node, each node counted once;
- order: Kendall's tau of the nodes found, over the pairs that the flow orders;
- steps: their number, divided by that of the flow's nodes;
- tokens of the whole playbook, as o200k counts them;
- tools: the share of the flow's queries that a step is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tokens import count_tokens
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.language_models.rules import RulesModel
from refdesk.model import Principal
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills import cases
from refdesk.toolsets.skills.learning import Learner, prepare

if TYPE_CHECKING:
    from refdesk.embedders.local import LocalEmbedder
    from refdesk.playbooks import Step
    from refdesk.toolsets.skills.records import Skill

CONDITIONS = frozenset(
    ["yes", "no", "done", "available", "unavailable", "query_success", "query_failure", "info_missing", "info_missing2"]
)
"""Nodes that are no act of the agent's but what its next one depends on."""

MOST_SHARE = 10.0
"""Above it a value is a count."""

SAME = 0.6
"""Cosine from which on a step means a reply."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The procedure that the agents of a task were given.

    Attributes:
        nodes: In their order.
        follows: What may come after each node.
        replies: What an agent says at a node, and at others that are not of the flow.
    """

    nodes: tuple[str, ...]
    follows: Mapping[str, frozenset[str]]
    replies: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Quality:
    """The measures of one playbook, as the module says them."""

    coverage: float
    precision: float
    order: float
    steps: float
    tokens: float
    tools: float


def read_flow(folder: Path, task: str) -> Flow:
    """Return the flow of a task."""
    described = json.loads((folder / "tasks" / f"{task}-{task}.json").read_text(encoding="utf-8"))
    replies = json.loads((folder / "tasks" / f"{task}-responses.json").read_text(encoding="utf-8"))
    graph: Mapping[str, str] = described["graph"]
    nodes = dict.fromkeys(node for start in graph for node in _walk(graph, start))
    said = {name: text for name, text in {**described["replies"], **replies}.items() if name not in CONDITIONS}
    return Flow(
        tuple(node for node in nodes if node not in CONDITIONS),
        {node: frozenset(_walk(graph, node)[1:]) for node in nodes},
        {name: text for name, text in said.items() if not name.startswith("query")},
    )


def _walk(graph: Mapping[str, str], node: str) -> list[str]:
    seen: list[str] = []
    while node and node not in seen:
        seen.append(node)
        node = graph.get(node, "")
    return seen


async def learn(conversations: Sequence[str], embedder: LocalEmbedder, task: str = "task") -> Skill:
    """Return the skill learned from the first conversation and refined with each other, as the tools do it."""
    context, learner = _make_context(embedder, task), Learner(RulesModel())
    skill = (await learner.create(context, conversations[0], False, {})).skill
    for conversation in conversations[1:]:
        skill = await learner.update(context, skill.skill_id, conversation, "")
    return skill


async def learn_at_once(conversations: Sequence[str], embedder: LocalEmbedder) -> Skill:
    """Return the skill that `learn` ends with, without the versions before it."""
    context = _make_context(embedder, "task")
    learner = Learner(RulesModel())
    skill = (await learner.create(context, conversations[0], False, {})).skill
    return await learner.extend(context, skill.skill_id, [cases.make_case(prepare(each)) for each in conversations[1:]])


def _make_context(embedder: LocalEmbedder, org: str) -> Context:
    store = MemoryStore()
    return Context(Principal(org, "benchmark", frozenset()), KnowledgeBase(store, Semantics(store, embedder)))


async def judge(skill: Skill, flow: Flow, embedder: LocalEmbedder) -> Quality:
    """Return how good a skill's playbook is, beside the flow."""
    steps = skill.playbook.steps
    found = await match(steps, flow, embedder)
    hits = list(dict.fromkeys(node for node in found if node in flow.nodes))
    queries = [node for node in flow.nodes if node.startswith("query")]
    return Quality(
        coverage=len(hits) / len(flow.nodes),
        precision=len(hits) / len(steps),
        order=_get_tau(hits, flow),
        steps=len(steps) / len(flow.nodes),
        tokens=count_tokens(skill.resolution),
        tools=sum(query in hits for query in queries) / len(queries),
    )


async def match(steps: Sequence[Step], flow: Flow, embedder: LocalEmbedder) -> list[str]:
    """Return the node that each step is; empty for one that is none."""
    names = list(flow.replies)
    replies = np.stack(await embedder.embed_passages([flow.replies[name] for name in names]))
    said = np.stack(await embedder.embed_passages([step.say or step.do for step in steps]))
    queries = [node for node in flow.nodes if node.startswith("query")]
    found: list[str] = []
    for step, cosines in zip(steps, said @ replies.T, strict=True):
        if step.do.startswith("Call `"):
            found.append(_match_call(step.do, [query for query in queries if query not in found], len(queries)))
        else:
            found.append(names[int(cosines.argmax())] if cosines.max() >= SAME else "")
    return found


def _match_call(do: str, left: Sequence[str], count: int) -> str:
    """Return the query that a call is: where the flow has two, the one of the kind that the call's arguments name."""
    if count < 2:
        return next(iter(left), "")
    return next((query for query in left if query.removeprefix("query_") in do.casefold()), "")


def _get_tau(found: Sequence[str], flow: Flow) -> float:
    """Return Kendall's tau over the pairs of nodes that the flow orders one way only; 1.0 where there is none."""
    ranks = {node: rank for rank, node in enumerate(flow.nodes)}
    signs: list[int] = []
    for one, other in combinations(found, 2):
        first, second = sorted((one, other), key=ranks.__getitem__)
        if first not in flow.follows[second]:
            signs.append(1 if first == one else -1)
    return mean(signs) if signs else 1.0


async def measure(folder: Path, count: int, seeds: Sequence[int], embedder: LocalEmbedder) -> dict[str, list[Quality]]:
    """Return the quality of the playbooks of each task, one for each drawing of so many conversations."""
    measured: dict[str, list[Quality]] = {}
    for task in list_tasks(folder):
        flow = read_flow(folder, task)
        for seed in seeds:
            skill = await learn_at_once(draw(folder, task, count, seed), embedder)
            measured.setdefault(task, []).append(await judge(skill, flow, embedder))
    return measured


def list_tasks(folder: Path) -> list[str]:
    """Return the names of the tasks."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


def draw(folder: Path, task: str, count: int, seed: int) -> list[str]:
    """Return so many conversations of a task, drawn at random by the seed."""
    lines = (folder / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()
    Random(seed).shuffle(lines)
    return lines[:count]


def write_table(measured: Mapping[str, Sequence[Quality]], count: int) -> list[str]:
    """Return the lines of a table: each task, and the means over all."""
    lines = [f"playbooks from {count:<14}" + "".join(f"{name:>11}" for name in Quality.__slots__)]
    rows = {**measured, "all": [each for found in measured.values() for each in found]}
    for task, qualities in rows.items():
        values = _average(qualities)
        lines.append(f"  {task:<26}" + _show(values))
    drawings = [_average(drawing) for drawing in zip(*measured.values(), strict=True)]
    lines += [f"  {name:<26}" + _show([choose(each) for each in zip(*drawings, strict=True)])
              for name, choose in (("all, worst drawing", min), ("all, best drawing", max))]  # fmt: skip
    if len(drawings) > 1:
        lines.append(
            f"  {'spread (sd) of drawings':<26}" + _show([stdev(each) for each in zip(*drawings, strict=True)])
        )
    worst = [min(getattr(each, name) for each in rows["all"]) for name in Quality.__slots__]
    return [*lines, f"  {'lowest of one playbook':<26}" + _show(worst)]


def _average(qualities: Sequence[Quality]) -> list[float]:
    return [mean(getattr(each, name) for each in qualities) for name in Quality.__slots__]


def _show(values: Sequence[float]) -> str:
    return "".join(f"{value:>11.0f}" if value > MOST_SHARE else f"{value:>11.2f}" for value in values)
