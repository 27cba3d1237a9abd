"""The context of a call: the principal and the knowledge base a handler works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Principal


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler gets besides its input: the principal and the knowledge base.

    Attributes:
        get_other: Returns what handlers of another toolset get for the same caller; `None` where all get the same.
    """

    principal: Principal
    knowledge_base: KnowledgeBase
    get_other: Callable[[str], Context] | None = None

    def of(self, toolset: str) -> Context:
        """Return what a toolset's handlers get for this caller."""
        return self.get_other(toolset) if self.get_other is not None else self
