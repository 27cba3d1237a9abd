"""skills: playbooks learned from conversations, found again, refined, and judged by their outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.operations import FLAT, Toolset
from refdesk.errors import ConfigurationError
from refdesk.toolsets.skills.operations import make_operations
from refdesk.toolsets.skills.provider import PROVIDER
from refdesk.toolsets.skills.records import TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import Refinement, SkillDraft, Turn
    from refdesk.protocols import LanguageModel


def make_toolset(language_model: LanguageModel) -> Toolset:
    """Return the toolset, which learns with a language model."""
    return Toolset(
        name=TOOLSET_NAME,
        description="Playbooks learned from support conversations.",
        operations=make_operations(language_model),
        error_format=FLAT,
        provider=PROVIDER,
    )


class _NoModel:
    @property
    def name(self) -> str:
        return "none"

    async def extract(self, conversation: Sequence[Turn]) -> SkillDraft:
        raise ConfigurationError("No language model was chosen, so nothing can be learned.")

    async def refine(self, skill: SkillDraft, conversation: Sequence[Turn], feedback: str) -> Refinement:
        raise ConfigurationError("No language model was chosen, so nothing can be refined.")


TOOLSET = make_toolset(_NoModel())
"""The toolset as its contracts describe it: it searches, but learns nothing."""
