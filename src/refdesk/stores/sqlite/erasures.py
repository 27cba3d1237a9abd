"""What was erased, listed beside the file (`-erased`): ids only.

A backup that is put in the place of a damaged file must not bring back what was erased since it was made, also where
the damaged file cannot be read any more. The list is written whole before traces of an erasure are said to be gone.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from refdesk.errors import RefdeskError
from refdesk.model import Collection
from refdesk.stores.sqlite.driver import open_reading
from refdesk.stores.sqlite.failures import translated
from refdesk.stores.sqlite.lineage import read_marks

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection

SUFFIX = "-erased"
RESTORING = ".restoring"
"""Of the copy that is to take the file's place; see `restoring`."""

_TOMBSTONES = """
    SELECT org, toolset, id FROM collections JOIN documents ON documents.collection = collections.key
    WHERE state = 'withdrawn' AND data ->> 'erased' IS NOT NULL
"""
_WIDE = """
    SELECT org, number, act ->> '$.details.of', act ->> '$.details.name' FROM audit
    WHERE act ->> '$.action' = 'erase' AND act ->> '$.details.of' IS NOT NULL
    UNION ALL
    SELECT org, number, 'org', NULL FROM audit
    WHERE act ->> '$.action' = 'migrate' AND act ->> '$.details.is_removed' AND act ->> '$.details.is_whole'
        AND act ->> '$.details.part' IS NULL
"""
"""Orgs that were moved to another store and removed are erased here."""


@dataclass(frozen=True, slots=True)
class WideErasure:
    """That all of an org, or all that an agent wrote in it, was erased: `number` is that act's in the org's log."""

    org: str
    number: int
    agent: str | None


@dataclass(frozen=True, slots=True)
class Erasures:
    """All that was erased.

    Attributes:
        stores: Whose history this is: the number of the store, and of those that it was put in the place of, or that
            were moved to it.
    """

    tombstones: frozenset[tuple[Collection, str]] = frozenset()
    wide: frozenset[WideErasure] = frozenset()
    stores: frozenset[int] = frozenset()

    def add(self, other: Erasures) -> Erasures:
        """Return both together."""
        return Erasures(self.tombstones | other.tombstones, self.wide | other.wide, self.stores | other.stores)


def find_erasures(connection: Connection) -> Erasures:
    """Return what a file says was erased."""
    tombstones = [(Collection(org, toolset), id) for org, toolset, id in connection.execute(_TOMBSTONES)]
    wide = [WideErasure(org, number, name) for org, number, _, name in connection.execute(_WIDE)]
    marks = read_marks(connection)
    stores = frozenset({marks.store} if marks is not None else ())
    return Erasures(frozenset(tombstones), frozenset(wide), stores)


def follow_history(source: Path, target: Path) -> None:
    """Note that a store is what another one was moved to: a backup of that one is one of its own past.

    Nothing is noted where the other one cannot be read.
    """
    with suppress(RefdeskError), translated(), open_reading(source) as connection:
        marks, listed = read_marks(connection), read_list(source) or Erasures()
        own = frozenset({marks.store} if marks is not None else ())
        write_list(target, Erasures(stores=listed.stores | own))


def write_found(connection: Connection) -> bool:
    """Add what a file says was erased to the list beside it, and return `True`: it is on the disk."""
    ((path,),) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    write_list(Path(path), find_erasures(connection))
    return True


def begin_list(connection: Connection) -> None:
    """Write the list where there is none: without it nobody could tell that nothing was erased."""
    ((path,),) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    if not Path(f"{path}{SUFFIX}").exists():
        write_found(connection)


def write_list(path: Path, found: Erasures) -> None:
    """Add to the list beside a store's file; what it says already stays."""
    known = found.add(read_list(path) or Erasures())
    wide = sorted(known.wide, key=lambda each: (each.org, each.number))
    values: list[object] = [[of.org, of.toolset, id] for of, id in sorted(known.tombstones)]
    values += [{"org": each.org, "number": each.number, "agent": each.agent} for each in wide]
    text = "".join(f"{json.dumps(value)}\n" for value in [*sorted(known.stores), *values]).encode()
    # Several processes may begin it at once, and threads of one: none takes another's file away.
    partial = Path(f"{path}{SUFFIX}.{os.getpid()}-{threading.get_ident()}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text + b"%08x\n" % zlib.crc32(text))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(f"{path}{SUFFIX}")


def remove_left(path: Path) -> None:
    """Remove copies that were to take a file's place: they may hold what must go. Whoever calls it is alone with it."""
    name = glob.escape(path.name)
    for left in (*path.parent.glob(f"{name}{RESTORING}*"), *path.parent.glob(f"{name}{SUFFIX}.*.partial")):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def read_list(path: Path) -> Erasures | None:
    """Return what the list beside a store's file says, or `None` where there is none that is whole."""
    try:
        content = Path(f"{path}{SUFFIX}").read_bytes()
    except OSError:
        return None
    text, check = content[:-9], content[-9:]
    if check != b"%08x\n" % zlib.crc32(text):
        return None
    values = [json.loads(line) for line in text.splitlines()]
    tombstones = (cast("list[str]", value) for value in values if isinstance(value, list))
    wide = (cast("dict[str, Any]", value) for value in values if isinstance(value, dict))
    return Erasures(
        frozenset((Collection(org, toolset), id) for org, toolset, id in tombstones),
        frozenset(WideErasure(**value) for value in wide),
        frozenset(value for value in values if isinstance(value, int)),
    )
