"""Runs the emulator as a process of its own: `python -m sample_world.azure_updates --port 0`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from starlette.applications import Starlette

from sample_world.azure_updates.emulator import FEED_PATH, ROADMAP_PATH, Emulator, read_world
from sample_world.azure_updates.faults import parse_rules
from sample_world.serving import add_listening_arguments, load_json, serve


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, where standard input is a pipe, its end.

    One line goes to standard output as soon as connections are taken: a JSON object with `url`, the address of the
    feed, `roadmap`, that of the Microsoft 365 roadmap, and `control`, the address of the control side.
    """
    options = _parse_arguments(arguments)
    emulator = Emulator(
        read_world({"day": options.day} if options.records is None else load_json(options.records)),
        parse_rules([] if options.faults is None else load_json(options.faults)),
    )

    def build(origin: str) -> tuple[Starlette, Mapping[str, str]]:
        return emulator.build_application(), {"url": origin + FEED_PATH, "roadmap": origin + ROADMAP_PATH}

    serve(options, build)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sample_world.azure_updates", description="An emulator of the release communications API."
    )
    add_listening_arguments(parser)
    parser.add_argument("--day", type=int, choices=(1, 2), default=1, help="state of the sample world (default: 1)")
    parser.add_argument("--records", type=Path, help="serve the records of this JSON file instead of the sample world")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
