"""The client at the other end of a local connection, as its forwarder describes it; its settings apply to it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from refdesk import errors
from refdesk.server import mcp
from refdesk.server.principals import local_principal
from refdesk.settings import explain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.operations import Toolset
    from refdesk.model import Principal
    from refdesk.server.mcp import RequestContext
    from refdesk.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalCaller:
    """A client of the desk.

    Attributes:
        settings: The desk's settings, with the client's own org, agent, tools and era.
        pid: The process id of its forwarder; 0 if it did not say.
    """

    settings: Settings
    principal: Principal
    pid: int


def read_caller(settings: Settings, toolsets: Sequence[Toolset], said: Mapping[str, Any], unnamed: str) -> LocalCaller:
    """Return the caller that a greeting names; its agent is `unnamed` if the greeting names none.

    Raises:
        ConfigurationError: The greeting contains an invalid value of a setting.
    """
    own = {
        "org": said.get("org") or "local",
        "agent": said.get("agent"),
        "tools": said.get("tools") or (),
        "stdio_era": said.get("era") or "auto",
    }
    try:
        chosen = type(settings).model_validate({**dict(settings), **own})
    except ValidationError as error:
        raise errors.ConfigurationError(explain(error)) from None
    pid = said.get("pid")
    return LocalCaller(chosen, local_principal(chosen, toolsets, unnamed), pid if isinstance(pid, int) else 0)


def identify(context: RequestContext) -> Principal:
    """Return who sent the current message over a local connection."""
    caller = cast("LocalCaller", context.request)
    is_known = caller.settings.agent is not None
    return mcp.identify_local(caller.principal, is_agent_known=is_known)(context)
