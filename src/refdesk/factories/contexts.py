"""What the handlers of each toolset get for one caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.context import Bases, Context, report_nothing
from refdesk.factories.toolsets import choose_own_stores, list_names

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.background.upkeep import Upkeep
    from refdesk.core.context import Report
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.factories.bases import Base
    from refdesk.model import Principal
    from refdesk.settings import Settings


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes the contexts of one call.

    Functions that refer to each other would do, but would remain after the call has ended: the garbage collector would
    have to find those of each call, and all calls stand still meanwhile.

    Attributes:
        watch: Puts on record what handlers write.
    """

    settings: Settings
    principal: Principal
    base: Base
    watch: Callable[[KnowledgeBase], KnowledgeBase]

    def get(
        self,
        toolset: str,
        report: Report = report_nothing,
        asked_at: datetime | None = None,
        get_upkeep: Callable[[], Upkeep] | None = None,
    ) -> Context:
        """Return what a toolset's handlers get; the arguments are those of `Context`."""
        base = self.watch(self.base.of(toolset).knowledge_base)
        return Context(self.principal, base, self.get, report, self.get_bases, asked_at, get_upkeep)

    def get_bases(self) -> Bases:
        """Return the contents of every store."""
        from refdesk.core.keeping.acts import MAIN  # not at the start

        own = choose_own_stores(self.settings, list_names())
        apart = {name: self.watch(each.knowledge_base) for name, each in self.base.apart.items()}
        main = self.watch(self.base.knowledge_base)
        return Bases({MAIN: main, **apart}, tuple(sorted(own.keys() - apart.keys())))
