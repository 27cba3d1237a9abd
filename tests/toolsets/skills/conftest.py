"""A desk with skills on each engine, and a language model whose answers a test chooses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.descriptors import Means
from refdesk.core.identifiers import SequentialIdentifiers
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.operations import Toolset
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.language_models.rules import RulesModel
from refdesk.model import Principal
from refdesk.playbooks import Case, EmbedTexts, Grouping, Inducer, Playbook, SkillDraft, Step
from refdesk.protocols import Store
from refdesk.toolsets.skills.descriptor import TOOLSET
from refdesk.toolsets.skills.queries import SkillQueries, get_queries
from tests.stores.conftest import ENGINE_NAMES, ENGINES

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

INVOICE = """\
Customer: My invoice shows the wrong company name.
Agent: Could you tell me your order number, please?
Customer: It is 4471.
Agent: I have changed the name under Billing and sent a corrected invoice.
Customer: Got it, thanks!
"""

Call: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(slots=True)
class ScriptedModel:
    """Induces what it is told to, and remembers what it was shown: the cases of each induction."""

    draft: SkillDraft = field(
        default_factory=lambda: SkillDraft(
            "Cold heating", "The heating stays cold.", Playbook("Warm.", steps=(Step("Open the valve."),)), ("Winter.",)
        )
    )
    shown: list[tuple[Case, ...]] = field(default_factory=list[tuple[Case, ...]])
    before_inducing: Callable[[], Awaitable[None]] | None = None

    @property
    def name(self) -> str:
        return "scripted"

    async def induce(self, cases: Sequence[Case], embed: EmbedTexts | None) -> SkillDraft:
        self.shown.append(tuple(cases))
        if self.before_inducing is not None:
            await self.before_inducing()
        return self.draft

    async def preview(self, cases: Sequence[Case]) -> SkillDraft:
        return self.draft

    async def group(self, cases: Sequence[Case], embed: EmbedTexts | None) -> Grouping:
        return Grouping(tuple((number,) for number in range(len(cases))))


def describe(model: Inducer) -> Toolset:
    """Return the toolset that learns with a model."""
    assert TOOLSET.load is not None
    return TOOLSET.load(Means(lambda: model, None))


@dataclass(frozen=True, slots=True)
class Desk:
    """The skills toolset over one store."""

    base: KnowledgeBase
    clock: FixedClock

    def context(self, org: str = "acme", agent: str = "ann") -> Context:
        return Context(Principal(org, agent, frozenset()), self.base)

    def queries(self, org: str = "acme") -> SkillQueries:
        return get_queries(self.context(org))

    def serve(self, model: Inducer | None = None, **caller: str) -> Call:
        """Return a function that runs an operation by name."""
        operations = {operation.name: operation for operation in describe(model or RulesModel()).operations}
        context = self.context(**caller)

        async def call(name: str, **arguments: object) -> dict[str, Any]:
            operation = operations[name]
            output = await operation.handler(context, operation.input.model_validate(arguments))
            return output.model_dump(mode="json", exclude_none=True)

        return call


def make_desk(store: Store) -> Desk:
    clock = FixedClock(NOW)
    return Desk(KnowledgeBase(store, Semantics(store, HashingEmbedder()), clock, SequentialIdentifiers()), clock)


@pytest.fixture(params=ENGINE_NAMES)
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Desk]:
    async with ENGINES[request.param](tmp_path, FixedClock(NOW)) as store:
        yield make_desk(store)
