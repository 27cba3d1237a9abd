"""impact, as what is outside its folder knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.toolsets.impact import DESCRIPTION, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from refdesk.core.operations import Toolset


def _join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
    from refdesk.toolsets.impact.operations import make_toolset

    del names, group
    return make_toolset(toolsets)


TOOLSET = ToolsetDescriptor(name=TOOLSET_NAME, description=DESCRIPTION, join=_join)
