"""The command `refdesk`. Clients start `serve --stdio` for every window, so it imports nothing it does not need."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit."""
    reason: str | None = None
    if "--stdio" in sys.argv:
        from refdesk.forwarder import command

        options = command.read_options(sys.argv[1:])
        reason = command.forward(options) if options is not None else None
    from refdesk.cli import main as run

    run(reason)


if __name__ == "__main__":
    main()
