"""Writes documents and metadata, and what searches read of them, in the same transaction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread
from psycopg.sql import SQL, Identifier

from refdesk.core.keeping.encoding import encode_instant
from refdesk.core.keeping.rows import decode_audit, encode_audit, encode_document, encode_link, encode_metadata
from refdesk.errors import ConflictError
from refdesk.model import Collection, State
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.indexing import MOST_WORDS, Derived, Tokens, derive
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.reads import GET_LAST_AUDIT
from refdesk.stores.postgres.transactions import Session

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Link, Metadata, MetadataKey, Revision

_GET_BEFORE = """
    SELECT documents.id, key, version, text_digest, entries.document IS NOT NULL, entries.terms, entries.length
    FROM documents LEFT JOIN entries
        ON entries.org = documents.org AND entries.toolset = documents.toolset AND entries.document = key
    WHERE documents.org = %s AND documents.toolset = %s AND documents.id = ANY(%s::text[])
"""
_MAKE_COLLECTION = "INSERT INTO collections (org, toolset) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_GET_SECRET = "SELECT secret FROM collections WHERE org = %s AND toolset = %s"
_NEXT_KEYS = "SELECT nextval('document_keys') FROM generate_series(1, %s)"
# Numbers are given without gaps, by the collection's own count.
_NUMBER_TERMS = """
    WITH known AS (
        SELECT term, number FROM terms WHERE org = %(org)s AND toolset = %(toolset)s AND term = ANY(%(terms)s::text[])
    ), fresh AS (
        SELECT term, row_number() OVER (ORDER BY term) AS place FROM unnest(%(terms)s::text[]) AS asked (term)
        WHERE term COLLATE "C" NOT IN (SELECT term FROM known)
    ), counted AS (
        UPDATE collections SET last_term = last_term + (SELECT count(*) FROM fresh)
        WHERE org = %(org)s AND toolset = %(toolset)s RETURNING last_term - (SELECT count(*) FROM fresh) AS before
    ), added AS (
        INSERT INTO terms (org, toolset, term, number, documents)
        SELECT %(org)s, %(toolset)s, term, before + place, 0 FROM fresh, counted RETURNING term, number
    )
    SELECT term, number FROM known UNION ALL SELECT term, number FROM added
"""
_KEEP_REVISIONS = """
    INSERT INTO revisions (
        org, document, version, state, created_at, modified_at, recorded_at, author, title, facets, spans, body, data
    )
    SELECT org, key, version, state, created_at, modified_at, recorded_at, author, title, facets, spans,
        CASE WHEN key = ANY(%s::bigint[]) THEN body END, data
    FROM documents WHERE org = %s AND key = ANY(%s::bigint[])
"""
_PUT_DOCUMENT = """
    INSERT INTO documents (
        org, toolset, id, key, version, state, created_at, modified_at, recorded_at, written, digest, text_digest,
        author, title, facets, spans, body, data, words
    ) VALUES (
        %(org)s, %(toolset)s, %(id)s, %(key)s, %(version)s, %(state)s, %(created_at)s, %(modified_at)s,
        %(recorded_at)s, nextval('changes'), %(digest)s, %(text_digest)s, %(author)s, %(title)s, %(facets)s::json,
        %(spans)s::json, %(body)s, %(data)s::json, %(words)s
    ) ON CONFLICT (org, toolset, id) DO UPDATE SET
        version = excluded.version, state = excluded.state, created_at = excluded.created_at,
        modified_at = excluded.modified_at, recorded_at = excluded.recorded_at, written = excluded.written,
        digest = excluded.digest, text_digest = excluded.text_digest, author = excluded.author,
        title = excluded.title, facets = excluded.facets, spans = excluded.spans, body = excluded.body,
        data = excluded.data, words = excluded.words
"""
_PUT_ENTRY = """
    INSERT INTO entries (
        org, document, toolset, id, state, created_at, modified_at, length, title_key, terms, frequencies
    ) VALUES (
        %(org)s, %(key)s, %(toolset)s, %(id)s, %(state)s, %(created_at)s, %(modified_at)s, %(length)s, %(title_key)s,
        %(terms)s::integer[], %(frequencies)s::integer[]
    )
"""
_PUT_TOKENS = """
    INSERT INTO tokens (document, tokens)
    SELECT %(key)s, array_to_tsvector(string_to_array(%(tokens)s, ' ') || ARRAY(
        SELECT left(encode(sha256(%(secret)s::bytea || convert_to(word, 'UTF8')), 'hex'), 16)
        FROM unnest(%(texts)s::text[]) AS text, unnest(tsvector_to_array(to_tsvector('simple', text))) AS word
        LIMIT %(room)s
    ))
