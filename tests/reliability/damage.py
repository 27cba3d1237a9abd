"""Files of a store, damaged in every way that disks, copies and people do; and what a store then serves of them.

A damaged file may be refused, or serve what it held: never something else as if it were that, and never less.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio.to_thread

from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing
from refdesk.core.search.analysis import parse_query
from refdesk.core.writing import audit
from refdesk.errors import RefdeskError
from refdesk.model import SHARED_ORG, FindRequest, HasId, Link, Metadata, MetadataKey, Reference, SortKey
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.backups import make_backup
from refdesk.stores.sqlite.checksums import compute_checksum
from refdesk.stores.sqlite.connections import make_folder
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.restoring import restore
from tests.stores.samples import NOTES, NOW, embed, make_document, passage, put, revise

NAME = "store.sqlite3"
PAGE = 4096
NOTE_COUNT = 60
ANN = audit.Actor("acme", "ann", "test")
OPERATOR = audit.Actor(SHARED_ORG, "cli", "cli")
ERASED = "n000"

Damage = Callable[[Path, Random, Path], None]
"""Damages the store in a folder; the third is the folder of another store, which has a log."""


@dataclass(frozen=True)
class Originals:
    """Sound files to damage.

    Attributes:
        closed: A folder with a store that was closed.
        cut_off: The same store, later, as a kill leaves it: with a log that holds what came last.
        other: Another store that was killed.
        backup: Of the store as it was closed.
        truths: What each serves.
    """

    closed: Path
    cut_off: Path
    other: Path
    backup: Path
    truths: dict[Path, Served]


@dataclass
class Served:
    """What a store answers, by what was asked; an error is one of its answers."""

    answers: dict[str, object] = field(default_factory=dict[str, object])
    errors: dict[str, str] = field(default_factory=dict[str, str])


async def make_originals(folder: Path) -> Originals:
    closed, cut_off, other = folder / "closed", folder / "cut-off", folder / "other"
    backup = folder / "backup"
    for each in (closed, cut_off, other):
        make_folder(each / NAME)
    await _fill(closed, NOTE_COUNT)
    await anyio.to_thread.run_sync(make_backup, closed / NAME, backup)
    copy_all(closed, folder / "using")
    async with open_store(folder / "using" / NAME) as store:
        for number in range(5):
            await put(store, make_document(f"late{number}", f"Late news {number}. " * 40, f"Late {number}"))
        copy_all(folder / "using", cut_off)
    async with open_store(folder / "others" / NAME) as store:
        await put(store, make_document("o", "another store's"))
        copy_all(folder / "others", other)
    truths = {each: await _serve_copy(each, folder / "truth") for each in (closed, cut_off)}
    return Originals(closed, cut_off, other, backup, truths)


async def _fill(folder: Path, count: int) -> None:
    random = Random(7)
    async with open_store(folder / NAME) as store:
        watched = audit.watch(store, SystemClock(), ANN, "store_knowledge")
        for number in range(count):
            words = " ".join(f"w{random.randrange(400)}" for _ in range(random.choice((20, 200, 1500))))
            note = make_document(f"n{number:03}", words, f"Note number{number}", facets={"tags": ("red", "blue")})
            await put(watched, note)
            if number % 3 == 0:
                await put(watched, revise(note, body=f"{words} again"))
            elif number % 3 == 1:
                await embed(store, note, passage((1, number, 2, 3), 0, 9))
            async with store.transaction() as transaction:
                ends = Reference("notes", note.id), Reference("task", f"t{number}")
                await transaction.put_links([Link("acme", ends[0], "references", ends[1], NOW)])
                await transaction.put_metadata([Metadata(MetadataKey("acme", "job", note.id), {"n": number})])
        await erasing.erase(store, SystemClock(), ANN, erasing.Erasable("acme", ERASED))


def copy_all(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)


async def _serve_copy(folder: Path, to: Path) -> Served:
    copy_all(folder, to)
    return await serve(to)


async def serve(folder: Path) -> Served:
    """Open a store and ask it for everything."""
    served = Served()

    async def ask(name: str, question: Callable[[], Awaitable[object]]) -> None:
        try:
            served.answers[name] = await question()
        except RefdeskError as error:
            served.errors[name] = error.message

    try:
        async with open_store(folder / NAME, patience_seconds=0.2) as store:
            for name, question in list_questions(store):
                await ask(name, question)
            await ask("health", store.check)
    except RefdeskError as error:
        served.errors["open"] = error.message
    return served


def list_questions(store: Store) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    ids = [f"n{number:03}" for number in range(NOTE_COUNT)] + [f"late{number}" for number in range(5)]
    questions: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("digests", lambda: store.get_digests(NOTES)),
        ("statistics", store.get_statistics),
        ("log", lambda: store.get_audit("acme")),
        ("records", lambda: store.list_metadata("job")),
        ("found", lambda: _find(store)),
    ]
    for id in ids:
        questions += [
            (f"history of {id}", lambda id=id: store.get_revisions(NOTES, id)),
            (f"document {id}", lambda id=id: store.get_documents(NOTES, [id])),
            (f"links of {id}", lambda id=id: store.get_links("acme", Reference("notes", id))),
            (f"search for {id}", lambda id=id: _search(store, id)),
        ]
    return questions


async def _find(store: Store) -> list[str]:
    found = await store.find(FindRequest(NOTES, depth=1000, order=(SortKey("id"),)))
    return [candidate.id for candidate in found.candidates]


async def _search(store: Store, id: str) -> list[str]:
    """Search a note by its title, and read what is found as a search shows it."""
    title = f"Note number{int(id[1:])}" if id.startswith("n") else f"Late {id[4:]}"
    found = await store.find(FindRequest(NOTES, parse_query(title), where=HasId((id,))))
    shown = await store.get_documents(NOTES, [candidate.id for candidate in found.candidates])
    return [each.title for each in shown if each is not None]


def find_faults(served: Served, truth: Served) -> list[str]:
    """Return what was served that is not true, and what was refused without a word of what to do."""
    faults = [f"{name} is served otherwise" for name, answer in served.answers.items() if answer != truth.answers[name]]
    if not served.errors and len(served.answers) < len(truth.answers):
        faults.append("less is served, without a word")
    said = served.errors.values()
    return faults + [f"says not what to do: {each}" for each in said if "refdesk restore" not in each]


async def mend(folder: Path, backup: Path) -> None:
    """Do what the errors say."""
    await restore(backup, {"": folder / NAME}, SystemClock(), OPERATOR)


# What is done to files.


def _flip(path: Path, random: Random, first: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[random.randrange(first, len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def flip_anywhere(folder: Path, random: Random, other: Path) -> None:
    _flip(folder / NAME, random)


def flip_in_text(folder: Path, random: Random, other: Path) -> None:
    path = folder / NAME
    content = bytearray(path.read_bytes())
    places = [at for at in range(len(content)) if content.startswith(b" w", at)]
    content[random.choice(places) + 1] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def flip_and_keep_the_date(folder: Path, random: Random, other: Path) -> None:
    status = (folder / NAME).stat()
    flip_in_text(folder, random, other)
    os.utime(folder / NAME, ns=(status.st_atime_ns, status.st_mtime_ns))


def truncate(folder: Path, random: Random, other: Path) -> None:
    os.truncate(folder / NAME, random.randrange((folder / NAME).stat().st_size))


def truncate_pages(folder: Path, random: Random, other: Path) -> None:
    os.truncate(folder / NAME, random.randrange((folder / NAME).stat().st_size // PAGE) * PAGE)


def _write_page(path: Path, page: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(content)


def _choose_pages(path: Path, random: Random) -> list[int]:
    return random.sample(range(path.stat().st_size // PAGE), 2)


def zero_page(folder: Path, random: Random, other: Path) -> None:
    path = folder / NAME
    _write_page(path, _choose_pages(path, random)[0], bytes(PAGE))


def scramble_page(folder: Path, random: Random, other: Path) -> None:
    path = folder / NAME
    _write_page(path, _choose_pages(path, random)[0], random.randbytes(PAGE))


def swap_pages(folder: Path, random: Random, other: Path) -> None:
    path = folder / NAME
    content, (one, two) = path.read_bytes(), _choose_pages(path, random)
    _write_page(path, one, content[two * PAGE : (two + 1) * PAGE])
    _write_page(path, two, content[one * PAGE : (one + 1) * PAGE])


def double_page(folder: Path, random: Random, other: Path) -> None:
    path = folder / NAME
    content, (one, two) = path.read_bytes(), _choose_pages(path, random)
    _write_page(path, one, content[two * PAGE : (two + 1) * PAGE])


def remove_file(folder: Path, random: Random, other: Path) -> None:
    (folder / NAME).unlink()


def empty_file(folder: Path, random: Random, other: Path) -> None:
    os.truncate(folder / NAME, 0)


def _log(folder: Path) -> Path:
    return folder / f"{NAME}-wal"


def remove_log(folder: Path, random: Random, other: Path) -> None:
    _log(folder).unlink()


def truncate_log(folder: Path, random: Random, other: Path) -> None:
    os.truncate(_log(folder), random.randrange(_log(folder).stat().st_size))


def flip_in_log(folder: Path, random: Random, other: Path) -> None:
    _flip(_log(folder), random)


def take_log_of_another(folder: Path, random: Random, other: Path) -> None:
    shutil.copy(_log(other), _log(folder))


def zero_log(folder: Path, random: Random, other: Path) -> None:
    _log(folder).write_bytes(bytes(_log(folder).stat().st_size))


DAMAGES: tuple[Damage, ...] = (
    *(flip_anywhere, flip_in_text, flip_and_keep_the_date, truncate, truncate_pages, zero_page, scramble_page),
    *(swap_pages, double_page, remove_file, empty_file),
)
DAMAGES_OF_LOG: tuple[Damage, ...] = (remove_log, truncate_log, flip_in_log, take_log_of_another, zero_log)


# Planted: what no check can tell from what was written. The harness must.


def _edit(folder: Path, statement: str) -> None:
    connection = Connection(folder / NAME, 0)
    connection.define("checksum", compute_checksum)
    connection.execute(statement)
    connection.close()


def forge(folder: Path, random: Random, other: Path) -> None:
    """Change a text together with its checksum."""
    _edit(
        folder,
        "UPDATE documents SET body = replace(body, 'w1', 'w2'); UPDATE documents SET checksum = (SELECT checksum(org, "
        "toolset, id, version, state, created_at, modified_at, author, title, facets, spans, body, data, recorded_at) "
        "FROM collections WHERE collections.key = collection)",
    )


def withhold(folder: Path, random: Random, other: Path) -> None:
    """Remove rows whole."""
    _edit(folder, "DELETE FROM records WHERE name = 'n007'")
