"""The descriptor of watches: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.core.descriptors import ToolsetDescriptor, join_unlisted
from refdesk.toolsets.watches import DESCRIPTION, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from refdesk.core.operations import Rest, Toolset


def _load_rest(toolsets: Sequence[Toolset]) -> Rest:
    from refdesk.toolsets.watches.operations import make_rest

    return make_rest(toolsets)


def _load_settings() -> type[BaseModel]:
    from refdesk.toolsets.watches.settings import WatchesSettings

    return WatchesSettings


def _choose_options(settings: Any) -> object:  # noqa: ANN401 - see `ToolsetDescriptor`
    from refdesk.toolsets.watches.options import Options

    return Options(settings.watches_agent_quota, settings.webhook_private)


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    join=join_unlisted(TOOLSET_NAME, DESCRIPTION, _load_rest),
    load_settings=_load_settings,
    choose_options=_choose_options,
)
