"""What it costs to start: `refdesk serve --stdio` up to the first tools/list, against a bare server on the same SDK.

    python -m benchmarks.startup [--rounds 5] [--json]

Both are run in turns, in this one run, so that the ratio holds on a busy machine too. CPU seconds are those of the
whole process, user and system, from its start until it has ended after its stdin was closed on the answer. Exit status
1 when the ratio is over `MOST_RATIO` or `refdesk --help` costs more than `MOST_HELP_SECONDS`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

MOST_RATIO = 1.3
MOST_HELP_SECONDS = 0.3

REFDESK = ["-m", "refdesk", "serve", "--stdio", "--isolated"]
BARE = ["-m", "benchmarks.bare_server"]
HELP = ["-m", "refdesk", "--help"]

_HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "startup", "version": "1"}}
_MESSAGES: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HANDSHAKE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
)


def measure(
    arguments: Sequence[str],
    home: Path,
    messages: Sequence[dict[str, Any]] = _MESSAGES,
    *,
    python: str = sys.executable,
) -> float:
    """Return the CPU seconds of a process that answers the messages and then finds its stdin closed."""
    process = subprocess.Popen(
        [python, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "REFDESK_HOME": str(home)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            assert b'"result"' in process.stdout.readline()
    process.stdin.close()
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure, print, and fail when it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for arguments in (REFDESK, BARE):
            measure(arguments, home)  # once without counting: it compiles and fills the file cache
        pairs = [(measure(REFDESK, home), measure(BARE, home)) for _ in range(options.rounds)]
        helps = [measure(HELP, home, ()) for _ in range(options.rounds)]
    result = {
        "refdesk_cpu_seconds": round(median(ours for ours, _ in pairs), 3),
        "bare_cpu_seconds": round(median(bare for _, bare in pairs), 3),
        "ratio": round(median(ours for ours, _ in pairs) / median(bare for _, bare in pairs), 3),
        "help_cpu_seconds": round(median(helps), 3),
    }
    print(json.dumps(result) if options.json else "\n".join(f"{name:22}{value}" for name, value in result.items()))
    sys.exit(result["ratio"] > MOST_RATIO or result["help_cpu_seconds"] > MOST_HELP_SECONDS)


if __name__ == "__main__":
    main()
