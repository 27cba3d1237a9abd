"""Writes documents, and what searches read of them, in the same transaction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, LiteralString, TypeAlias

import anyio.to_thread

from refdesk.core.keeping.encoding import encode_instant
from refdesk.core.keeping.rows import decode_audit, encode_document
from refdesk.errors import ConflictError
from refdesk.model import Collection, State
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement
from refdesk.stores.postgres.embeddings import count_seen
from refdesk.stores.postgres.indexing import SHORT, Ahead, Derived, Tokens
from refdesk.stores.postgres.lexical import (
    CHANGE_TERMS,
    GET_TO_KNOW,
    GET_UNCOUNTED,
    MOST_UNCOUNTED,
    MOST_UNCOUNTED_IN_LOAD,
    count_terms,
)
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.reads import GET_LAST_AUDIT
from refdesk.stores.postgres.rows import encode_digest, spell_numbers, spell_texts, take_rows
from refdesk.stores.postgres.texts import pack
from refdesk.stores.postgres.transactions import Session

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Revision

_GET_NUMBERS = """
    SELECT (SELECT changes FROM orgs WHERE org = %(org)s),
        (SELECT uncounted FROM collections WHERE org = %(org)s AND toolset = %(toolset)s)
"""
_MAKE_ORG = "INSERT INTO orgs (org, changes) VALUES (%s, %s)"
_MAKE_COLLECTION = "INSERT INTO collections (org, toolset) VALUES (%s, %s)"
_GET_BEFORE = """
    SELECT documents.id, key, version, encode(text_digest, 'hex'), entries.document IS NOT NULL, entries.length
    FROM documents LEFT JOIN entries
        ON entries.org = documents.org AND entries.toolset = documents.toolset AND entries.document = key
    WHERE documents.org = %s AND documents.toolset = %s AND documents.id = ANY(%s::text[])
"""
_KEEP_REVISIONS = """
    INSERT INTO revisions (
        org, document, version, state, created_at, modified_at, recorded_at, author, facets, spans, data, texts
    )
    SELECT org, key, version, state, created_at, modified_at, recorded_at, author, facets, spans, data,
        CASE WHEN key = ANY(%s::bigint[]) THEN texts END
    FROM documents WHERE org = %s AND key = ANY(%s::bigint[])
"""
_INTO_DOCUMENTS = """
    INSERT INTO documents (
        org, toolset, id, key, written, version, state, created_at, modified_at, recorded_at, digest, text_digest,
        author, facets, spans, data, texts
    ) SELECT %(org)s, %(toolset)s, * FROM
"""
_TYPES_OF_DOCUMENTS: Sequence[tuple[LiteralString, LiteralString]] = (
    *(("id", "text"), ("key", "bigint"), ("written", "bigint"), ("version", "integer"), ("state", "text")),
    *(("created_at", "bigint"), ("modified_at", "bigint"), ("recorded_at", "bigint"), ("digest", "bytea")),
    *(("text_digest", "bytea"), ("author", "text"), ("facets", "json"), ("spans", "json"), ("data", "json")),
    ("texts", "bytea"),
)
_OR_REPLACE_DOCUMENTS = """
    ON CONFLICT (org, toolset, id) DO UPDATE SET
        version = excluded.version, state = excluded.state, created_at = excluded.created_at,
        modified_at = excluded.modified_at, recorded_at = excluded.recorded_at, written = excluded.written,
        digest = excluded.digest, text_digest = excluded.text_digest, author = excluded.author,
        facets = excluded.facets, spans = excluded.spans, data = excluded.data, texts = excluded.texts
