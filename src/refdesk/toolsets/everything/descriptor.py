"""The descriptor of everything: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.toolsets.everything import DESCRIPTION, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from refdesk.core.operations import Toolset


def _join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
    from refdesk.toolsets.everything.operations import describe, make_toolset

    return describe(toolsets, names) if group is None else make_toolset(toolsets, names, group)


TOOLSET = ToolsetDescriptor(name=TOOLSET_NAME, description=DESCRIPTION, join=_join)
