"""The descriptor of administration: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor, join_unlisted
from refdesk.toolsets.administration import DESCRIPTION, TOOLSET_NAME
from refdesk.toolsets.administration.declaring import ADMIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Rest, Toolset


def _load_rest(_: Sequence[Toolset]) -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.administration.operations import OPERATIONS

    return Rest(OPERATIONS)


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME, description=DESCRIPTION, join=join_unlisted(TOOLSET_NAME, DESCRIPTION, _load_rest, ADMIN)
)
