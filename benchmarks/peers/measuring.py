"""What is measured of each, in turns where time is: while one searches, the processes of all others stand still."""

from __future__ import annotations

import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.peers.client import Client, PeerError, measure_memory, signal_marked
from benchmarks.peers.filling import Failure, Figures, Keeper, fill, say
from benchmarks.peers.material import KINDS, MOST_EMBEDDED, SEED, Fact, Writer, make_facts
from benchmarks.peers.rival import Note, Rival
from benchmarks.peers.servers import Refdesk

SLICE = 10
WARM_UP = 3
SETTLE_SECONDS = 6.0
"""Each has this long for what it loads and begins after its first searches; it stands still while others are asked."""

TOP = 10
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Form:
    """How much is done.

    Attributes:
        name: Which of `FORMS`.
        starts: Starts of each.
        stores: Stores of one client; of several, `stores_each` of each.
        clients: Numbers of clients that store at once.
        sizes: Numbers of notes that are searched.
        searches: Searches at each size.
        fill_seconds: For filling one rival.
        collections: Judged collections, and how many questions of each; 0 is all.
        kills: Kills, each after about `before_kill` stores.
        facts: Facts that are corrected twice.
    """

    name: str
    starts: int
    stores: int
    stores_each: int
    clients: tuple[int, ...]
    sizes: tuple[int, ...]
    searches: int
    fill_seconds: float
    collections: Mapping[str, int]
    kills: int
    before_kill: int
    facts: int


FORMS = {
    "tiny": Form("tiny", 1, 4, 2, (1, 2), (30,), 4, 60.0, {}, 1, 5, 3),
    "small": Form("small", 1, 20, 3, (1, 8), (1_000,), 20, 120.0, {"emanual": 60}, 1, 10, 10),
    "full": Form("full", 3, 40, 5, (1, 8, 32), (1_000, 10_000), 40, 300.0, {"emanual": 0}, 3, 15, 60),
    "long": Form(
        *("long", 5, 200, 20, (1, 8, 32), (1_000, 10_000, 100_000), 200, 1_800.0),
        *({"emanual": 0, "scifact": 0}, 20, 30, 300),
    ),
}


def pause(mark: str) -> None:
    """Let everything that carries a mark stand still."""
    signal_marked(mark, signal.SIGSTOP)


def resume(mark: str) -> None:
    """Let it go on."""
    signal_marked(mark, signal.SIGCONT)


@contextmanager
def at_work(client: Client) -> Generator[None]:
    """Let a client's server work, and nothing else of it before and after."""
    resume(client.mark)
    try:
        yield
    finally:
        pause(client.mark)


def end(client: Client) -> None:
    """End a client that may stand still."""
    resume(client.mark)
    client.close()


def close_all(clients: Sequence[Client]) -> None:
    """End clients that share a mark."""
    for client in clients:
        client.hang_up()
    for client in clients[:1]:
        client.close()
    for client in clients[1:]:
        client.reap()


def make_home() -> tempfile.TemporaryDirectory[str]:
    """Return a new folder, gone when it is closed, whatever a dying process still writes there."""
    return tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True)


def spread(times: Sequence[float]) -> Figures:
    """Return the median and the 95th percentile, in milliseconds."""
    if not times:
        return {}
    last = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return {"p50": round(median(times) * 1000, 2), "p95": round(last * 1000, 2), "count": len(times)}


def measure_start(rivals: Sequence[Rival], form: Form, count_tokens: Callable[[Any], int]) -> dict[str, Figures]:
    """Return the seconds from the start of a process to its list of tools, in turns, and the tokens of that list.

    Each starts on a folder that it knows, and once before without being counted. What serves a whole machine is started
    twice: with nothing running, and beside what runs already.
    """
    taken: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    beside: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    figures: dict[str, Figures] = {}
    with ExitStack() as stack:
        homes = {rival.name: Path(stack.enter_context(make_home())) for rival in rivals}
        for turn in range(form.starts + 1):
            for rival in rivals:
                try:
                    first, second, tools = _time_start(rival, homes[rival.name])
                except Failure as error:
                    figures[rival.name] = {"error": str(error)}
                    continue
                figures[rival.name] = {"tools": len(tools), "tokens": count_tokens(tools) if tools else None}
                if turn:
                    taken[rival.name].append(first)
                    beside[rival.name] += [second] if second is not None else []
    for name, each in taken.items():
        if each:
            figures[name]["seconds"] = round(median(each), 3)
        if beside[name]:
            figures[name]["seconds beside one that runs"] = round(median(beside[name]), 3)
    return figures


