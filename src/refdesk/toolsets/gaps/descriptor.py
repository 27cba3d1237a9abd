"""The descriptor of gaps: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import ToolsetDescriptor, join_unlisted
from refdesk.toolsets.gaps import DESCRIPTION, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Rest, Toolset
    from refdesk.toolsets.gaps.settings import GapsSettings


def _load_rest(toolsets: Sequence[Toolset]) -> Rest:
    from refdesk.toolsets.gaps.operations import make_rest

    return make_rest(toolsets)


def _load_settings() -> type[GapsSettings]:
    from refdesk.toolsets.gaps.settings import GapsSettings

    return GapsSettings


def _choose_options(settings: GapsSettings) -> object:
    from datetime import timedelta

    from refdesk.gaps.missed import Bounds

    return Bounds(timedelta(days=settings.gaps_days), settings.gaps_most) if settings.gaps else None


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    join=join_unlisted(TOOLSET_NAME, DESCRIPTION, _load_rest),
    load_settings=_load_settings,
    choose_options=_choose_options,
)
