"""The search indexes of this process: derived from the rows, caught up before each search, disposable at any time.

An index remembers the last change of its collection that it has seen. A search compares that number with the
collection's own, reads what any process has written since, and only then asks the index. Most of an index is mapped
from the files of `freezing`, which all processes share. What cannot be trusted (an index ahead of its collection, an
error half way, a file or text of another version or damaged on the disk) is built anew.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import numpy as np

from refdesk.core.keeping.encoding import decode_instant
from refdesk.core.keeping.rows import decode_date_ranges, decode_facets
from refdesk.core.writing.supersession import HEAD
from refdesk.errors import StoreError
from refdesk.model import Collection, State
from refdesk.stores.sqlite import freezing
from refdesk.stores.sqlite.freezing import Frozen, IndexFolder, Part, Sizes
from refdesk.stores.sqlite.index import (
    ANALYSIS_VERSION,
    CollectionIndex,
    DoubtfulFileError,
    IndexRow,
    VectorRow,
    encode_terms,
)
from refdesk.stores.sqlite.rows import RenewedTerms

if TYPE_CHECKING:
    from refdesk.model import FindRequest, Found
    from refdesk.stores.sqlite.connections import Readers
    from refdesk.stores.sqlite.driver import Connection, Row

T = TypeVar("T")

MAX_COLLECTIONS = 64
"""How many collections one process keeps an index of; the least recently used index is evicted first."""

BATCH = 1000
"""Documents read and indexed at a time, so that a large collection is never in memory twice."""

SMALL = 8192
"""Most documents and passages searched on the event loop's thread, which takes a millisecond: a hop to another thread
and back takes as long, and much longer while other threads are busy."""

MAX_RENEWED = 5 * BATCH
"""Most texts analysed anew that are kept to be written back; any more are analysed again by the next process."""

PATIENCE_SECONDS = 1.0
"""How long closing waits for a part that is being frozen; if it is not finished, another process begins it again."""

CLOSING = "The store is being closed."

_GET_LAST = """
    SELECT key, org, toolset, changed,
        coalesce((SELECT max(last) FROM index_parts WHERE collection = key AND format = ?), 0)
    FROM collections
"""
_GET_SOME_CHANGED = """
    SELECT key FROM documents WHERE collection = ?1 AND written > ?2
    UNION
    SELECT key FROM documents WHERE collection = ?1 AND embedded > 0 AND embedded > ?2
    LIMIT ?3
"""
_GET_STATE = "SELECT key, changed, indexed FROM collections WHERE org = ? AND toolset = ?"
_GET_CHANGED = """
    SELECT key, written, id, state, created_at, modified_at, title, facets, spans, analysis, terms_check, terms,
        CASE state WHEN 'superseded' THEN coalesce(nullif(data ->> :head, ''), id) END
    FROM documents WHERE key IN (
        SELECT key FROM documents WHERE collection = :collection AND written > :seen
        UNION
        SELECT key FROM documents WHERE collection = :collection AND embedded > 0 AND embedded > :seen
    )
"""
# A blob whose length is not the model's is damage: its document counts as not embedded until it is embedded again.
_GET_VECTORS = """
    SELECT name, dimensions, document, first, last, vector
    FROM vectors JOIN documents ON documents.key = vectors.document JOIN models ON models.key = vectors.model
    WHERE document IN (SELECT value FROM json_each(?)) AND state <> 'withdrawn' AND length(vector) = 2 * dimensions
    ORDER BY document, vectors.key
