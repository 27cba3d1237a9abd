"""The descriptor of impact: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor, join_unlisted
from refdesk.toolsets.impact import DESCRIPTION, SCOPES, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Rest, Toolset


def _load_rest(toolsets: Sequence[Toolset]) -> Rest:
    from refdesk.toolsets.impact.operations import make_rest

    return make_rest(toolsets)


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME, description=DESCRIPTION, join=join_unlisted(TOOLSET_NAME, DESCRIPTION, _load_rest, SCOPES)
)
