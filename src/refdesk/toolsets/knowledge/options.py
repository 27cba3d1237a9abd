"""How the settings let knowledge behave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.toolsets.knowledge import TOOLSET_NAME

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase

Fusion: TypeAlias = Literal["rrf", "convex"]


@dataclass(frozen=True, slots=True)
class Options:
    """What handlers go by.

    Attributes:
        protects_authors: Whether what somebody wrote is superseded by its author alone, or who may write for others.
        fusion: How the lists of a search become one; see `ranking`.
    """

    protects_authors: bool = False
    fusion: Fusion = "rrf"


def get_options(base: KnowledgeBase) -> Options:
    """Return those of a knowledge base; the usual ones where none are set."""
    return cast("Options", base.options.get(TOOLSET_NAME) or Options())
