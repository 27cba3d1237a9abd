"""What the reliability tests did and what held, as a page: `python -m benchmarks.reliability COUNTS [--write]`.

`make soak` and `make soak-engines` end with it. COUNTS is the file that the tests wrote to (`REFDESK_COUNTS`), a line
for each that held. With `--write` it becomes `docs/benchmarks/reliability.json` and `reliability.md`: a kind that this
run counted in its long form replaces what was there, one of the short form only what was short; what was not counted
stays with its date.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.results import FOLDER, describe_run, name_run, read_result, write_result

HELD_BY = {
    "kills of servers": (
        "a server killed under load, half of the time at a chosen system call",
        "tests/reliability/test_kills.py",
    ),
    "kills of desks": ("the desk of the machine killed under its clients", "tests/reliability/test_desk_kills.py"),
    "kills of syncs": ("a sync of the feed killed at any moment", "tests/reliability/test_sync_kills.py"),
    "kills while erasing": ("a store killed while it erases", "tests/reliability/test_erase_kills.py"),
    "kills while backing up and restoring": (
        "a process killed while it keeps",
        "tests/reliability/test_keeping_kills.py",
    ),
    "kills while moving": ("what moves a store that serves", "tests/reliability/test_moves.py"),
    "kills while moving between databases": (
        "what moves a PostgreSQL that serves to another, the servers on it, or one of both",
        "tests/engines/test_moves.py",
    ),
    "kills of a cluster's nodes": (
        "a node killed under load, while the orgs of the others go on",
        "tests/engines/test_citus_kills.py",
    ),
    "power-loss images": (
        "what a disk may hold when the power fails, opened as a server opens it",
        "tests/reliability/test_power_loss.py",
    ),
    "fuzzed messages": ("broken and hostile messages over HTTP, SSE and stdio", "tests/reliability/test_fuzzing.py"),
    "tenant calls": (
        "the same call with another org's things and with none, compared",
        "tests/reliability/test_tenant_matrix.py",
    ),
    "damaged files": (
        "flipped, cut, zeroed, swapped, lost, stale and foreign files",
        "tests/reliability/test_damage.py",
    ),
    "backups": ("made beside use and beside kills, and read back", "tests/reliability/test_keeping_kills.py"),
    "restores": ("put in place beside kills", "tests/reliability/test_keeping_kills.py"),
    "erasures": ("looked for in every byte of the store's files", "tests/reliability/test_keeping_kills.py"),
    "racing calls": (
        "pairs of processes that use one token, or supersede in a circle",
        "tests/reliability/test_races.py",
    ),
}
"""What is counted, in the order of the page, and the test that asserts what has to hold."""

MENDED = (
    ("a file that a kill left half merged with its log was taken for a replaced one", "de8396b"),
    ("an index that a search had made was lost when the search was given up", "8567b0f"),
    ("a signal was lost that came while a server began to listen", "6cc6587"),
    ("a store whose maker was killed right after its first commit was taken for a copy made in use", "a5ee429"),
)
"""Faults of refdesk that kills and signals showed, and the commit that mended each."""

HEAD = """# What was tried, and what held

Counts of the reliability tests, each of which asserts that nothing acknowledged is lost, doubled or shown to others,
and each of which ships with a planted fault that it must catch. `make soak` and `make soak-engines` run their long
forms and end by writing this page from [their counts](reliability.json); a test counts only what held.
[Promises](../explanation/promises.md) has what is asserted, and where.
"""


def main() -> None:
    """Read counts, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", type=Path, nargs="?")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    result = read_result("reliability") or {"counts": {}}
    if options.counts is not None:
        result = merge(result, add_up(options.counts))
    if options.write:
        write_result("reliability", result)
        (FOLDER / "reliability.md").write_text(render(result), encoding="utf-8")
    else:
        print(render(result))


def add_up(path: Path) -> dict[str, dict[str, Any]]:
    """Return what the lines of a file add up to by kind; a kind's long form alone where it has one."""
    sums: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for line in path.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        sums[said["kind"]][said["form"]] += said["count"]
    run = describe_run()
    counts: dict[str, dict[str, Any]] = {}
    for kind, forms in sums.items():
        form = "soak" if "soak" in forms else "short"
        counts[kind] = {**run, "form": form, "count": forms[form]}
    return counts


def merge(before: dict[str, Any], counts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the counts with those of a run in their place; a short form replaces no long one."""
    kept = dict(before["counts"])
    for kind, each in counts.items():
        if each["form"] == "soak" or kept.get(kind, each)["form"] == "short":
            kept[kind] = each
    return {"counts": kept}


def render(result: dict[str, Any]) -> str:
    """Return the page."""
    lines = [HEAD, "| | count | what | held by | form | date | commit |", "|---|---:|---|---|---|---|---|"]
    for kind, (what, test) in HELD_BY.items():
        each = result["counts"].get(kind)
        figures = (
            (f"{each['count']:,}", each["form"], each["date"], f"`{each['commit']}`")
            if each
            else ("not counted yet", "", "", "")
        )
        count, *facts = figures
        lines.append(f"| {kind} | {count} | {what} | `{test}` | {' | '.join(facts)} |")
    runs = dict.fromkeys(name_run(each) for each in result["counts"].values())
    lines += ["", *(f"{run}\n" for run in runs)]
    lines += ["Lost, doubled or shown to others in what is counted: 0, or the run would have failed.\n"]
    lines += ["## Found and mended\n", "| What | Mended in |", "|---|---|"]
    lines += [f"| {what} | `{commit}` |" for what, commit in MENDED]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