"""
_INTO_ENTRIES = """
    INSERT INTO entries (
        org, toolset, document, id, state, created_at, modified_at, length, title_key, sequence, facets, terms,
        frequencies, high_frequencies, others, inflected
    )
    SELECT %(org)s, %(toolset)s, document, id, state, created_at, modified_at, length, title_key, sequence,
        facets::bigint[], entry.terms::integer[], decode(frequencies, 'hex'), decode(high_frequencies, 'hex'),
        entry.others::integer[] || CASE WHEN written <> '{}' THEN ARRAY(
            SELECT unnest(written) EXCEPT SELECT unnest(entry.terms::integer[] || entry.others::integer[])
        ) END,
        nullif(CASE WHEN written = '{}' THEN entry.inflected::integer[] ELSE ARRAY(
            SELECT unnest(entry.inflected::integer[]) EXCEPT SELECT unnest(written)
        ) END, '{}')
    FROM
"""
_TYPES_OF_ENTRIES: Sequence[tuple[LiteralString, LiteralString]] = (
    *(("key", "bigint"), ("id", "text"), ("state", "text"), ("created_at", "bigint"), ("modified_at", "bigint")),
    *(("length", "bigint"), ("title_key", "text"), ("sequence", "text"), ("facets", "bigint[]")),
    *(("terms", "integer[]"), ("frequencies", "text"), ("high_frequencies", "text"), ("others", "integer[]")),
    *(("inflected", "integer[]"), ("texts", "text[]")),
)
_WITH_WORDS = """
    AS entry (
        document, id, state, created_at, modified_at, length, title_key, sequence, facets, terms, frequencies,
        high_frequencies, others, inflected, texts
    ) CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT DISTINCT refdesk_number(word, decode(%(collection)s, 'hex'))
            FROM unnest(texts::text[]) AS text, unnest(tsvector_to_array(to_tsvector('simple', text))) AS word
        ) AS written OFFSET 0
    ) parsed
"""
_PUT_DOCUMENT, _PUT_DOCUMENTS = take_rows(_INTO_DOCUMENTS, _TYPES_OF_DOCUMENTS, f"AS document {_OR_REPLACE_DOCUMENTS}")
_PUT_ENTRY, _PUT_ENTRIES = take_rows(_INTO_ENTRIES, _TYPES_OF_ENTRIES, _WITH_WORDS)
_COUNT_COLLECTION = """
    UPDATE collections SET documents = documents + %(documents)s, words = words + %(words)s,
        uncounted = uncounted + %(changes)s
    WHERE org = %(org)s AND toolset = %(toolset)s
"""
_NUMBER = "WITH numbered AS (UPDATE orgs SET changes = %(last)s WHERE org = %(org)s)"
_NUMBER_AND_COUNT = f"{_NUMBER} {_COUNT_COLLECTION}"
_PUT_SPANS = """
    INSERT INTO spans (org, document, name, starts_at, ends_at)
    SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[])
"""
_REMOVE_ENTRIES = "DELETE FROM entries WHERE org = %s AND toolset = %s AND document = ANY(%s::bigint[])"
_REMOVE_SPANS = "DELETE FROM spans WHERE org = %s AND document = ANY(%s::bigint[])"
_REMOVE_VECTORS = """
    WITH removed AS (
        DELETE FROM vectors WHERE org = %(org)s AND document = ANY(%(keys)s::bigint[]) RETURNING model
    ), counts AS (
        SELECT model, count(*) AS passages FROM removed GROUP BY model
    )
    UPDATE embeddings SET passages = embeddings.passages - counts.passages FROM counts
    WHERE org = %(org)s AND toolset = %(toolset)s AND embeddings.model = counts.model
"""
_REMOVE_REVISIONS = "DELETE FROM revisions WHERE org = %s AND document = ANY(%s::bigint[])"
CHANGED = "The document changed since it was read: read it again and repeat the change."


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document ready to be written: everything slow is done before the store is locked."""

    collection: Collection
    columns: Mapping[str, object]
    derived: Derived

    @property
    def id(self) -> str:
        """The document's id."""
        return str(self.columns["id"])

    @property
    def is_living(self) -> bool:
        """Whether searches may find it."""
        return self.state is not State.WITHDRAWN

    @property
    def state(self) -> State:
        """The document's state."""
        return State(str(self.columns["state"]))


