"""impact, as what is outside its folder knows it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.toolsets.impact import DESCRIPTION, SCOPES, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from refdesk.core.operations import Rest, Toolset


def _join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
    from refdesk.core.operations import Toolset

    del names, group
    return Toolset(TOOLSET_NAME, DESCRIPTION, (), partial(_load_rest, toolsets), rest_scopes=SCOPES)


def _load_rest(toolsets: Sequence[Toolset]) -> Rest:
    from refdesk.toolsets.impact.operations import make_rest

    return make_rest(toolsets)


TOOLSET = ToolsetDescriptor(name=TOOLSET_NAME, description=DESCRIPTION, join=_join)
