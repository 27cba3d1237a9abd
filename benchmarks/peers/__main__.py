"""refdesk beside installed rivals.

    python -m benchmarks.peers [--form small | full | long] [--rivals NAME …] [--parts NAME …] [--sizes N …]
        [--clients N …] [--fill] [--write]

Each rival is installed into an environment of its own below `.benchmarks/`, at pinned versions, and does the same work
through its own door: MCP over stdio, or its Python interface in a process of its own. All have the same sentence
encoder where one can be given. Searches are taken in turns, and while one is timed the processes of the others stand
still, so that ratios hold on a busy machine. A rival that cannot be had is listed with the reason.

`small` takes about ten minutes once everything is installed, `full` an hour, `long` many. `--write` puts
`docs/benchmarks/peers.json`, `peers.md` and the pictures there; parts, sizes and numbers of clients that were not
measured stay as they were, with the run that they come from. Without it the page is printed. `--sizes` and `--clients`
stand in the place of the form's numbers of notes and of clients that store at once. Beyond 1,000 notes each is filled
once and kept; `--fill` does that alone, and nothing of it is timed, so the machine may be busy. `--page` writes page
and pictures anew from the JSON. `--lock` resolves the versions anew. Where the judged collections are not at hand,
quality is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.peers import page
from benchmarks.peers.installing import ENVIRONMENTS, RIVALS, install, list_rivals, lock
from benchmarks.peers.measuring import (
    FORMS,
    Failure,
    Form,
    check_keeping,
    fill_all,
    measure_corrections,
    measure_kills,
    measure_quality,
    measure_searches,
    measure_start,
    measure_stores,
)
from benchmarks.peers.rival import Rival
from benchmarks.results import describe_run, read_result, write_result
from benchmarks.tokens import count_tokens

PARTS = ("start", "stores", "searches", "quality", "kills", "corrections")
KEYED = {"stores", "searches", "quality"}
"""Parts whose figures are by number of clients, number of notes or collection, each measured when it was."""

VECTORS, FILLED = ENVIRONMENTS / "vectors.sqlite3", ENVIRONMENTS / "filled"


def main() -> None:
    """Install, measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=FORMS, default="small")
    parser.add_argument("--rivals", nargs="+", choices=[kind.name for kind in RIVALS], metavar="NAME")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N")
    parser.add_argument("--clients", nargs="+", type=int, metavar="N")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--lock", action="store_true")
    options = parser.parse_args()
    if options.lock:
        lock()
        return
    if not options.page:
        form = FORMS[options.form]
        sizes, clients = (tuple(options.sizes or form.sizes), tuple(options.clients or form.clients))
        form = replace(form, sizes=sizes, clients=clients)
        rivals, absent = install_all(options.rivals)
        if options.fill:
            fill_all(rivals, form, FILLED)
            return
        result: dict[str, Any] | None = None
        for part in options.parts:
            result = merge(result, measure_part(part, rivals, form) | {"absent": absent})
            if options.write:  # after each part: whoever stops a long run has what was measured
                write_result("peers", merge(read_result("peers"), result))
        if not options.write:
            print(page.render(result or {"rivals": {}, "absent": absent, "parts": {}}))
            return
    page.write()


def merge(before: dict[str, Any] | None, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose parts, where they were not measured now, are those of the one before."""
    if before is None:
        return result
    merged = {
        name: merge_part(before["parts"].get(name), part) if name in KEYED else part
        for name, part in result["parts"].items()
    }
    return {
        "rivals": {**before["rivals"], **result["rivals"]},
        "absent": result["absent"],
        "parts": {**before["parts"], **merged},
    }


def merge_part(before: dict[str, Any] | None, part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with those keys of the one before that were not measured now, each with the run it comes from."""
    runs = {key: describe_part(part) for each in part["figures"].values() for key in each}
    figures: dict[str, dict[str, Any]] = {name: dict(each) for name, each in part["figures"].items()}
    for name, each in (before or {"figures": {}})["figures"].items():
        kept = {key: values for key, values in each.items() if key not in runs}
        if kept:
            figures[name] = kept | figures.get(name, {})
    known: dict[str, Any] = {} if before is None else before.get("runs", {})
    for key in dict.fromkeys(key for each in figures.values() for key in each):
        runs.setdefault(key, known.get(key) or describe_part(before or part))
    return {**part, "figures": figures, "runs": runs}


def describe_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return what a part says of the run that it comes from."""
    return {key: value for key, value in part.items() if key not in ("figures", "runs")}


def install_all(names: list[str] | None) -> tuple[list[Rival], dict[str, str]]:
    """Return those that can be had, and why the others cannot."""
    present, absent = list[Rival](), dict[str, str]()
    for rival in list_rivals(names):
        try:
            install(rival)
            check_keeping(rival)
        except Failure as error:
            absent[rival.name] = str(error)
        else:
            present.append(rival)
    asked = {rival.name for rival in present} | absent.keys()
    return present, {**absent, **{kind.name: "left out of this run" for kind in RIVALS if kind.name not in asked}}


def measure_part(part: str, rivals: list[Rival], form: Form) -> dict[str, Any]:
    """Return what was measured of one part, with what it was measured on."""
    VECTORS.parent.mkdir(parents=True, exist_ok=True)
    measures: dict[str, Callable[[], Any]] = {
        "start": lambda: measure_start(rivals, form, count),
        "stores": lambda: measure_stores(rivals, form),
        "searches": lambda: measure_searches(rivals, form, FILLED),
        "quality": lambda: measure_quality(rivals, form, VECTORS),
        "kills": lambda: measure_kills(rivals, form),
        "corrections": lambda: measure_corrections(rivals, form),
    }
    began = time.perf_counter()
    figures = measures[part]()
    seconds = round(time.perf_counter() - began)
    print(f"{part}: {seconds} s", file=sys.stderr, flush=True)
    measured = {**describe_run(), "form": form.name, "seconds": seconds, "figures": figures}
    return {"rivals": {rival.name: describe(rival) for rival in rivals}, "parts": {part: measured}}


def describe(rival: Rival) -> dict[str, Any]:
    """Return what the page says of a rival besides its figures."""
    facts = {"version": rival.read_version(), "package": rival.package, "door": rival.door, "settings": rival.settings}
    return {**facts, "corrects": rival.corrects, "server": rival.is_server}


def count(tools: list[dict[str, Any]]) -> int:
    """Return the tokens of a list of tools as compact JSON."""
    return count_tokens(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main()