@dataclass(frozen=True, slots=True)
class _Before:
    """What is stored of a document before it is written; if nothing is, the version is 0 and the key a new one."""

    key: int
    version: int = 0
    text_digest: str | None = None
    is_living: bool = False
    length: int = 0


_Stored: TypeAlias = "dict[tuple[Collection, str], _Before]"


def prepare_revisions(revisions: Sequence[Revision], ahead: Ahead | None = None) -> list[DocumentRow]:
    """Return the rows of versions; their analysis is most of the work, and needs no connection.

    Args:
        revisions: The versions.
        ahead: May already have analysed some of them.

    Raises:
        InvalidInputError: A text or value in one cannot be stored.
    """
    ahead = ahead or Ahead()
    return [DocumentRow(each.document.collection, _encode(each), ahead.take(each.document)) for each in revisions]


def _encode(revision: Revision) -> dict[str, object]:
    document = revision.document
    columns: dict[str, object] = {
        "org": document.collection.org,
        "toolset": document.collection.toolset,
        "id": document.id,
        "recorded_at": encode_instant(revision.recorded_at),
        **encode_document(document),
    }
    del columns["title"], columns["body"]
    columns["texts"] = pack(document.title, document.body)
    return columns


async def prepare(revisions: Sequence[Revision], ahead: Ahead) -> list[DocumentRow]:
    """Return the same; what takes longer than a hop to a thread is done in one."""
    if sum(len(each.document.body) for each in revisions) <= SHORT:
        return prepare_revisions(revisions, ahead)
    return await anyio.to_thread.run_sync(prepare_revisions, revisions)


async def put_revisions(
    session: Session, rows: Sequence[DocumentRow], known: dict[Collection, Content], *, is_loading: bool = False
) -> list[Content]:
    """See `Transaction.put_revisions`. Nothing is written before every version has been checked.

    Args:
        session: The transaction.
        rows: The versions to write.
        known: What is stored of some collections; used once.
        is_loading: Whether a store is being loaded: terms are then counted less often, and at the end of the load.

    Returns:
        What is stored afterwards.
    """
    by_collection: defaultdict[Collection, list[DocumentRow]] = defaultdict(list)
    for row in rows:
        by_collection[row.collection].append(row)
    contents = [await _get_content(session, known, *each) for each in by_collection.items()]
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.refuse_conflicts(rows)
    changes: dict[str, int | None] = {}
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.changes = changes.get(content.collection.org, content.changes)
        for wave in _part(rows):
            await content.put(session, wave)
        limit = MOST_UNCOUNTED_IN_LOAD if is_loading else MOST_UNCOUNTED
        settling = content.settle(limit)
        if settling and session.is_one_node and not is_loading:
            settling.append(Statement(GET_TO_KNOW))
        await session.post(Scope(content.collection.org), *settling)
        changes[content.collection.org] = content.changes
    return contents


async def erase_documents(session: Session, rows: Sequence[DocumentRow]) -> None:
    """See `Transaction.erase_documents`. Terms are counted at once, so that no note of the erased terms is left."""
    by_collection: defaultdict[Collection, list[DocumentRow]] = defaultdict(list)
    for row in rows:
        by_collection[row.collection].append(row)
    contents = [await _get_content(session, {}, *each) for each in by_collection.items()]
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.refuse_older(rows)
    changes: dict[str, int | None] = {}
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.changes = changes.get(content.collection.org, content.changes)
        await content.erase(session, rows)
        changes[content.collection.org] = content.changes


async def count_loaded(session: Session) -> None:
    """Count the terms of what a load has written; the session works on the whole store."""
    (collections,) = await session.send(ALL_ORGS, Statement(GET_UNCOUNTED))
    for org, toolset in collections:
        await session.post(Scope(org), *count_terms(org, toolset))