def _time_start(rival: Rival, home: Path) -> tuple[float, float | None, list[Any]]:
    client = rival.start(home)
    second = None
    try:
        tools = client.open()
        first = time.perf_counter() - client.began
        if isinstance(rival, Refdesk):
            client.ask("ping", {})  # only the desk answers this
            other = rival.start(home, client.mark)
            other.open()
            second = time.perf_counter() - other.began
        return first, second, tools
    finally:
        client.close()


def measure_stores(rivals: Sequence[Rival], form: Form) -> dict[str, Figures]:
    """Return store times with one client and with several, each a process of its own on one folder, and what was lost.

    Lost is what was acknowledged and is not there once all have been closed.
    """
    figures: dict[str, Figures] = {rival.name: {} for rival in rivals}
    for clients in form.clients:
        for rival in rivals:
            say(f"stores, {clients} clients: {rival.name}")
            figures[rival.name][str(clients)] = _store_at_once(rival, clients, form)
    return figures


def _store_at_once(rival: Rival, clients: int, form: Form) -> Figures:
    each = form.stores if clients == 1 else form.stores_each
    notes = Writer().write(clients * (each + 1))
    kept: set[str] = set()
    with make_home() as folder:
        home, opened = Path(folder), list[Client]()
        try:
            opened.append(first := rival.open(home))
            with ThreadPoolExecutor(8) as pool:
                others = [pool.submit(rival.open, home, first.mark) for _ in range(clients - 1)]
                opened += [other.result() for other in others]
            for client in opened:
                rival.store(client, note := notes.pop())
                kept.add(note.key)
            parts = [notes[place::clients] for place in range(clients)]
            began = time.perf_counter()
            with ThreadPoolExecutor(clients) as pool:
                running = [pool.submit(_store_all, rival, *pair) for pair in zip(opened, parts, strict=True)]
                done = [each.result() for each in running]
            seconds = time.perf_counter() - began
        except Failure as error:
            return {"error": str(error) or type(error).__name__}
        finally:
            close_all(opened)
        times = [each for part, _, _ in done for each in part]
        kept |= {key for _, keys, _ in done for key in keys}
        refused = [error for _, _, errors in done for error in errors]
        result = {**spread(times), "per second": round(len(times) / seconds, 1)}
        try:
            result["lost"] = len(kept - rival.list_keys(home))
        except Failure as error:
            result["error"] = f"not to be read afterwards: {error}"
        return {
            **result,
            "acknowledged": len(kept),
            "refused": len(refused),
            **({"why": refused[0]} if refused else {}),
        }


def _store_all(rival: Rival, client: Client, notes: Sequence[Note]) -> tuple[list[float], list[str], list[str]]:
    times, keys, errors = list[float](), list[str](), list[str]()
    for note in notes:
        began = time.perf_counter()
        try:
            rival.store(client, note)
        except Failure as error:
            errors.append(str(error)[:200])
            continue
        times.append(time.perf_counter() - began)
        keys.append(note.key)
    return times, keys, errors


def check_keeping(rival: Rival) -> None:
    """Make sure that a rival still has a note after it has ended in peace: else nothing here would be true of it.

    Raises:
        PeerError: It has not: its settings or its door are at fault.
    """
    say(f"a note for {rival.name}")
    [note] = Writer().write(1)
    with make_home() as folder:
        home = Path(folder)
        client = rival.open(home)
        try:
            rival.store(client, note)
        finally:
            client.close()
        if note.key not in rival.list_keys(home):
            raise PeerError("a note that it was given is not there when it is opened again: its door is at fault")


def fill_all(rivals: Sequence[Rival], form: Form, folder: Path) -> None:
    """Fill everybody with what is searched later, as far as that is kept; nothing of it is timed."""
    keeper = Keeper(folder, form.fill_seconds)
    for size in form.sizes:
        if size > MOST_EMBEDDED:
            notes = Writer().write(size)
            for rival in rivals:
                keeper.fill(rival, notes)


