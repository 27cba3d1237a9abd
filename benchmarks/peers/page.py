"""The page about the rivals, made of the JSON of a run: first where others are ahead, then every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.peers.material import KINDS, MOST_EMBEDDED
from benchmarks.pictures import draw_bars
from benchmarks.results import FOLDER, name_run, read_result

OURS = "refdesk"
MOST = 1.5
"""Times the best: what is worse by more is explained."""

Result: TypeAlias = dict[str, Any]
Values: TypeAlias = dict[str, float]

HEAD = """# Beside other memory servers

The same work, done by refdesk and by what else can be installed today, each through its own door, in one run:
`make peers`. All of them run the same sentence encoder inside their own process where one can be given, so that what
differs is what each makes of it. While one is timed the processes of the others stand still; each asks once, untimed,
when its turn to search begins. This page is written by that command from [its figures](peers.json); nothing on it is
written by hand except the reasons.
"""

_COUNTED = {"stores": "client", "searches": "note"}
"""What the figures of a part are told by."""

REASONS = {
    "start": (
        "A server in Node on one file of text has less to load. A client's second server is a forwarder to the desk "
        "that runs already, and its time is in the row below."
    ),
    "stores": (
        "A rival that is faster here appends to a file or a log and answers before the disk has it; refdesk answers "
        "once the note is committed with `synchronous=FULL`, so that a power loss takes nothing that was acknowledged."
    ),
    "searches": (
        "A search here is hybrid, keyword and semantic, behind filters by org, state and time, over a store that other "
        "processes write meanwhile, and has a snippet and its reasons with each result. chroma-mcp and "
        "mcp-server-qdrant compare vectors alone, server-memory looks for one piece of text, and txtai fuses both over "
        "an index in the memory of one process, which gives texts as they are. A desk that holds much gives back what "
        "its searches have read of the index, to stay below 300 MB with 100,000 notes, and the next ones read it anew: "
        "that is the price of the memory in the table below."
    ),
    "memory": "What has no embedding model in its process has less in memory.",
    "disk": "What keeps no history, audit or index of words keeps less.",
    "fill": "What fills faster has nothing to embed, or writes neither versions nor an audit.",
    "quality": "The same encoder is fused otherwise.",
    "corrections": "What overwrites has nothing outdated left to show; here the older note stays readable, marked.",
    "tokens": "A server with two tools says less; refdesk's are those of the knowledge toolset.",
}
"""What the page says where a rival is ahead, by kind of measure."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the comparison.

    Attributes:
        title: What is compared, for people.
        kind: Of the reason, and the heading that has the figures.
        values: Those of each rival that has one and keeps what it acknowledges.
        unit: Of the values.
        is_more_better: Otherwise less is.
    """

    title: str
    kind: str
    values: Values
    unit: str
    is_more_better: bool = False

    def best(self) -> str:
        """Return who is first; of equals refdesk."""
        pick = max if self.is_more_better else min
        best = pick(self.values.values())
        return OURS if self.values.get(OURS) == best else next(n for n, v in self.values.items() if v == best)

    def behind(self) -> float:
        """Return how many times worse than the best refdesk is: 1 where it is first."""
        best, ours = self.values[self.best()], self.values[OURS]
        worse, better = (best, ours) if self.is_more_better else (ours, best)
        return worse / better if better else float("inf") if worse else 1.0


def write() -> None:
    """Write the page and its pictures from the JSON that is there."""
    result = read_result("peers")
    if result is None:
        raise SystemExit("There is no docs/benchmarks/peers.json yet: run it with --write.")
    (FOLDER / "peers.md").write_text(render(result), encoding="utf-8")
    for name, picture in draw(result).items():
        (FOLDER / name).write_text(picture, encoding="utf-8")


def render(result: Result) -> str:
    """Return the page."""
    parts = result["parts"]
    sections = [HEAD, *_render_runs(parts), *_render_standing(result)]
    writers: dict[str, Callable[[Result, Result], Iterable[str]]] = {
        "start": _render_start,
        "stores": _render_stores,
        "searches": _render_searches,
        "quality": _render_quality,
        "kills": _render_kills,
        "corrections": _render_corrections,
    }
    for name, writer in writers.items():
        if name in parts:
            sections += writer(parts[name]["figures"], result)
    sections += _render_rivals(result)
    return "\n".join(sections).rstrip() + "\n"


def _render_runs(parts: Result) -> Iterable[str]:
    runs: dict[str, list[str]] = {}
    for name, part in parts.items():
        whole: dict[str, Result] = {name: part}
        of_each = {_name_key(name, key): run for key, run in part.get("runs", {}).items()}
        for title, run in (of_each or whole).items():
            runs.setdefault(f"{name_run(run)} Its form is `{run['form']}`.", []).append(title)
    for said, names in runs.items():
        yield f"**{'; '.join(names)}**: {said}\n"


def _name_key(part: str, key: str) -> str:
    return f"{part}, {_count(part, key)}" if part in _COUNTED else f"{part}, {key}"


def _count(part: str, key: str) -> str:
    """Return how many clients stored, or in how many notes was searched."""
    return f"{int(key):,} {_COUNTED[part]}{'' if int(key) == 1 else 's'}"


def list_losers(result: Result) -> dict[str, str]:
    """Return who lost something that it had acknowledged, and when."""
    losers: dict[str, list[str]] = {}
    parts = result["parts"]
    for name, figures in parts.get("kills", {}).get("figures", {}).items():
        if figures.get("lost"):
            losers.setdefault(name, []).append(f"{figures['lost']} of {figures['acknowledged']} after `kill -9`")
    for name, figures in parts.get("stores", {}).get("figures", {}).items():
        for clients, each in figures.items():
            if each.get("lost"):
                lost = f"{each['lost']} of {each['acknowledged']} with {_count('stores', clients)}"
                losers.setdefault(name, []).append(lost)
    return {name: ", ".join(lost) for name, lost in losers.items()}


def list_measures(result: Result) -> list[Measure]:
    """Return what is compared; times of stores only among those that keep what they acknowledge."""
    parts = {name: part["figures"] for name, part in result["parts"].items()}
    losers = list_losers(result)
    servers = {name for name, rival in result["rivals"].items() if rival["server"]}
    measures = [
        Measure("start to the list of tools", "start", _pick(parts, "start", "seconds", only=servers), "s"),
        Measure("tokens of the list of tools", "tokens", _pick(parts, "start", "tokens", only=servers), "tokens"),
    ]
    for clients in _list_keys(parts.get("stores", {})):
        for which in ("p50", "p95"):
            values = _pick(parts, "stores", clients, which)
            kept = {name: value for name, value in values.items() if name not in losers}
            measures.append(Measure(f"a store, {_count('stores', clients)}, {which}", "stores", kept, "ms"))
    for size in _list_keys(parts.get("searches", {})):
        place = _count("searches", size)
        measures += [
            *(
                Measure(f"a search, {place}, {which}", "searches", _pick(parts, "searches", size, which), "ms")
                for which in ("p50", "p95")
            ),
            Measure(f"memory, {place}", "memory", _pick(parts, "searches", size, "memory", scale=1e-6), "MB"),
            Measure(f"disk, {place}", "disk", _pick(parts, "searches", size, "disk", scale=1e-6), "MB"),
            Measure(f"filling, {place}", "fill", _pick(parts, "searches", size, "fill seconds"), "s"),
        ]
    for name in _list_keys(parts.get("quality", {})):
        measures.append(Measure(f"nDCG@10, {name}", "quality", _pick(parts, "quality", name, "ndcg"), "", True))
    for kind in KINDS:
        rates = {
            name: figures["corrected"][kind]["current first"] / figures["corrected"][kind]["asked"]
            for name, figures in parts.get("corrections", {}).items()
            if kind in figures.get("corrected", {})
        }
        measures.append(Measure(f"the current fact first, {kind}", "corrections", rates, "", True))
    return [measure for measure in measures if OURS in measure.values]


def _pick(parts: Result, part: str, *path: str, scale: float = 1.0, only: set[str] | None = None) -> Values:
    values: Values = {}
    for name, figures in parts.get(part, {}).items():
        found: Any = figures
        for key in path:
            found = found.get(key) if found is not None else None
        if isinstance(found, int | float) and (only is None or name in only):
            values[name] = found * scale
    return values


def _list_keys(figures: Mapping[str, Result]) -> list[str]:
    keys = dict.fromkeys(key for each in figures.values() for key in each)
    return sorted(keys, key=lambda key: (int(key) if key.isdecimal() else 0, key))


def _render_standing(result: Result) -> Iterable[str]:
    measures = list_measures(result)
    if not measures:
        yield "No times, sizes or quality have been measured yet: `make peers` measures them.\n"
        return
    behind = sorted((m for m in measures if m.best() != OURS), key=lambda m: -m.behind())
    yield "## Where others are ahead\n"
    if behind:
        rows = [
            [
                f"[{m.title}](#{ANCHORS[m.kind]})",
                _show(m.values[OURS], m.unit),
                f"{m.best()}: {_show(m.values[m.best()], m.unit)}",
                f"{m.behind():.2f} ×",
            ]
            for m in behind
        ]
        yield table(["", OURS, "best", "refdesk is behind by"], rows)
        for kind in dict.fromkeys(m.kind for m in behind):
            yield f"- **{NAMES[kind]}.** {REASONS[kind]}"
        yield ""
    else:
        yield "Nowhere in this run.\n"
    first = [f"[{m.title}](#{ANCHORS[m.kind]})" for m in measures if m.best() == OURS]
    yield f"refdesk is first in {len(first)} of {len(measures)} measures: {', '.join(first)}.\n"
    losers = list_losers(result)
    lost = "; ".join(f"{name}: {what}" for name, what in losers.items())
    yield (
        "Store times are compared among those that keep what they acknowledge. "
        + (f"These lost some of it: {lost}." if losers else "In this run all of them did.")
        + "\n"
    )


NAMES = {
    "start": "Start",
    "tokens": "Tokens",
    "stores": "Stores",
    "searches": "Searches",
    "memory": "Memory",
    "disk": "Disk",
    "fill": "Filling",
    "quality": "Quality",
    "corrections": "Corrections",
}
ANCHORS = {
    "start": "start",
    "tokens": "start",
    "stores": "stores",
    "searches": "searches",
    "memory": "searches",
    "disk": "searches",
    "fill": "searches",
    "quality": "quality",
    "corrections": "answers-after-a-correction",
}


def _render_start(figures: Result, result: Result) -> Iterable[str]:
    yield "## Start\n"
    yield (
        "Seconds from the start of the process to its answer to `tools/list`, on a folder that it knows; for a "
        "library, until it is imported and open. Tokens are o200k's, of the list as compact JSON.\n"
    )
    rows = [
        [
            name,
            _error(each) or _show(each.get("seconds"), "s"),
            _show(each.get("tools") or None),
            _show(each.get("tokens")),
        ]
        for name, each in figures.items()
    ]
    beside = figures.get(OURS, {}).get("seconds beside one that runs")
    rows.insert(1, ["refdesk, desk running", _show(beside, "s"), "", ""])
    yield table(["", "start", "tools", "tokens"], rows)


def _render_stores(figures: Result, result: Result) -> Iterable[str]:
    yield "## Stores\n"
    yield (
        "One note a call. Each client is a process of its own on one folder, as agents' hosts start them. Lost is what "
        "was acknowledged and is not there when all have been closed.\n"
    )
    for clients in _list_keys(figures):
        yield f"### {'One client' if clients == '1' else f'{clients} clients at once'}\n"
        yield f"![Store times](peers-stores-{clients}.svg)\n"
        rows = [
            [
                name,
                *_times(each),
                _show(each.get("per second")),
                _show(each.get("lost")),
                _show(each.get("acknowledged")),
                _error(each) or _error(each, "why"),
            ]
            for name, each in _at(figures, clients)
        ]
        yield table(["", "p50", "p95", "stores a second", "lost", "acknowledged", "refused because"], rows)


def _render_searches(figures: Result, result: Result) -> Iterable[str]:
    yield "## Searches\n"
    yield (
        "Ten results for four words, one client. Memory is the proportional set size of all its processes after the "
        "searches, disk what its files take without the encoder's, filling the time of its own bulk way, vectors "
        f"included; beyond {MOST_EMBEDDED:,} notes a text is embedded once for all rivals, each is filled before, and "
        "filling is not told.\n"
    )
    for size in _list_keys(figures):
        yield f"### {int(size):,} notes\n"
        yield f"![Search times](peers-searches-{size}.svg)\n"
        rows = [
            [
                name,
                *_times(each),
                _show(_scaled(each, "memory"), "MB"),
                _show(_scaled(each, "disk"), "MB"),
                _show(each.get("fill seconds"), "s"),
                _error(each),
            ]
            for name, each in _at(figures, size)
        ]
        yield table(["", "p50", "p95", "memory", "disk", "filling", "not measured because"], rows)


def _render_quality(figures: Result, result: Result) -> Iterable[str]:
    yield "## Quality\n"
    yield (
        "nDCG@10 of the questions of judged collections: `emanual`, support manuals with users' questions, and "
        "`scifact`, claims with abstracts. The collections are not part of the repository.\n"
    )
    names = _list_keys(figures)
    rows = [
        [rival, *(_error(each.get(name, {})) or _show(each.get(name, {}).get("ndcg")) for name in names)]
        for rival, each in figures.items()
    ]
    yield table(["", *names], rows)
    for name in names:
        yield f"![nDCG@10 on {name}](peers-quality-{name}.svg)\n"


def _render_kills(figures: Result, result: Result) -> Iterable[str]:
    yield "## What is left after kill −9\n"
    yield (
        "All processes are killed while notes are stored; what had been acknowledged is looked for afterwards, and is "
        "lost where the store cannot be opened any more. A kill does not empty the caches of the system: power loss is "
        "another test, which only refdesk's own store has gone through.\n"
    )
    rows = [
        [name, str(each["kills"]), str(each["acknowledged"]), str(each["lost"]), _error(each)]
        for name, each in figures.items()
    ]
    yield table(["", "kills", "acknowledged", "lost", "not measured because"], rows)


def _render_corrections(figures: Result, result: Result) -> Iterable[str]:
    yield "## Answers after a correction\n"
    asked = next(
        (way["paraphrase"]["asked"] for each in figures.values() for way in each.values() if KINDS[2] in way), 0
    )
    yield (
        f"{asked} facts in three generations of different wording, then questions in the words of the oldest, in those "
        "of the newest and in others. *Current* is how many have the newest fact before any older one, *outdated "
        "first* how many an older one, *shown* how many have an older one anywhere among the first five, with nothing "
        "that says so.\n"
    )
    said = {"corrected": "Corrected by what each offers for it", "added": "Only added, the older one not looked for"}
    for way, title in said.items():
        yield f"### {title}\n"
        rows = [
            [name, *(_show_judged(each[way].get(kind)) for kind in KINDS), _error(each[way])]
            for name, each in figures.items()
            if way in each
        ]
        yield table(["current / outdated first / shown", *KINDS, "not measured because"], rows)


def _show_judged(counts: Result | None) -> str:
    if counts is None:
        return ""
    return f"{counts['current first']} / {counts['outdated first']} / {counts['outdated shown']}"


def _render_rivals(result: Result) -> Iterable[str]:
    yield "## Who is compared, and how\n"
    rows = [
        [
            name,
            f"{rival['package']} {rival['version']}",
            rival["door"],
            rival["settings"],
            rival["corrects"] or "nothing",
        ]
        for name, rival in result["rivals"].items()
    ]
    yield table(["", "package", "door", "settings", "a note is corrected by"], rows)
    for name, reason in result["absent"].items():
        yield f"- {name} is not compared: {reason}"


def _at(figures: Result, key: str) -> Iterable[tuple[str, Result]]:
    return ((name, each[key]) for name, each in figures.items() if key in each)


def _times(each: Result) -> tuple[str, str]:
    return _show(each.get("p50"), "ms"), _show(each.get("p95"), "ms")


def _scaled(each: Result, key: str) -> float | None:
    return each[key] / 1e6 if key in each else None


def _error(each: Result, key: str = "error") -> str:
    """Return what a rival said, as a cell of a table."""
    return " ".join(str(each.get(key, "")).split()).replace("|", "/")[:120]


def _show(value: float | None, unit: str = "") -> str:
    if value is None:
        return ""
    said = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}" if unit in ("", "s") else f"{value:,.1f}"
    return f"{said} {unit}".strip()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, without columns that are empty."""
    filled = list(rows)
    used = [0, *(place for place in range(1, len(head)) if any(row[place] for row in filled))]
    lines = [[head[place] for place in used], ["---"] * len(used), *([row[place] for place in used] for row in filled)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def draw(result: Result) -> dict[str, str]:
    """Return the pictures of the page by file name."""
    parts = {name: part["figures"] for name, part in result["parts"].items()}
    pictures: dict[str, str] = {}
    for part, title in (("stores", "Store times"), ("searches", "Search times")):
        for key in _list_keys(parts.get(part, {})):
            what = f"{title}, {_count(part, key)}"
            rows: dict[str, list[float]]
            rows = {name: [each["p50"], each["p95"]] for name, each in _at(parts[part], key) if "p50" in each}
            rows = {name: rows[name] for name in sorted(rows, key=lambda name: rows[name][0])}
            pictures[f"peers-{part}-{key}.svg"] = draw_bars(what, rows, "ms", series=("median", "95th percentile"))
    for name in _list_keys(parts.get("quality", {})):
        values = _pick(parts, "quality", name, "ndcg")
        rows = {rival: [value] for rival, value in sorted(values.items(), key=lambda pair: -pair[1])}
        pictures[f"peers-quality-{name}.svg"] = draw_bars(f"nDCG@10 on {name}", rows, "")
    return pictures
