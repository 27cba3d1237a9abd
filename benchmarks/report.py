"""Runs the benchmarks that belong together and keeps what they print: `python -m benchmarks.report NAME [--only …]`.

`make bench` is `speed`, `make eval` is `quality`, `make bench-engines` is `engines`. Each command's output is shown as
it comes and kept in `docs/benchmarks/NAME.json` and, as a page, in `NAME.md`, as soon as it has ended; a command that
was not run stays there as it was, with the date and the commit of its own run. Exit status 1 when a command exceeds one
of its limits; the others are run all the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import growth_page
from benchmarks.quality import get_data_folder
from benchmarks.results import FOLDER, REPOSITORY, describe_run, name_run, read_result, write_result

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
VARIABLES = {"finding": ONE_THREAD}
ARGUMENTS = {"finding": ("--long", "--cpu"), "rest": ("--notes", "0", "100000")}
COMMANDS = {
    "speed": (
        *("startup", "desk", "embedding", "updates", "index", "finding", "first_answer", "writes", "keeping", "audit"),
        *("corrections", "rest", "articles", "streaming", "tokens", "fairness", "skills_load"),
    ),
    "quality": (*("quality", "learning", "everything", "matches", "azure_questions", "impact", "dialogues"),),
    "engines": ("postgres", "commits", "cluster", "tenants"),
}
TITLES = {
    "speed": "Speed, as ratios in one run",
    "quality": "How well things are found and learned",
    "engines": "The engines beside plain SQL, as ratios in one run",
}
MAKE = {"speed": "make bench", "quality": "make eval", "engines": "make bench-engines"}


def main() -> None:
    """Run, show, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=COMMANDS)
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="these alone; the others stay as they were")
    options = parser.parse_args()
    wanted: list[str] = options.only or list(COMMANDS[options.name])
    if unknown := set(wanted) - set(COMMANDS[options.name]):
        parser.error(f"{', '.join(sorted(unknown))}: {options.name} has {', '.join(COMMANDS[options.name])}")
    failed = False
    for command in wanted:
        done = run(command)
        failed = failed or bool(done["status"])
        keep(options.name, command, done)
    sys.exit(failed)


def hide(line: str) -> str:
    """Return a line without the folders of this machine."""
    for folder in (get_data_folder().parent, REPOSITORY, Path(tempfile.gettempdir())):
        line = line.replace(str(folder), "…")
    return line


def keep(name: str, command: str, done: dict[str, Any]) -> None:
    """Put what a command did into the figures, and write the page anew."""
    before = (read_result(name) or {}).get("commands", {})
    if not done["output"]:
        return  # what it needs is not here
    commands = {**before, command: {**describe_run(), **done}}
    ordered = {each: commands[each] for each in COMMANDS[name] if each in commands}
    result = {**(read_result(name) or {}), "commands": ordered}
    write_result(name, result)
    (FOLDER / f"{name}.md").write_text(render(name, result), encoding="utf-8")


def run(name: str) -> dict[str, Any]:
    """Return what a command was given, what it printed, how it ended and how long it took."""
    arguments = [f"benchmarks.{name}", *ARGUMENTS.get(name, ())]
    print(f"python -m {' '.join(arguments)}", flush=True)
    began, lines = time.perf_counter(), list[str]()
    command = [sys.executable, "-m", *arguments]
    variables = {**os.environ, **VARIABLES.get(name, {}), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(hide(line.rstrip()))
    seconds = round(time.perf_counter() - began)
    return {"arguments": arguments[1:], "status": process.returncode, "seconds": seconds, "output": lines}


def render(name: str, result: dict[str, Any]) -> str:
    """Return the page."""
    commands = result.get("commands", {})
    lines = [f"# {TITLES[name]}\n", f"What `{MAKE[name]}` prints, each part with the run that it comes from.\n"]
    over = [command for command, each in commands.items() if each["status"]]
    said = ", ".join(f"[{command}](#{command})" for command in over)
    if commands:
        lines.append(f"Over one of their limits: {said}.\n" if over else "All of them kept their limits.\n")
    if "growth" in result:
        lines.append(growth_page.render(result["growth"]))
    for command, each in commands.items():
        output = "\n".join(each["output"]) or "(nothing)"
        called = " ".join((command, *each.get("arguments", ())))
        lines.append(
            f"## {command}\n\n`python -m benchmarks.{called}`, {each['seconds']} s. {name_run(each)}\n\n"
            f"```text\n{output}\n```\n"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
