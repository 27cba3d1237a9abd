"""How watches behave under the current settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from refdesk.toolsets.watches import TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.watching.reaching import Reach


@dataclass(frozen=True, slots=True)
class Options:
    """The options that handlers follow.

    Attributes:
        per_agent: How many watches one agent may have; `None` for no limit.
        private: Private hosts, addresses and networks that webhooks may be on nevertheless.
    """

    per_agent: int | None = 100
    private: Sequence[str] = ()

    @property
    def reach(self) -> Reach:
        """Where webhooks may be."""
        from refdesk.watching.reaching import read_reach

        return read_reach(self.private)


def get_options(base: KnowledgeBase) -> Options:
    """Return the options of a knowledge base; the defaults if none are set."""
    return cast("Options", base.options.get(TOOLSET_NAME) or Options())