"""


@dataclass(slots=True)
class _KeptIndex:
    """An index and the last change it has seen.

    Attributes:
        parts: The parts that it is made of, as they were mapped.
        indexed: How often the collection's parts had changed by the time they were mapped.
        doubtful: The same number, from when they could not be mapped.
        named: The names of the parts at that time, whether or not they could be mapped.
        next_size: How many documents must change before the next part is frozen, if more than usual.
    """

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    index: CollectionIndex = field(default_factory=CollectionIndex)
    seen: int = 0
    parts: list[Part] = field(default_factory=list[Part])
    indexed: int = 0
    doubtful: int | None = None
    named: tuple[str, ...] = ()
    next_size: int = 0

    def reset(self) -> None:
        self.index, self.seen, self.parts, self.named, self.indexed = CollectionIndex(), 0, [], (), 0


class OutdatedError(Exception):
    """A file that the store names is gone: it was replaced during the read, or it is lost."""


class DerivedIndexes:
    """One index for each recently searched collection.

    Args:
        readers: The connections that rows are read with.
        path: The store's file.
        sizes: When parts are frozen.
        note_frozen: Called, in any thread, when a part was frozen in the background.
    """

    def __init__(self, readers: Readers, path: Path, sizes: Sizes, note_frozen: Callable[[], None]) -> None:
        self._readers, self._sizes, self._note_frozen = readers, sizes, note_frozen
        self._folder = IndexFolder(path)
        self._kept: OrderedDict[Collection, _KeptIndex] = OrderedDict()
        self._renewed: list[RenewedTerms] = []
        self._frozen: list[Frozen] = []
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        kept = self._get(request.collection)
        async with kept.lock:
            if kept.seen and kept.index.extent <= SMALL:
                found = await self._readers.run_here(self._find_level, kept, request)
                if found is not None:
                    return found
            while True:
                # This repeats only if others have named other parts meanwhile.
                with suppress(OutdatedError):
                    return await self._readers.run(self._find, kept, request)

    async def catch_up(self, collection: Collection) -> None:
        """Do what the next search of a collection would do first.

        Raises:
            StoreError: It could not be read, or was stopped.
        """
        kept = self._get(collection)
        async with kept.lock:
            while True:
                with suppress(OutdatedError):
                    return await self._readers.run(self._level, kept, collection)

    def list_behind(self, connection: Connection) -> list[Collection]:
        """Return the collections of which much has changed since their last part on disk."""
        much = self._sizes.catch_up_above
        named = connection.execute(_GET_LAST, (freezing.VERSION,))
        return [
            Collection(org, toolset)
            for key, org, toolset, changed, last in named
            if changed - last >= much and len(connection.execute(_GET_SOME_CHANGED, (key, last, much))) >= much
        ]

    def take_renewed(self) -> list[RenewedTerms]:
        """Return what was analysed anew since the last call, to be written back."""
        renewed, self._renewed = self._renewed, []
        return renewed

    @property
    def has_frozen(self) -> bool:
        """Whether parts wait to be named."""
        return bool(self._frozen)

    def put_back(self, frozen: list[Frozen]) -> None:
        """Take back parts that could not be named now."""
        self._frozen += frozen

    def take_frozen(self) -> list[Frozen]:
        """Return the parts that were frozen since the last call, to be named."""
        # Always the same list object, because another thread appends to it.
        return [self._frozen.pop(0) for _ in range(len(self._frozen))]

    def name_parts(self, connection: Connection, frozen: list[Frozen]) -> None:
        """Name the parts in the store, in a transaction that writes."""
        for each in frozen:
            if not freezing.name_part(connection, each):
                self._folder.remove([each.name])

    def tidy(self, connection: Connection, frozen: list[Frozen]) -> None:
        """Remove the files that newly named parts have replaced, once that is committed."""
        named = freezing.list_named(connection)
        self._folder.remove([name for each in frozen for name in each.replaced if name not in named])
        self._folder.sweep(named)

    def remove_unnamed(self, connection: Connection) -> None:
        """Remove the files of parts that no table row names any more, however new they are."""
        self._folder.sweep(freezing.list_named(connection), 0.0)

    def stop(self) -> None:
        """Make any catching up give up soon, because the store is to be closed."""
        self._is_stopped = True

    def close(self) -> None:
        """Wait for background work, for `PATIENCE_SECONDS` at most."""
        if self._thread is not None:
            self._thread.join(PATIENCE_SECONDS)

    def _get(self, collection: Collection) -> _KeptIndex:
        if (kept := self._kept.get(collection)) is None:
            kept = self._kept[collection] = _KeptIndex()
        self._kept.move_to_end(collection)
        if len(self._kept) > MAX_COLLECTIONS:
            self._kept.popitem(last=False)
        return kept

    def _find_level(self, connection: Connection, kept: _KeptIndex, request: FindRequest) -> Found | None:
        """Return what the index finds if it has seen every commit, else `None`."""
        collection = request.collection
        _, changed, indexed = connection.get_row(_GET_STATE, (collection.org, collection.toolset)) or (0, 0, 0)
        return kept.index.find(request) if (changed, indexed) == (kept.seen, kept.indexed) else None

    def _find(self, connection: Connection, kept: _KeptIndex, request: FindRequest) -> Found:
        self._level(connection, kept, request.collection)
        return kept.index.find(request)

    def _level(self, connection: Connection, kept: _KeptIndex, collection: Collection) -> None:
        try:
            self._catch_up(connection, kept, collection)
        except BaseException:
            kept.reset()
            raise

    def _catch_up(self, connection: Connection, kept: _KeptIndex, collection: Collection) -> None:
        """Show the index every commit made so far."""
        state = connection.get_row(_GET_STATE, (collection.org, collection.toolset))
        key, changed, indexed = state or (0, 0, 0)
        if changed < kept.seen:
            kept.reset()
        if indexed != kept.indexed:
            self._load_parts(connection, kept, key, changed, indexed)
        if changed == kept.seen:
            return
        before, is_set_aside = kept.index.size, False
        bindings = {"collection": key, "seen": kept.seen, "head": HEAD}
        for batch in _batch(connection.stream(_GET_CHANGED, bindings), min(BATCH, self._sizes.set_aside)):
            if self._is_stopped:
                raise StoreError(CLOSING)
            self._apply(connection, kept.index, batch)
            if kept.index.size >= self._sizes.set_aside:
                self._set_aside(key, kept)
                is_set_aside = True
        kept.seen = changed
        if is_set_aside or kept.index.size + len(kept.index.gone) >= max(kept.next_size, self._sizes.freeze_above):
            is_little = kept.index.size - before < self._sizes.freeze_above
            self._freeze(key, kept, in_background=is_little and not is_set_aside)

    def _load_parts(self, connection: Connection, kept: _KeptIndex, key: int, changed: int, indexed: int) -> None:
        """Start anew with the parts that the store names now."""
        named = freezing.list_parts(connection, key)
        mapped = {part.name: part for part in kept.parts if part.name}
        self._folder.remove(mapped.keys() - {name for name, _ in named})
        kept.reset()
        try:
            parts = [mapped.get(name) or self._folder.load(name, last, changed) for name, last in named]
        except DoubtfulFileError as error:
            if kept.doubtful != indexed:
                kept.doubtful = indexed
                raise OutdatedError from error
            parts = []
        kept.parts, kept.indexed, kept.named = parts, indexed, tuple(name for name, _ in named)
        kept.index = CollectionIndex(freezing.bury(parts))
        kept.seen = parts[-1].last if parts else 0
        kept.next_size = 0

    def _apply(self, connection: Connection, index: CollectionIndex, batch: list[Row]) -> None:
        """Show the index some documents as they are now, with all their vectors."""
        rows = [self._make_row(connection, row) for row in batch]
        keys = [row.key for row in rows]
        index.apply(rows)
        passages: defaultdict[tuple[str, int], list[VectorRow]] = defaultdict(list)
        for name, dimensions, *passage in connection.stream(_GET_VECTORS, (json.dumps(keys),)):
            passages[name, dimensions].append(VectorRow(*passage))
        index.set_all_vectors(keys, passages)

    def _make_row(self, connection: Connection, row: Row) -> IndexRow:
        key, written, id, state, created_at, modified_at, title, facets, spans, analysis, check, terms, head_id = row
        is_sound = analysis == ANALYSIS_VERSION and zlib.crc32(terms) == check
        if not is_sound or not terms:
            terms = self._analyse(connection, key, written, keeps=state != State.SUPERSEDED, is_sound=is_sound)
        return IndexRow(
            key=key,
            seq=written,
            id=id,
            state=State(state),
            created_at=decode_instant(created_at),
            modified_at=decode_instant(modified_at),
            title=title,
            facets=decode_facets(facets),
            date_ranges=decode_date_ranges(spans),
            terms=terms,
            head_id=head_id,
        )

    def _analyse(self, connection: Connection, key: int, written: int, *, keeps: bool, is_sound: bool) -> bytes:
        """Return a document's text analysed anew, and have it written back if the stored analysis is unusable."""
        ((title, body),) = connection.execute("SELECT title, body FROM documents WHERE key = ?", (key,))
        terms = encode_terms(title, body)
        if not is_sound and len(self._renewed) < MAX_RENEWED:
            self._renewed.append(RenewedTerms(key, written, terms if keeps else b"", ANALYSIS_VERSION))
        return terms

    def _freeze(self, key: int, kept: _KeptIndex, *, in_background: bool) -> None:
        """Freeze what changed: at once if reading it took long anyway, else in the background while searches go on."""
        if self._thread is not None and self._thread.is_alive():
            return
        changes = self._get_changes(key, kept)
        kept.next_size = 2 * max(kept.index.size, self._sizes.freeze_above)
        if in_background:
            self._thread = threading.Thread(target=self._write_late, args=(changes,), name="refdesk-index", daemon=True)
            self._thread.start()
        elif (part := self._write(changes)) is not None:
            # There is no room for it on the disk; it serves as well in memory.
            self._take(kept, [*kept.parts[: changes.first], part])

    def _set_aside(self, key: int, kept: _KeptIndex) -> None:
        """Move what was read so far out of memory; it is merged with the rest at the end."""
        whole = self._get_changes(key, kept)
        part = freezing.freeze(replace(whole, parts=(), snapshots=whole.snapshots[-1:]))
        gone = np.array(whole.gone, np.int64)
        self._take(kept, [*kept.parts, self._folder.set_aside(replace(part, gone=gone))])

    def _get_changes(self, key: int, kept: _KeptIndex) -> freezing.Changes:
        return freezing.Changes(
            collection=key,
            last=kept.seen,
            parts=tuple(kept.parts),
            named=kept.named,
            snapshots=kept.index.parts,
            size=kept.index.size,
            gone=tuple(kept.index.gone),
            merge_ratio=self._sizes.merge_ratio,
        )

    @staticmethod
    def _take(kept: _KeptIndex, parts: list[Part]) -> None:
        """Continue with these parts, which hold everything so far."""
        kept.parts, kept.index, kept.next_size = parts, CollectionIndex(freezing.bury(parts)), 0

    def _write_late(self, changes: freezing.Changes) -> None:
        self._write(changes)
        self._note_frozen()

    def _write(self, changes: freezing.Changes) -> Part | None:
        """Write a part that is to be named; return it if that failed, else `None`."""
        part = freezing.freeze(changes)
        try:
            written = self._folder.write(changes, part)
        except OSError:
            return part
        self._frozen.append(written)
        return None


def _batch(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