"""
_PUT_FACET_VALUES = """
    INSERT INTO facet_values (org, document, name, key, value, uses, is_first)
    SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::integer[], %s::boolean[])
"""
_PUT_SPANS = """
    INSERT INTO spans (org, document, name, starts_at, ends_at)
    SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[])
"""
_REMOVE_TOKENS = "DELETE FROM tokens WHERE document = ANY(%s::bigint[])"
_REMOVE_ENTRIES = "DELETE FROM entries WHERE org = %s AND toolset = %s AND document = ANY(%s::bigint[])"
_REMOVE_FROM_SEARCH = (
    "DELETE FROM facet_values WHERE org = %s AND document = ANY(%s::bigint[])",
    "DELETE FROM spans WHERE org = %s AND document = ANY(%s::bigint[])",
)
_REMOVE_VECTORS = """
    WITH removed AS (
        DELETE FROM vectors WHERE org = %(org)s AND document = ANY(%(keys)s::bigint[]) RETURNING model
    ), counts AS (
        SELECT model, count(*) AS passages FROM removed GROUP BY model
    )
    UPDATE embeddings SET passages = embeddings.passages - counts.passages FROM counts
    WHERE org = %(org)s AND toolset = %(toolset)s AND embeddings.model = counts.model
"""
_SET_WORDS = "UPDATE documents SET words = %s WHERE org = %s AND key = %s"
_COUNT_TERMS = """
    UPDATE terms SET documents = terms.documents + change
    FROM unnest(%s::integer[], %s::integer[]) AS asked (term, change)
    WHERE org = %s AND toolset = %s AND number = asked.term
"""
_COUNT_COLLECTION = """
    UPDATE collections SET documents = documents + %s, words = words + %s WHERE org = %s AND toolset = %s
"""
_PUT_LINK = "INSERT INTO links VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
_REMOVE_LINK = """
    DELETE FROM links WHERE org = %s AND source_toolset = %s AND source_id = %s AND kind = %s
    AND target_toolset = %s AND target_id = %s
"""
_REMOVE_REVISIONS = "DELETE FROM revisions WHERE org = %s AND document = ANY(%s::bigint[])"
_REMOVE_TERMS = """
    DELETE FROM terms WHERE org = %s AND toolset = %s AND number = ANY(%s::integer[]) AND documents <= 0
"""
_GET_AUDITED = "SELECT number FROM audit WHERE org = %s AND number = ANY(%s::bigint[])"
_PUT_AUDIT = "INSERT INTO audit (org, number, at, act, previous, digest) VALUES (%s, %s, %s, %s::json, %s, %s)"
_PUT_RECORDS = """
    INSERT INTO records (org, kind, name, due_at, value)
    SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::json[])
    ON CONFLICT (org, kind, name) DO UPDATE SET due_at = excluded.due_at, value = excluded.value
