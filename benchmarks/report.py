"""Runs the benchmarks that belong together and keeps what they print: `python -m benchmarks.report speed | quality`.

`make report` is both: what `make bench` and `make eval` run. Each command's output is shown as it comes and kept in
`docs/benchmarks/NAME.json` and, as a page, in `NAME.md`. Exit status 1 when a command exceeds one of its limits; the
others are run all the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.results import FOLDER, REPOSITORY, describe_run, name_run, write_result

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
VARIABLES = {"finding": ONE_THREAD}
COMMANDS = {
    "speed": (
        *("startup", "desk", "embedding", "updates", "index", "finding", "first_answer", "writes", "keeping", "audit"),
        *("corrections", "rest", "articles", "streaming", "tokens", "fairness", "skills_load"),
    ),
    "quality": (
        *("quality", "learning", "playbooks", "everything", "matches", "azure_questions", "impact", "dialogues"),
    ),
}
TITLES = {"speed": "Speed, as ratios in one run", "quality": "How well things are found and learned"}
MAKE = {"speed": "make bench", "quality": "make eval"}


def main() -> None:
    """Run, show, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=COMMANDS)
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="these alone; nothing is kept")
    options = parser.parse_args()
    commands = {name: run(name) for name in COMMANDS[options.name] if not options.only or name in options.only}
    if not options.only:
        result = {**describe_run(), "commands": commands}
        write_result(options.name, result)
        (FOLDER / f"{options.name}.md").write_text(render(options.name, result), encoding="utf-8")
    sys.exit(any(each["status"] for each in commands.values()))


def run(name: str) -> dict[str, Any]:
    """Return what a command printed, how it ended and how long it took."""
    print(f"python -m benchmarks.{name}", flush=True)
    began, lines = time.perf_counter(), list[str]()
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    variables = {**os.environ, **VARIABLES.get(name, {}), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return {"status": process.returncode, "seconds": round(time.perf_counter() - began), "output": lines}


def render(name: str, result: dict[str, Any]) -> str:
    """Return the page."""
    lines = [f"# {TITLES[name]}\n", f"What `{MAKE[name]}` prints. {name_run(result)}\n"]
    over = [command for command, each in result["commands"].items() if each["status"]]
    said = ", ".join(f"`{command}`" for command in over)
    lines.append(f"Over one of their limits in this run: {said}.\n" if over else "All of them kept their limits.\n")
    for command, each in result["commands"].items():
        output = "\n".join(each["output"]) or "(nothing)"
        lines.append(
            f"## {command}\n\n`python -m benchmarks.{command}`, {each['seconds']} s\n\n```text\n{output}\n```\n"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
