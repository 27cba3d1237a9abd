"""administration, as what is outside its folder knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.toolsets.administration import DESCRIPTION, TOOLSET_NAME
from refdesk.toolsets.administration.declaring import ADMIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from refdesk.core.operations import Rest, Toolset


def _join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
    from refdesk.core.operations import Toolset

    del toolsets, names, group
    return Toolset(TOOLSET_NAME, DESCRIPTION, (), _load_rest, rest_scopes=ADMIN)


def _load_rest() -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.administration.operations import OPERATIONS

    return Rest(OPERATIONS)


TOOLSET = ToolsetDescriptor(name=TOOLSET_NAME, description=DESCRIPTION, join=_join)
