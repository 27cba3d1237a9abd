"""The context of a call: the principal, the knowledge base a handler works with, and where it reports its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.background.upkeep import Upkeep
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Principal


class Report(Protocol):
    """Receives the progress of a call. It neither waits nor raises, and costs nothing if nobody listens."""

    def __call__(self, done: float, total: float | None = None, message: str = "") -> None:
        """Take note that `done` of `total` is done (`None`: the total is unknown), and what is being done next."""
        ...


def report_nothing(done: float, total: float | None = None, message: str = "") -> None:
    """Take no note."""
    del done, total, message


@dataclass(frozen=True, slots=True)
class Bases:
    """Everything that is kept, store by store.

    Attributes:
        open: By the store's name: `main`, or the name of a toolset that has a store of its own.
        closed: The toolsets whose own store is not open here, because they are not served.
    """

    open: Mapping[str, KnowledgeBase]
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler gets besides its input: the principal and the knowledge base.

    Attributes:
        get_other: Returns what handlers of another toolset get for the same caller; `None` where all get the same.
        report: Receives the progress of a call that takes long.
        get_bases: Returns the contents of every store, for administration; `None` where there is one store.
        asked_at: When the call was first sent, if it is a repetition because the process that ran it ended.
        get_upkeep: Returns what keeps the knowledge base current, for administration; `None` where nothing does.
    """

    principal: Principal
    knowledge_base: KnowledgeBase
    get_other: Callable[[str], Context] | None = None
    report: Report = report_nothing
    get_bases: Callable[[], Bases] | None = None
    asked_at: datetime | None = None
    get_upkeep: Callable[[], Upkeep] | None = None

    @property
    def bases(self) -> Bases:
        """Everything that is kept, whatever the toolset."""
        return self.get_bases() if self.get_bases is not None else Bases({"main": self.knowledge_base})

    def of(self, toolset: str) -> Context:
        """Return what a toolset's handlers get for this caller, without reports of their progress."""
        return self.get_other(toolset) if self.get_other is not None else self
