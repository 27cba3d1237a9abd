"""Rules in place of a language model: a skill is induced from its cases, deterministically, without network or key.

What agents do again and again becomes the steps, in the order that most cases agree with, worded as what to do; what
customers share becomes the title and the problem. Nothing is said that no case supports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.model import Vector
    from refdesk.playbooks import Case, EmbedTexts, Grouping, SkillDraft

NAME = "rules-8"
"""Its number goes up whenever the same cases would give another skill."""


class RulesModel:
    """Induces by rules, in a worker thread: many long cases take seconds."""

    @property
    def name(self) -> str:
        """The version of the rules."""
        return NAME

    async def induce(self, cases: Sequence[Case], embed: EmbedTexts | None) -> SkillDraft:
        """Return what the cases teach. See `Inducer.induce`."""
        from refdesk.language_models.rules import induction

        vectors: Mapping[str, Vector] = {}
        if embed is not None and len(cases) > 1:
            vectors = await embed(await anyio.to_thread.run_sync(induction.list_texts, cases))
        return await anyio.to_thread.run_sync(induction.induce, cases, vectors)

    async def preview(self, cases: Sequence[Case]) -> SkillDraft:
        """Return what the cases teach, without vectors. See `Inducer.preview`."""
        return await self.induce(cases, None)

    async def group(self, cases: Sequence[Case], embed: EmbedTexts | None) -> Grouping:
        """Return the cases grouped by problem. See `Inducer.group`."""
        from refdesk.language_models.rules import grouping

        vectors: Mapping[str, Vector] = {}
        if embed is not None and len(cases) > 1:
            vectors = await embed([text for text in grouping.list_openings(cases) if text])
        return await anyio.to_thread.run_sync(grouping.group, cases, vectors)
