"""The part of the search indexes that is kept on disk: files beside the store's own file, which names them.

An index grows by parts: recent changes are frozen into a file, together with the preceding parts that are not much
larger, so that there are few. A file is complete before the store names it, in a transaction that makes sure that the
other parts are still the same; a file that is named nowhere belongs to nobody and is removed. Whatever is missing,
damaged or of another version is ignored, and the index is built from the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from refdesk.stores.sqlite.index import (
    ANALYSIS_VERSION,
    FORMAT,
    DoubtfulFileError,
    Snapshot,
    from_content,
    map_content,
    merge_snapshots,
    to_content,
    write_content,
)

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection
    from refdesk.stores.sqlite.index.columns import Integers

VERSION = FORMAT * 1_000_000 + ANALYSIS_VERSION
"""Version of what the files hold. The newest wins: a process that knows only older ones keeps its index in memory."""

FORGOTTEN_SECONDS = 3600
"""Age up to which a file that is named nowhere is left alone: another process may be about to name it."""

_LIST_PARTS = "SELECT name, last FROM index_parts WHERE collection = ? AND format = ? ORDER BY last"
_GET_NEWEST = "SELECT max(format) FROM index_parts WHERE collection = ?"
_PUT_PART = "INSERT INTO index_parts (collection, format, last, name) VALUES (?, ?, ?, ?)"
_NOTE_CHANGE = "UPDATE collections SET indexed = indexed + 1 WHERE key = ?"


@dataclass(frozen=True, slots=True)
class Sizes:
    """When something is written to a file, counted in documents.

    Attributes:
        freeze_above: How many may change after the last part before another is frozen.
        merge_ratio: A part is merged with what follows it unless it is more than this many times larger.
        set_aside: After how many changed documents what was read so far is moved out of memory while reading goes on.
        catch_up_above: How many may be written or embedded before an index is caught up without a search, which is done
            when writing pauses. Otherwise the next search would do it first, which takes a second for some ten
            thousand, and there may be many minutes of writing before that search.
        catch_up_at: From how many on a pause is no longer waited for.
    """

    freeze_above: int = 500
    merge_ratio: int = 4
    set_aside: int = 20_000
    catch_up_above: int = 2_000
    catch_up_at: int = 8_000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A frozen part.

    Attributes:
        last: The change up to which it and the parts before it cover the collection.
        gone: Keys of documents that changed in the period it covers but are not in it.
    """

    name: str
    last: int
    snapshot: Snapshot
    gone: Integers