def measure_searches(rivals: Sequence[Rival], form: Form, folder: Path) -> dict[str, Figures]:
    """Return, for each size, search times in turns, and the memory and the disk that are taken then.

    Beyond `MOST_EMBEDDED` notes everybody is filled once, and what was filled is kept in a folder.
    """
    figures: dict[str, Figures] = {rival.name: {} for rival in rivals}
    keeper = Keeper(folder, form.fill_seconds)
    for size in form.sizes:
        notes, questions = Writer().write(size), Writer(12).ask(form.searches + WARM_UP)
        with ExitStack() as stack:
            opened: dict[str, Client] = {}
            for rival in rivals:
                if size > MOST_EMBEDDED:
                    home, filled = keeper.fill(rival, notes)
                else:
                    home = Path(stack.enter_context(make_home()))
                    filled = fill(rival, home, notes, None, form.fill_seconds)
                figures[rival.name][str(size)] = filled
                if "error" in filled:
                    continue
                try:
                    opened[rival.name] = client = rival.open(home)
                    stack.callback(end, client)
                    for question in questions[:WARM_UP]:
                        rival.search(client, question)
                    time.sleep(SETTLE_SECONDS)
                    rival.search(client, questions[0])
                    pause(client.mark)
                except Failure as error:
                    filled["error"] = str(error)
                    opened.pop(rival.name, None)
            for name, times in _search_in_turns(rivals, opened, questions[WARM_UP:]).items():
                figures[name][str(size)] |= {**spread(times), "memory": measure_memory(opened[name].mark)}
    return figures


def _search_in_turns(
    rivals: Sequence[Rival], opened: Mapping[str, Client], questions: Sequence[str]
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in opened}
    for start in range(0, len(questions), SLICE):
        for rival in rivals:
            if rival.name not in opened:
                continue
            client = opened[rival.name]
            with at_work(client):
                rival.search(client, questions[start])  # what stood still finds its way back into the caches
                for question in questions[start : start + SLICE]:
                    began = time.perf_counter()
                    rival.search(client, question)
                    times[rival.name].append(time.perf_counter() - began)
    return times


def measure_kills(rivals: Sequence[Rival], form: Form) -> dict[str, Figures]:
    """Return how many stores were acknowledged before a kill −9 of everything, and how many of those are gone.

    What cannot be opened afterwards, at the second try either, is gone as a whole.
    """
    figures: dict[str, Figures] = {}
    for rival in rivals:
        say(f"kills: {rival.name}")
        result = {"kills": 0, "acknowledged": 0, "lost": 0}
        figures[rival.name] = result
        for number in range(form.kills):
            try:
                acknowledged, lost = _kill_once(rival, form.before_kill, random.Random(number))
            except Failure as error:
                result["error"] = str(error) or type(error).__name__  # type: ignore[assignment]
                break
            result["kills"] += 1
            result["acknowledged"] += acknowledged
            result["lost"] += lost
    return figures