async def probe(session: Session) -> None:
    """Write something that changes nothing, so that the commit goes to the disk."""
    await session.send(Scope(""), Statement("UPDATE counters SET value = value"))


@dataclass(slots=True)
class Content:
    """The part of a collection that a call writes to, as it is stored.

    Attributes:
        stored: What is stored under each id.
        ids: The ids of which it is known what is stored.
        changes: The last number of the org's change sequence; `None` before the first.
        uncounted: About how many changes searches have to look through besides what is counted.
        last_audit: The last entry of the org's audit log.
    """

    collection: Collection
    ids: frozenset[str] = frozenset()
    stored: _Stored = field(default_factory=dict["tuple[Collection, str]", _Before])
    changes: int | None = None
    uncounted: int | None = None
    last_audit: AuditEntry | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The columns that name the collection."""
        return self.collection.org, self.collection.toolset

    def refuse_conflicts(self, rows: Iterable[DocumentRow]) -> None:
        """Return if each version is the stored one plus one; those of one document follow each other."""
        versions = {id: before.version for (_, id), before in self.stored.items()}
        for row in rows:
            if row.columns["version"] != versions.get(row.id, 0) + 1:
                raise ConflictError(CHANGED)
            versions[row.id] = versions.get(row.id, 0) + 1

    def refuse_older(self, rows: Iterable[DocumentRow]) -> None:
        """Return if each version is above the stored one."""
        for row in rows:
            before = self.stored.get((self.collection, row.id))
            if before is not None and int(str(row.columns["version"])) <= before.version:
                raise ConflictError(CHANGED)

    async def erase(self, session: Session, rows: Sequence[DocumentRow]) -> None:
        """Write documents, each at most once, in place of all their versions."""
        org = self.place[0]
        keys = [each.key for row in rows if (each := self.stored.get((self.collection, row.id))) is not None]
        await self.put(session, rows)
        # Counting removes the changes noted for it, which hold the terms of what is erased.
        vectors = Statement(_REMOVE_VECTORS, {"org": org, "toolset": self.place[1], "keys": keys})
        await session.post(Scope(org), vectors, Statement(_REMOVE_REVISIONS, (org, keys)), *self._count_terms())

    async def put(self, session: Session, rows: Sequence[DocumentRow]) -> None:
        """Write documents, each at most once."""
        is_first = self.changes is None
        made = self._take_numbers(len(rows))
        numbers = range((self.changes or 0) - len(rows) + 1, (self.changes or 0) + 1)
        known = [self.stored.get((self.collection, row.id)) for row in rows]
        before = [each or _Before(number) for each, number in zip(known, numbers, strict=True)]
        keys = [each.key for each in before]
        statements = [
            *made,
            *self._replace(rows, before, numbers),
            self._put_documents(rows, keys, numbers),
            *self.index(rows, keys),
            *self._change_terms(1, before, numbers),
            self.count(rows, before, None if is_first else self.changes),
        ]
        self.uncounted = (self.uncounted or 0) + len(rows)
        for row, key in zip(rows, keys, strict=True):
            self._remember(row, key)
        await session.post(Scope(self.collection.org), *statements)

    def settle(self, limit: int) -> list[Statement]:
        """Return what counts terms, once searches have `limit` changes to look through besides what is counted."""
        return self._count_terms() if (self.uncounted or 0) >= limit else []

    def _take_numbers(self, count: int) -> list[Statement]:
        """Take `count` numbers of the org's change sequence: nobody else can while this transaction holds the org.

        Returns:
            What creates the rows of org and collection, if they are missing; otherwise `count` stores the sequence.
        """
        statements = [Statement(_MAKE_COLLECTION, self.place)] if self.uncounted is None else []
        is_first, self.changes = self.changes is None, (self.changes or 0) + count
        return [*statements, Statement(_MAKE_ORG, (self.place[0], self.changes))] if is_first else statements

    def index(self, rows: Sequence[DocumentRow], keys: Sequence[int]) -> list[Statement]:
        """Let searches find documents; nothing by which they were found before may be left."""
        living = [(key, row) for key, row in zip(keys, rows, strict=True) if row.is_living]
        if not living:
            return []
        return [self._put_entries(living), *self._put_spans(living)]

    def _count_terms(self) -> list[Statement]:
        self.uncounted = 0
        return count_terms(*self.place)

    def _replace(
        self, rows: Sequence[DocumentRow], before: Sequence[_Before], numbers: Sequence[int]
    ) -> Iterable[Statement]:
        """Keep the versions that are replaced, and remove what was derived from them."""
        org, old = self.place[0], [each for each in before if each.version]
        if not old:
            return
        keys = [each.key for each in old]
        pairs = list(zip(rows, before, strict=True))
        reworded = [b.key for row, b in pairs if b.version and b.text_digest != row.columns["text_digest"]]
        yield Statement(_KEEP_REVISIONS, (reworded, org, keys))
        gone = [b.key for row, b in pairs if b.is_living and (b.key in reworded or not row.is_living)]
        back = [b.key for row, b in pairs if b.version and not b.is_living and row.is_living and b.key not in reworded]
        yield from count_seen(self.collection, gone, back)
        yield from self._change_terms(-1, before, numbers)
        yield Statement(_REMOVE_ENTRIES, (*self.place, keys))
        yield Statement(_REMOVE_SPANS, (org, keys))
        if reworded:
            yield Statement(_REMOVE_VECTORS, {"org": org, "toolset": self.place[1], "keys": reworded})

    def _change_terms(self, change: int, before: Sequence[_Before], numbers: Sequence[int]) -> Iterable[Statement]:
        """Note the terms of documents that existed before, as their entries are at this moment."""
        old = [(each.key, number) for each, number in zip(before, numbers, strict=True) if each.version]
        if old:
            yield Statement(CHANGE_TERMS, (change, *map(list, zip(*old, strict=True)), *self.place))

    def count(self, rows: Sequence[DocumentRow], before: Sequence[_Before], last: int | None = None) -> Statement:
        """Keep the collection's counts in step, so that no search has to count; store the sequence's last number."""
        living = [row for row in rows if row.is_living]
        words = sum(row.derived.length for row in living) - sum(old.length for old in before)
        documents = len(living) - sum(old.is_living for old in before)
        values: dict[str, object] = {"org": self.place[0], "toolset": self.place[1], "last": last}
        values |= {"documents": documents, "words": words, "changes": len(rows)}
        return Statement(_COUNT_COLLECTION if last is None else _NUMBER_AND_COUNT, values)

    def _put_documents(self, rows: Sequence[DocumentRow], keys: Sequence[int], numbers: Sequence[int]) -> Statement:
        names = [name for name in rows[0].columns if name not in ("org", "toolset")]
        columns: dict[str, Sequence[object]] = {name: [row.columns[name] for row in rows] for name in names}
        columns |= {name: [encode_digest(str(each)) for each in columns[name]] for name in ("digest", "text_digest")}
        columns |= {"key": list(keys), "written": list(numbers)}
        return self._put(_PUT_DOCUMENT, _PUT_DOCUMENTS, columns)

    def _put_entries(self, living: Sequence[tuple[int, DocumentRow]]) -> Statement:
        derived = [row.derived for _, row in living]
        columns: dict[str, Sequence[object]] = {
            name: [row.columns[name] for _, row in living] for name in ("id", "state", "created_at", "modified_at")
        }
        columns["key"] = [key for key, _ in living]
        columns |= {name: [getattr(each, name) for each in derived] for name in ("length", "title_key", "sequence")}
        arrays = ("facets", "terms", "others", "inflected")
        columns |= {name: [spell_numbers(getattr(each, name)) for each in derived] for name in arrays}
        columns["frequencies"] = [each.frequencies.hex() for each in derived]
        high = (each.high_frequencies for each in derived)
        columns["high_frequencies"] = [None if each is None else each.hex() for each in high]
        columns["texts"] = [spell_texts(each.texts) for each in derived]
        return self._put(_PUT_ENTRY, _PUT_ENTRIES, columns, collection=Tokens(self.collection).of_collection)

    def _put(
        self, one: LiteralString, many: LiteralString, columns: Mapping[str, Sequence[object]], **values: object
    ) -> Statement:
        """Return what puts rows into a table, by the statement for one row or by that for many."""
        values |= {"org": self.place[0], "toolset": self.place[1]}
        if len(columns["key"]) == 1:
            return Statement(one, {**{name: column[0] for name, column in columns.items()}, **values})
        return Statement(many, {**columns, **values})

    def _put_spans(self, living: Sequence[tuple[int, DocumentRow]]) -> Iterable[Statement]:
        spans = [(key, *span) for key, row in living for span in row.derived.date_ranges]
        if spans:
            yield Statement(_PUT_SPANS, (self.place[0], *map(list, zip(*spans, strict=True))))

    def _remember(self, row: DocumentRow, key: int) -> None:
        version, text_digest = int(str(row.columns["version"])), str(row.columns["text_digest"])
        length = row.derived.length if row.is_living else 0
        self.stored[self.collection, row.id] = _Before(key, version, text_digest, row.is_living, length)


@dataclass(frozen=True, slots=True)
class Asked:
    """A collection, and ids in it for which it is asked what is stored."""

    collection: Collection
    ids: Sequence[str]

    @property
    def statements(self) -> list[Statement]:
        """The statements that ask, for the transaction that holds the org."""
        place = (self.collection.org, self.collection.toolset)
        return [
            Statement(_GET_NUMBERS, {"org": place[0], "toolset": place[1]}),
            Statement(_GET_BEFORE, (*place, list(self.ids))),
            Statement(GET_LAST_AUDIT, (place[0],)),
        ]

    def read(self, rows: Sequence[Sequence[Row]]) -> Content:
        """Return what is stored, from the rows of the statements."""
        (((changes, uncounted),), found, ends) = rows
        stored = {(self.collection, row[0]): _decode_before(row[1:]) for row in found}
        last_audit = decode_audit(ends[0]) if ends else None
        return Content(self.collection, frozenset(self.ids), stored, changes, uncounted, last_audit)


async def _get_content(
    session: Session, known: dict[Collection, Content], collection: Collection, rows: Sequence[DocumentRow]
) -> Content:
    """Return what is stored in the collection under the ids of the rows."""
    ids = {row.id for row in rows}
    content = known.pop(collection, None)
    if content is not None and ids <= content.ids:
        # Its numbers and counts are as old as the answer: whatever else is written after this asks anew.
        known.clear()
        return content
    known.clear()
    asked = Asked(collection, list(ids))
    return asked.read(await session.send(Scope(collection.org), *asked.statements))


def index_anew(collection: Collection, rows: Sequence[DocumentRow], keys: Sequence[int]) -> list[Statement]:
    """Return what rebuilds what searches read of stored documents; none of that may exist yet."""
    content = Content(collection)
    return [*content.index(rows, keys), content.count(rows, [])]


def _decode_before(row: Row) -> _Before:
    key, version, text_digest, is_living, length = row
    return _Before(key, version, text_digest, is_living, length or 0)


def _part(rows: Iterable[DocumentRow]) -> list[list[DocumentRow]]:
    """Return the rows in groups that hold no id twice, with the versions of a document in order."""
    waves: list[list[DocumentRow]] = []
    met: Counter[str] = Counter()
    for row in rows:
        if met[row.id] == len(waves):
            waves.append([])
        waves[met[row.id]].append(row)
        met[row.id] += 1
    return waves
