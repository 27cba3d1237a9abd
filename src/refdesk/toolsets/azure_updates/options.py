"""How azure-updates behaves under the current settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from refdesk.kit.age import STALE_HOURS
from refdesk.toolsets.azure_updates import TOOLSET_NAME

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.toolsets.azure_updates.settings import Feed


@dataclass(frozen=True, slots=True)
class Options:
    """The options that handlers follow.

    Attributes:
        feeds: The feeds that are set up.
        stale_hours: After how many hours the desk calls the updates stale.
    """

    feeds: tuple[Feed, ...] = ("azure",)
    stale_hours: float = STALE_HOURS


def get_options(base: KnowledgeBase) -> Options:
    """Return the options of a knowledge base; the defaults if none are set."""
    return cast("Options", base.options.get(TOOLSET_NAME) or Options())