@dataclass(frozen=True, slots=True)
class Frozen:
    """A part that is written but not yet named.

    Attributes:
        collection: The collection's number.
        known: The names of the parts at that time.
        replaced: Those of them that it replaces.
    """

    collection: int
    name: str
    last: int
    known: tuple[str, ...]
    replaced: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What changed in a collection, and the whole index that contains it.

    Attributes:
        collection: The collection's number.
        last: The last change.
        parts: The frozen parts.
        named: The names of the parts that the store names, trusted or not.
        snapshots: The whole index: the living documents of the parts, followed by what changed.
        size: How many documents changed.
        gone: Keys of the documents that were withdrawn.
        merge_ratio: See `Sizes`.
    """

    collection: int
    last: int
    parts: tuple[Part, ...]
    named: tuple[str, ...]
    snapshots: tuple[Snapshot, ...]
    size: int
    gone: tuple[int, ...]
    merge_ratio: int

    @property
    def first(self) -> int:
        """The first part to be merged, with all that follow it, with what changed; those without a file always are."""
        first, changed = len(self.parts), self.size + len(self.gone)
        while first and (
            not self.parts[first - 1].name
            or self.parts[first - 1].snapshot.documents.count <= self.merge_ratio * changed
        ):
            first -= 1
            changed += self.parts[first].snapshot.documents.count
        return first


def freeze(changes: Changes) -> Part:
    """Return a part made of what changed and of the preceding parts that are not much larger; it has no name yet."""
    first = changes.first
    snapshot = merge_snapshots(changes.snapshots[first:])
    keys = [np.asarray(changes.gone, np.int64), *(part.gone for part in changes.parts[first:])]
    gone = np.unique(np.concatenate(keys)) if first else np.empty(0, np.int64)
    return Part("", changes.last, snapshot, gone[~np.isin(gone, snapshot.documents.keys)])


class IndexFolder:
    """The files of one store's indexes."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}-index")

    def load(self, name: str, last: int, changed: int) -> Part:
        """Return a part that ends at the change `last` of a collection whose last change is `changed`.

        Raises:
            DoubtfulFileError: It cannot be used.
        """
        content = map_content(self._path / name)
        if content.notes.get("last") != last or last > changed:
            raise DoubtfulFileError("The file holds another part.")
        return Part(name, last, from_content(content), content.arrays["gone"])

    def write(self, changes: Changes, part: Part) -> Frozen:
        """Write what was frozen.

        Raises:
            OSError: There is no room, or no right to write there.
        """
        name = f"{changes.collection}-{uuid4().hex}"
        write_content(self._path / name, to_content(part.snapshot, {"gone": part.gone}, last=part.last))
        kept = {each.name for each in changes.parts[: changes.first]}
        replaced = tuple(each for each in changes.named if each not in kept)
        return Frozen(changes.collection, name, part.last, changes.named, replaced)

    def set_aside(self, part: Part) -> Part:
        """Return a nameless part, mapped from a file that is unlinked at once, so that it goes with its mapping.

        If there is no room for the file, the part stays in memory.
        """
        path = self._path / f"aside-{uuid4().hex}"
        try:
            write_content(path, to_content(part.snapshot, {}))
            snapshot = from_content(map_content(path))
        except (OSError, DoubtfulFileError):
            return part
        finally:
            self.remove([path.name])
        return Part("", part.last, snapshot, part.gone)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; what cannot be removed now is found by `sweep`."""
        for name in names:
            with suppress(OSError):
                (self._path / name).unlink()

    def sweep(self, named: frozenset[str], age: float = FORGOTTEN_SECONDS) -> None:
        """Remove files that are named nowhere and are older than `age`, in seconds."""
        with suppress(OSError):
            for path in self._path.iterdir():
                if path.name not in named and time.time() - path.stat().st_mtime >= age:
                    path.unlink()


def bury(parts: Sequence[Part]) -> list[Snapshot]:
    """Return the parts, with each document dead that a later part holds or knows to be gone."""
    snapshots = [part.snapshot for part in parts]
    for number, part in enumerate(parts):
        for earlier in range(number):
            documents = snapshots[earlier].documents
            for keys in (part.snapshot.documents.keys, part.gone):
                documents = documents.bury(documents.find_rows(keys))
            snapshots[earlier] = Snapshot(documents, snapshots[earlier].segments, snapshots[earlier].passages)
    return snapshots


def list_parts(connection: Connection, collection: int) -> list[tuple[str, int]]:
    """Return name and last change of each part of a collection, in order."""
    return [(name, last) for name, last in connection.execute(_LIST_PARTS, (collection, VERSION))]


def name_part(connection: Connection, frozen: Frozen) -> bool:
    """Name a part in the store and return `True`; return `False` if the parts are no longer those it was made with."""
    ((newest,),) = connection.execute(_GET_NEWEST, (frozen.collection,))
    known = tuple(name for name, _ in list_parts(connection, frozen.collection))
    if known != frozen.known or (newest or 0) > VERSION:
        return False
    connection.execute("DELETE FROM index_parts WHERE collection = ? AND format < ?", (frozen.collection, VERSION))
    connection.execute_many("DELETE FROM index_parts WHERE name = ?", [(name,) for name in frozen.replaced])
    connection.execute(_PUT_PART, (frozen.collection, VERSION, frozen.last, frozen.name))
    connection.execute(_NOTE_CHANGE, (frozen.collection,))
    return True


def discard_parts(connection: Connection, collection: int) -> None:
    """Remove the names of all parts of a collection, so that nothing that they hold is found or kept."""
    connection.execute("DELETE FROM index_parts WHERE collection = ?", (collection,))
    connection.execute(_NOTE_CHANGE, (collection,))


def list_named(connection: Connection) -> frozenset[str]:
    """Return the names of all parts there are."""
    return frozenset(name for (name,) in connection.execute("SELECT name FROM index_parts"))