"""
_REMOVE_RECORDS = """
    DELETE FROM records WHERE org = %s AND (kind, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
"""

SHORT = 20_000
"""Code points that are analysed in a few milliseconds, so that handing them to a thread would take longer."""

CHANGED = "The document changed since it was read: read it again and repeat the change."

_HOLD_TEXT = (
    "documents",
    "revisions",
    "vectors",
    "entries",
    "tokens",
    "terms",
    "facet_values",
    "spans",
    "links",
    "records",
)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document ready to be written: everything that takes time is done before the store is locked."""

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
        """Whether it holds."""
        return State(str(self.columns["state"]))


@dataclass(frozen=True, slots=True)
class _Before:
    """What is stored of a document before it is written: nothing has version 0 and a fresh key."""

    key: int
    version: int = 0
    text_digest: str | None = None
    is_living: bool = False
    terms: Sequence[int] = ()
    length: int = 0


_Stored: TypeAlias = "dict[tuple[Collection, str], _Before]"


def prepare_revisions(revisions: Sequence[Revision]) -> list[DocumentRow]:
    """Return the rows of versions; their analysis is most of the work, and needs no connection.

    Raises:
        InvalidInputError: A text or value in one cannot be stored.
    """
    return [DocumentRow(each.document.collection, _encode(each), derive(each.document)) for each in revisions]


def _encode(revision: Revision) -> dict[str, object]:
    document = revision.document
    return {
        "org": document.collection.org,
        "toolset": document.collection.toolset,
        "id": document.id,
        "recorded_at": encode_instant(revision.recorded_at),
        **encode_document(document),
    }


async def prepare(revisions: Sequence[Revision]) -> list[DocumentRow]:
    """Return the same; what takes longer than to hand it to a thread is done in one."""
    if sum(len(each.document.body) for each in revisions) <= SHORT:
        return prepare_revisions(revisions)
    return await anyio.to_thread.run_sync(prepare_revisions, revisions)


async def put_revisions(session: Session, rows: Sequence[DocumentRow]) -> dict[str, AuditEntry | None]:
    """See `Transaction.put_revisions`. Nothing is written before every version has been checked.

    Returns:
        The last audit entry of each org, as it will be asked for: what is written goes on record.
    """
    by_collection: defaultdict[Collection, list[DocumentRow]] = defaultdict(list)
    for row in rows:
        by_collection[row.collection].append(row)
    contents = [await open_content(session, collection, rows) for collection, rows in by_collection.items()]
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.refuse_conflicts(rows)
    for content, rows in zip(contents, by_collection.values(), strict=True):
        for wave in _part(rows):
            await content.put(session, wave)
    return {content.collection.org: content.last_audit for content in contents}


async def erase_documents(session: Session, rows: Sequence[DocumentRow]) -> None:
    """See `Transaction.erase_documents`. Words that no other document holds leave the vocabulary too."""
    by_collection: defaultdict[Collection, list[DocumentRow]] = defaultdict(list)
    for row in rows:
        by_collection[row.collection].append(row)
    contents = [await open_content(session, collection, rows) for collection, rows in by_collection.items()]
    for content, rows in zip(contents, by_collection.values(), strict=True):
        content.refuse_older(rows)
    for content, rows in zip(contents, by_collection.values(), strict=True):
        await content.erase(session, rows)


async def put_links(session: Session, links: Sequence[Link]) -> None:
    """See `Transaction.put_links`."""
    rows = [encode_link(link) for link in links]
    for org in dict.fromkeys(row[0] for row in rows):
        await session.post(Scope(org), *(Statement(_PUT_LINK, row) for row in rows if row[0] == org))


async def remove_links(session: Session, links: Sequence[Link]) -> None:
    """See `Transaction.remove_links`."""
    rows = [encode_link(link)[:-1] for link in links]
    for org in dict.fromkeys(row[0] for row in rows):
        await session.post(Scope(org), *(Statement(_REMOVE_LINK, row) for row in rows if row[0] == org))


async def put_audit(session: Session, entries: Sequence[AuditEntry], last: Mapping[str, int]) -> None:
    """See `Transaction.put_audit`.

    Args:
        session: The transaction.
        entries: What is added.
        last: The highest number of each org's log that this transaction has read; above it nothing is looked for.
    """
    for org in dict.fromkeys(entry.org for entry in entries):
        rows = [encode_audit(entry) for entry in entries if entry.org == org]
        numbers = [entry.number for entry in entries if entry.org == org]
        if org not in last or min(numbers) <= last[org] or len(set(numbers)) < len(numbers):
            (there,) = await session.send(Scope(org), Statement(_GET_AUDITED, (org, numbers)))
            if there:
                raise ConflictError("The audit log has an entry of that number: read it again and repeat the change.")
        await session.post(Scope(org), *(Statement(_PUT_AUDIT, row) for row in rows))


async def put_metadata(session: Session, records: Sequence[Metadata]) -> None:
    """See `Transaction.put_metadata`."""
    rows = [encode_metadata(record) for record in {record.key: record for record in records}.values()]
    for org in dict.fromkeys(row[0] for row in rows):
        columns = map(list, zip(*[row[1:] for row in rows if row[0] == org], strict=True))
        await session.post(Scope(org), Statement(_PUT_RECORDS, (org, *columns)))


async def remove_metadata(session: Session, keys: Sequence[MetadataKey]) -> None:
    """See `Transaction.remove_metadata`."""
    for org in dict.fromkeys(key.org for key in keys):
        columns = [[key.kind for key in keys if key.org == org], [key.name for key in keys if key.org == org]]
        await session.post(Scope(org), Statement(_REMOVE_RECORDS, (org, *columns)))


async def probe(session: Session) -> None:
    """Write something that changes nothing, so that the commit goes to the disk."""
    await session.send(Scope(""), Statement("UPDATE counters SET value = value"))


async def vacuum(connections: Connections) -> None:
    """Let the room of removed rows be used again; waits for nobody, and nobody for it."""
    async with connections.pool.lend() as connection:
        for table in _HOLD_TEXT:
            await connections.send_alone(connection, Statement(SQL("VACUUM {}").format(Identifier(table))))


@dataclass(slots=True)
class Content:
    """The part of a collection that a call writes to, as it is stored."""

    collection: Collection
    tokens: Tokens
    stored: _Stored
    fresh_keys: list[int] = field(default_factory=list[int])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    last_audit: AuditEntry | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The columns that name the collection."""
        return self.collection.org, self.collection.toolset

    def refuse_conflicts(self, rows: Iterable[DocumentRow]) -> None:
        """Return when each version is the stored one plus one; those of one document count up."""
        versions = {id: before.version for (_, id), before in self.stored.items()}
        for row in rows:
            if row.columns["version"] != versions.get(row.id, 0) + 1:
                raise ConflictError(CHANGED)
            versions[row.id] = versions.get(row.id, 0) + 1

    def refuse_older(self, rows: Iterable[DocumentRow]) -> None:
        """Return when each version is above the stored one."""
        for row in rows:
            before = self.stored.get((self.collection, row.id))
            if before is not None and int(str(row.columns["version"])) <= before.version:
                raise ConflictError(CHANGED)

    async def erase(self, session: Session, rows: Sequence[DocumentRow]) -> None:
        """Write documents, each at most once, in place of all their versions."""
        org = self.place[0]
        before = [each for row in rows if (each := self.stored.get((self.collection, row.id))) is not None]
        keys, terms = [each.key for each in before], sorted({term for each in before for term in each.terms})
        await self.put(session, rows)
        statements = [Statement(_REMOVE_REVISIONS, (org, keys)), Statement(_REMOVE_TERMS, (*self.place, terms))]
        vectors = Statement(_REMOVE_VECTORS, {"org": org, "toolset": self.place[1], "keys": keys})
        await session.post(Scope(org), vectors, *statements)

    async def put(self, session: Session, rows: Sequence[DocumentRow]) -> None:
        """Write documents, each at most once."""
        scope = Scope(self.collection.org)
        numbers, before = self.numbers, [self._get_before(row) for row in rows]
        statements = list(self._replace(rows, before))
        for row, old in zip(rows, before, strict=True):
            statements.append(Statement(_PUT_DOCUMENT, {**row.columns, "key": old.key, "words": row.derived.words}))
            self._remember(row, old.key, [numbers[term] for term in row.derived.frequencies])
        await session.post(scope, *statements, *self._index(rows, before, numbers))

    async def index_anew(self, session: Session, rows: Sequence[DocumentRow], keys: Sequence[int]) -> None:
        """Rebuild what searches read of stored documents; none of it may exist yet."""
        scope = Scope(self.collection.org)
        (numbered,) = await session.send(scope, _number_terms(self.collection, rows))
        numbers: dict[str, int] = dict(numbered)
        words = [
            Statement(_SET_WORDS, (row.derived.words, self.place[0], key)) for row, key in zip(rows, keys, strict=True)
        ]
        await session.post(scope, *words, *self._index(rows, [_Before(key) for key in keys], numbers))

    def _get_before(self, row: DocumentRow) -> _Before:
        return self.stored.get((self.collection, row.id)) or _Before(self.fresh_keys.pop())

    def _replace(self, rows: Sequence[DocumentRow], before: Sequence[_Before]) -> Iterable[Statement]:
        """Keep the versions that go, and remove what was derived from them."""
        org, old = self.place[0], [each for each in before if each.version]
        if not old:
            return
        keys = [each.key for each in old]
        pairs = zip(rows, before, strict=True)
        reworded = [b.key for row, b in pairs if b.version and b.text_digest != row.columns["text_digest"]]
        yield Statement(_KEEP_REVISIONS, (reworded, org, keys))
        yield Statement(_REMOVE_TOKENS, (keys,))
        yield Statement(_REMOVE_ENTRIES, (*self.place, keys))
        for text in _REMOVE_FROM_SEARCH:
            yield Statement(text, (org, keys))
        if reworded:
            yield Statement(_REMOVE_VECTORS, {"org": org, "toolset": self.place[1], "keys": reworded})

    def _count(
        self, rows: Sequence[DocumentRow], before: Sequence[_Before], numbers: Mapping[str, int]
    ) -> Iterable[Statement]:
        """Keep the collection's counts in step, so that no search has to count."""
        changes: Counter[int] = Counter()
        living = [row for row in rows if row.is_living]
        for row in living:
            changes.update(numbers[term] for term in row.derived.frequencies)
        for old in before:
            changes.subtract(old.terms)
        # In one order, whoever writes.
        changed = sorted((number, change) for number, change in changes.items() if change)
        if changed:
            yield Statement(_COUNT_TERMS, ([n for n, _ in changed], [c for _, c in changed], *self.place))
        words = sum(row.derived.length for row in living) - sum(old.length for old in before)
        documents = len(living) - sum(old.is_living for old in before)
        yield Statement(_COUNT_COLLECTION, (documents, words, *self.place))

    def _index(
        self, rows: Sequence[DocumentRow], before: Sequence[_Before], numbers: Mapping[str, int]
    ) -> Iterable[Statement]:
        """Let searches find the documents; nothing of what they found before may be there any more."""
        yield from self._count(rows, before, numbers)
        living = [(old.key, row) for old, row in zip(before, rows, strict=True) if row.is_living]
        for key, row in living:
            yield from self._put_entry(key, row, numbers)
        yield from self._put_lists(living)

    def _put_entry(self, key: int, row: DocumentRow, numbers: Mapping[str, int]) -> Iterable[Statement]:
        derived = row.derived
        terms = sorted((numbers[term], frequency) for term, frequency in derived.frequencies.items())
        entry = {
            "key": key,
            "length": derived.length,
            "title_key": derived.title_key,
            "terms": [number for number, _ in terms],
            "frequencies": [frequency for _, frequency in terms],
        }
        yield Statement(_PUT_ENTRY, {**row.columns, **entry})
        yield self._put_tokens(key, row)

    def _put_tokens(self, key: int, row: DocumentRow) -> Statement:
        tokens = self.tokens.of_document(row.derived, row.state)
        values: dict[str, object] = {
            "key": key,
            "tokens": " ".join(tokens),
            "secret": self.tokens.secret,
            "texts": list(row.derived.texts),
            "room": MOST_WORDS - len(tokens),
        }
        return Statement(_PUT_TOKENS, values)

    def _put_lists(self, living: Sequence[tuple[int, DocumentRow]]) -> Iterable[Statement]:
        values = [(key, *value) for key, row in living for value in row.derived.facet_values]
        spans = [(key, *span) for key, row in living for span in row.derived.date_ranges]
        if values:
            yield Statement(_PUT_FACET_VALUES, (self.place[0], *map(list, zip(*values, strict=True))))
        if spans:
            yield Statement(_PUT_SPANS, (self.place[0], *map(list, zip(*spans, strict=True))))

    def _remember(self, row: DocumentRow, key: int, terms: Sequence[int]) -> None:
        version, text_digest = int(str(row.columns["version"])), str(row.columns["text_digest"])
        living = (True, terms, row.derived.length) if row.is_living else (False, (), 0)
        self.stored[self.collection, row.id] = _Before(key, version, text_digest, *living)


async def open_content(session: Session, collection: Collection, rows: Sequence[DocumentRow]) -> Content:
    """Return the collection, made if absent, with what it holds under the ids of the rows."""
    place = (collection.org, collection.toolset)
    ids = list({row.id for row in rows})
    _, secrets, found, keys, numbered, ends = await session.send(
        Scope(collection.org),
        Statement(_MAKE_COLLECTION, place),
        Statement(_GET_SECRET, place),
        Statement(_GET_BEFORE, (*place, ids)),
        Statement(_NEXT_KEYS, (len(ids),)),
        _number_terms(collection, rows),
        Statement(GET_LAST_AUDIT, (collection.org,)),
    )
    stored = {(collection, row[0]): _decode_before(row[1:]) for row in found}
    end = decode_audit(ends[0]) if ends else None
    return Content(collection, Tokens(secrets[0][0]), stored, [key for (key,) in keys], dict(numbered), end)


def _number_terms(collection: Collection, rows: Sequence[DocumentRow]) -> Statement:
    terms = list({term for row in rows for term in row.derived.frequencies})
    return Statement(_NUMBER_TERMS, {"org": collection.org, "toolset": collection.toolset, "terms": terms})


def _decode_before(row: Row) -> _Before:
    key, version, text_digest, is_living, terms, length = row
    return _Before(key, version, text_digest, is_living, terms or (), length or 0)


def _part(rows: Iterable[DocumentRow]) -> list[list[DocumentRow]]:
    """Return the rows in groups that hold no id twice, the versions of a document in their order."""
    waves: list[list[DocumentRow]] = []
    met: Counter[str] = Counter()
    for row in rows:
        if met[row.id] == len(waves):
            waves.append([])
        waves[met[row.id]].append(row)
        met[row.id] += 1
    return waves
