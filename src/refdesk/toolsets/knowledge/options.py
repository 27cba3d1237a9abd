"""How knowledge behaves under the current settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.toolsets.knowledge import TOOLSET_NAME

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase

Fusion: TypeAlias = Literal["rrf", "convex"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options that handlers follow.

    Attributes:
        protects_authors: Whether an entry may be superseded only by its author or by someone who may write for others.
        fusion: How the result lists of a search are fused into one; see `ranking`.
    """

    protects_authors: bool = False
    fusion: Fusion = "rrf"


def get_options(base: KnowledgeBase) -> Options:
    """Return the options of a knowledge base; the defaults if none are set."""
    return cast("Options", base.options.get(TOOLSET_NAME) or Options())
