"""The principal of callers without keys: whoever can reach the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.discovery import ADMIN_SCOPE
from refdesk.model import Principal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Toolset
    from refdesk.settings import Settings


def local_principal(settings: Settings, toolsets: Sequence[Toolset], agent: str) -> Principal:
    """Return a principal in the settings' org with the scopes of all toolsets; its agent is `agent` unless the settings
    name one.

    The scope `admin` is not given to callers without a key: whoever runs the server has the command line.
    """
    scopes = frozenset[str]().union(*(toolset.scopes for toolset in toolsets)) - {ADMIN_SCOPE}
    return Principal(settings.org, settings.agent or agent, scopes)