def _kill_once(rival: Rival, before: int, chance: random.Random) -> tuple[int, int]:
    acknowledged: list[str] = []
    enough, wanted = threading.Event(), chance.randint(before // 2 + 1, before)

    def store() -> None:
        for note in Writer().write(10 * before):
            try:
                rival.store(client, note)
            except Failure:
                break
            acknowledged.append(note.key)
            if len(acknowledged) >= wanted:
                enough.set()
        enough.set()

    with make_home() as folder:
        client = rival.open(Path(folder))
        writer = threading.Thread(target=store)
        writer.start()
        enough.wait()
        client.kill()
        writer.join()
        if len(acknowledged) < wanted:
            raise PeerError("it stopped storing before it was killed")
        return len(acknowledged), len(set(acknowledged) - _read_after_kill(rival, Path(folder)))


def _read_after_kill(rival: Rival, home: Path) -> set[str]:
    try:
        return rival.list_keys(home)
    except Failure:
        say(f"{rival.name} cannot be opened after the kill; once more")
    try:
        return rival.list_keys(home)
    except Failure:
        return set()  # what nobody can open any more is lost


def measure_corrections(rivals: Sequence[Rival], form: Form) -> dict[str, Figures]:
    """Return, after facts were corrected twice, how often an outdated one is the answer, or is shown among the first.

    Once by what each offers for corrections, once by only adding the newer note, as an agent does that does not look
    for the older one.
    """
    figures: dict[str, Figures] = {rival.name: {} for rival in rivals}
    facts = make_facts(form.facts)
    for rival in rivals:
        for way in ("corrected", "added"):
            if way == "corrected" and not rival.corrects:
                continue
            say(f"corrections, {way}: {rival.name}")
            try:
                figures[rival.name][way] = _correct_all(rival, facts, is_corrected=way == "corrected")
            except Failure as error:
                figures[rival.name][way] = {"error": str(error) or type(error).__name__}
    return figures


def _correct_all(rival: Rival, facts: Sequence[Fact], *, is_corrected: bool) -> Figures:
    with make_home() as folder:
        client = rival.open(Path(folder))
        try:
            handles = [rival.store(client, fact.notes[0]) for fact in facts]
            for generation in (1, 2):
                for place, fact in enumerate(facts):
                    note = fact.notes[generation]
                    if is_corrected:
                        handles[place] = rival.correct(client, handles[place], note)
                    else:
                        added = Note(f"{note.key}-{generation}", f"{note.title} {generation + 1}", note.body)
                        rival.store(client, added)
            wait_until_found(rival, client, facts[-1])
            return {kind: _judge(rival, client, facts, kind) for kind in KINDS}
        finally:
            client.close()


SETTLE_ROUNDS = 60


def wait_until_found(rival: Rival, client: Client, fact: Fact) -> None:
    """Return when what was stored last is found in its own words, or after `SETTLE_ROUNDS`: some embed later."""
    for _ in range(SETTLE_ROUNDS):
        found = rival.ask_words(client, f"{fact.notes[2].title} {fact.notes[2].body}", SHOWN)
        if any(fact.values[2] in each.text for each in found):
            break
        time.sleep(0.25)
    time.sleep(1.0)


def _judge(rival: Rival, client: Client, facts: Sequence[Fact], kind: str) -> Figures:
    counts = {"asked": len(facts), "current first": 0, "outdated first": 0, "outdated shown": 0, "not found": 0}
    for fact in facts:
        texts = [found.text for found in rival.ask_words(client, fact.questions[kind], SHOWN)]
        old = [any(value in text for value in fact.values[:2]) for text in texts]
        new = [fact.values[2] in text for text in texts]
        of_it = [place for place in range(len(texts)) if old[place] or new[place]]
        counts["not found"] += not of_it
        counts["current first"] += bool(of_it) and new[of_it[0]]
        counts["outdated first"] += bool(of_it) and not new[of_it[0]]
        counts["outdated shown"] += any(was and not now for was, now in zip(old, new, strict=True))
    return counts


def measure_quality(rivals: Sequence[Rival], form: Form, vectors: Path) -> dict[str, Figures]:
    """Return nDCG@10 on judged collections; nothing where their folder is not there."""
    from benchmarks.quality import get_data_folder, measure, read_collection

    figures: dict[str, Figures] = {rival.name: {} for rival in rivals}
    for name, most in form.collections.items():
        if not (get_data_folder() / name / "qrels.tsv").is_file():
            say(f"no collection {name} in {get_data_folder()}")
            continue
        judged = read_collection(get_data_folder() / name)
        # Collections list what answers the first question first: in that order whoever breaks ties by age is right.
        chance = random.Random(SEED)
        notes = [
            # A heading without a text stands as both: a note is not empty.
            Note(f"k-{n:06}", title or f"Text {n}", body or title)
            for n, (title, body) in chance.sample(list(enumerate(judged.documents)), len(judged.documents))
        ]
        asked = chance.sample(range(len(judged.queries)), most or len(judged.queries))
        for rival in rivals:
            with make_home() as folder:
                home = Path(folder)
                figures[rival.name][name] = result = fill(rival, home, notes, vectors, form.fill_seconds)
                if "error" in result:
                    continue
                try:
                    ranked = _rank(rival, home, [judged.queries[number] for number in asked])
                except Failure as error:
                    result["error"] = str(error)
                    continue
                quality = measure([judged.relevant[number] for number in asked], ranked.__getitem__)
                result |= {"ndcg": round(quality.ndcg, 3), "questions": len(asked)}
    return figures


def _rank(rival: Rival, home: Path, questions: Sequence[str]) -> list[list[int]]:
    client = rival.open(home)
    try:
        rival.search(client, "anything")
        time.sleep(1.0)  # what loads a model beside the first search has it now
        return [
            [int(found.key.removeprefix("k-")) for found in rival.ask_words(client, question, TOP) if found.key]
            for question in questions
        ]
    finally:
        client.close()
