"""skills: playbooks learned from conversations, found again, refined, and judged by their outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.operations import Toolset
from refdesk.toolsets.skills.models import TOOLSET_NAME
from refdesk.toolsets.skills.operations import make_operations

if TYPE_CHECKING:
    from refdesk.protocols import LanguageModel


def make_toolset(language_model: LanguageModel) -> Toolset:
    """Return the toolset, which learns with a language model."""
    return Toolset(
        name=TOOLSET_NAME,
        description="Playbooks learned from support conversations.",
        operations=make_operations(language_model),
        error_format="flat",
    )
