"""The list of what was erased, kept beside the store's file (`-erased`): ids only.

A backup restored in place of a damaged file must not bring back what was erased since the backup was made, even if the
damaged file can no longer be read. The complete list is written before the traces of an erasure are reported as gone.
"""

from __future__ import annotations

import glob
import json
import shutil
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from refdesk.errors import RefdeskError
from refdesk.model import Collection
from refdesk.stores.sqlite.beside import ERASED, MOVED, find_path, write_beside
from refdesk.stores.sqlite.driver import open_reading
from refdesk.stores.sqlite.failures import translated
from refdesk.stores.sqlite.lineage import read_marks

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection

RESTORING = ".restoring"
"""Suffix of the copy that is to replace the file; see `restoring`."""

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
"""An org that was moved to another store and then removed counts as erased in this one."""


@dataclass(frozen=True, slots=True)
class WideErasure:
    """The erasure of an org, or of all that an agent wrote in it; `number` is its number in the org's audit log."""

    org: str
    number: int
    agent: str | None


@dataclass(frozen=True, slots=True)
class Erasures:
    """Everything that was erased.

    Attributes:
        stores: Whose history this is: the numbers of the store, of those that it replaced, and of those that were moved
            to it.
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
    """Note that the store at `source` was moved to `target`: its backups are backups of the target's own past.

    Nothing is noted if `source` cannot be read.
    """
    with suppress(RefdeskError), translated(), open_reading(source) as connection:
        marks, listed = read_marks(connection), read_list(source) or Erasures()
        own = frozenset({marks.store} if marks is not None else ())
        write_list(target, Erasures(stores=listed.stores | own))


def write_found(connection: Connection) -> bool:
    """Add what a file says was erased to the list beside it; return `True` once the list is on the disk."""
    write_list(find_path(connection), find_erasures(connection))
    return True


def begin_list(connection: Connection) -> None:
    """Write the list if there is none: without a list nobody could tell that nothing was erased."""
    if not Path(f"{find_path(connection)}{ERASED}").exists():
        write_found(connection)


def write_list(path: Path, found: Erasures) -> None:
    """Add to the list beside a store's file; existing entries stay."""
    known = found.add(read_list(path) or Erasures())
    wide = sorted(known.wide, key=lambda each: (each.org, each.number))
    values: list[object] = [[of.org, of.toolset, id] for of, id in sorted(known.tombstones)]
    values += [{"org": each.org, "number": each.number, "agent": each.agent} for each in wide]
    text = "".join(f"{json.dumps(value)}\n" for value in [*sorted(known.stores), *values]).encode()
    write_beside(path, ERASED, text + b"%08x\n" % zlib.crc32(text))


def remove_left(path: Path) -> None:
    """Remove leftover copies that were to replace a file, as they may hold what must go; call it only when alone."""
    name = glob.escape(path.name)
    patterns = (f"{name}{RESTORING}*", *(f"{name}{suffix}.*.partial" for suffix in (ERASED, MOVED)))
    for left in (left for pattern in patterns for left in path.parent.glob(pattern)):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def read_list(path: Path) -> Erasures | None:
    """Return what the list beside a store's file says, or `None` if it is missing or damaged."""
    try:
        content = Path(f"{path}{ERASED}").read_bytes()
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
