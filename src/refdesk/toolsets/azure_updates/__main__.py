"""`python -m refdesk.toolsets.azure_updates`: serves this toolset alone, over stdio, or with `--http` or `--sse`."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from refdesk.toolsets.azure_updates.models import TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

_TRANSPORTS = {"--http": (), "--sse": ("--sse",)}


def to_command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `refdesk` that serve this toolset alone; others than the transport are handed on."""
    chosen = [argument for argument in arguments if argument in _TRANSPORTS]
    others = [argument for argument in arguments if argument not in _TRANSPORTS]
    transport = [option for argument in chosen for option in _TRANSPORTS[argument]] if chosen else ["--stdio"]
    return ["serve", "--toolset", TOOLSET_NAME, *transport, *others]


def main() -> None:
    """Run the `refdesk` command, which is looked up because a toolset knows no face."""
    [command] = entry_points(group="console_scripts", name="refdesk")
    sys.argv[1:] = to_command(sys.argv[1:])
    command.load()()


if __name__ == "__main__":
    main()
