"""Serves a single toolset: `python -m refdesk.toolsets.<name>`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = "refdesk.__main__"
_TRANSPORTS = {"--http": (), "--sse": ("--sse",)}


def to_command(toolset: str | None, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `refdesk` that serve one toolset or, if none is given, all that are configured.

    Without `--http` and `--sse`, the transport is stdio; arguments that do not choose a transport are passed on.
    """
    chosen = [argument for argument in arguments if argument in _TRANSPORTS]
    others = [argument for argument in arguments if argument not in _TRANSPORTS]
    transport = [option for argument in chosen for option in _TRANSPORTS[argument]] if chosen else ["--stdio"]
    chosen_toolset = ["--toolset", toolset] if toolset is not None else []
    return ["serve", *chosen_toolset, *transport, *others]


def launch(toolset: str | None) -> None:
    """Run the `refdesk` command for one toolset or, if none is given, for all.

    The command is looked up by name, because the core does not know the transports.
    """
    sys.argv[1:] = to_command(toolset, sys.argv[1:])
    import_module(COMMAND).main()
