"""Writes documents and metadata: each function runs in one thread hop, in the writer's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import apsw

from refdesk.core.keeping.encoding import check_texts
from refdesk.core.keeping.moves import MOVED
from refdesk.core.keeping.rows import encode_audit, encode_link, encode_metadata
from refdesk.errors import ConflictError, InvalidInputError
from refdesk.model import AuditEntry, Collection, Document, EmbeddingModel, Link, Metadata, MetadataKey, State
from refdesk.stores.sqlite.checksums import add_value, compute_checksum
from refdesk.stores.sqlite.driver import Connection, Value
from refdesk.stores.sqlite.freezing import discard_parts
from refdesk.stores.sqlite.index import ANALYSIS_VERSION, encode_terms
from refdesk.stores.sqlite.rows import DocumentRow, RenewedTerms, encode_document, encode_terms_columns

_INSERT_DOCUMENT = """
    INSERT INTO documents (
        collection, id, version, state, created_at, modified_at, recorded_at, digest, text_digest, written,
        analysis, terms_check, author, title, facets, spans, terms, body, data, checksum
    ) VALUES (
        :collection, :id, :version, :state, :created_at, :modified_at, :recorded_at, :digest, :text_digest, :written,
        :analysis, :terms_check, :author, :title, :facets, :spans, :terms, :body, :data, :checksum
    ) ON CONFLICT (collection, id)
"""
_ADD_DOCUMENT = f"{_INSERT_DOCUMENT} DO NOTHING"
_PUT_DOCUMENT = f"""
    {_INSERT_DOCUMENT} DO UPDATE SET
        version = :version, state = :state, created_at = :created_at, modified_at = :modified_at,
        recorded_at = :recorded_at, digest = :digest, text_digest = :text_digest, written = :written,
        analysis = :analysis, terms_check = :terms_check, author = :author, title = :title, facets = :facets,
        spans = :spans, terms = :terms, body = :body, data = :data, checksum = :checksum
"""
_KEEP_REVISION = """
    INSERT INTO revisions (
        document, version, state, created_at, modified_at, recorded_at, author, title, facets, spans, body, data,
        checksum
    )
    SELECT key, version, state, created_at, modified_at, recorded_at, author, title, facets, spans,
        CASE text_digest WHEN :text_digest THEN NULL ELSE body END, data, checksum
    FROM documents WHERE key = :key
"""
_NEXT_CHANGES = "UPDATE counters SET value = value + ? WHERE name = 'change' RETURNING value"
_TOUCH_COLLECTION = """
    INSERT INTO collections (org, toolset, changed) VALUES (?, ?, ?)
    ON CONFLICT (org, toolset) DO UPDATE SET changed = excluded.changed RETURNING key
"""
_GET_TEXT_STATE = """
    SELECT documents.key, text_digest, state FROM documents JOIN collections ON collections.key = documents.collection
    WHERE org = ? AND toolset = ? AND id = ?
"""

_REMOVE_LINK = """
    DELETE FROM links WHERE org = ? AND source_toolset = ? AND source_id = ? AND kind = ?
    AND target_toolset = ? AND target_id = ?
"""

CHANGED = "The document changed since it was read: read it again and repeat the change."
UNSCRUBBED = "unscrubbed"
"""The counter that exists while traces of what was erased may be in the file; its value is the last note's number."""

_NUMBER_NOTE = """
    INSERT INTO counters (name, value) VALUES ('notes_of_traces', 1)
    ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value
"""
_NOTE = "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def prepare_documents(documents: Sequence[Document]) -> list[DocumentRow]:
    """Return the rows of documents; their analysis is most of the work, and needs no connection.

    Raises:
        InvalidInputError: A text or value in one cannot be stored.
    """
    return [encode_document(document, _analyse(document), ANALYSIS_VERSION) for document in documents]


def _analyse(document: Document) -> bytes:
    """Return a document's analysed text; nothing for a superseded one, which is analysed again where that is needed.

    The analysis takes as much room as the text, and of what is corrected often most is superseded.
    """
    return b"" if document.state is State.SUPERSEDED else encode_terms(document.title, document.body)


def put_documents(connection: Connection, rows: Sequence[DocumentRow], recorded_at: int) -> None:
    """See `Transaction.put_documents`."""
    if not rows:
        return
    # With the savepoint, a caller that catches the conflict and goes on commits none of several documents. The conflict
    # of a single one only leaves a number of the sequence unused.
    with connection.savepoint() if len(rows) > 1 else nullcontext():
        last = _advance(connection, len(rows))
        collections = {row.collection: _touch(connection, row.collection, last) for row in rows}
        for written, row in enumerate(rows, last - len(rows) + 1):
            place = _place(row, collections[row.collection], recorded_at, written)
            if row.version != 1 or not connection.change(_ADD_DOCUMENT, place):
                _replace_document(connection, row, place)


def erase_documents(connection: Connection, rows: Sequence[DocumentRow], recorded_at: int) -> None:
    """See `Transaction.erase_documents`. That traces are left in the file is noted; `scrub` overwrites them."""
    if not rows:
        return
    with connection.savepoint():
        last = _advance(connection, len(rows))
        collections = {row.collection: _touch(connection, row.collection, last) for row in rows}
        for written, row in enumerate(rows, last - len(rows) + 1):
            _erase_document(connection, collections[row.collection], row, recorded_at, written)
        for key in collections.values():
            discard_parts(connection, key)
        note_traces(connection)


def _erase_document(connection: Connection, collection: int, row: DocumentRow, recorded_at: int, written: int) -> None:
    select = "SELECT key, version FROM documents WHERE collection = ? AND id = ?"
    key, version = connection.get_row(select, (collection, row.id)) or (None, 0)
    if row.version <= version:
        raise ConflictError(CHANGED)
    connection.execute("DELETE FROM revisions WHERE document = ?", (key,))
    connection.execute("DELETE FROM vectors WHERE document = ?", (key,))
    connection.execute(_PUT_DOCUMENT, _place(row, collection, recorded_at, written))


def note_traces(connection: Connection) -> int:
    """Note that traces may be in the file, until `forget_traces`; return the note's number, which is unique."""
    ((number,),) = connection.execute(_NUMBER_NOTE)
    connection.execute(_NOTE, (UNSCRUBBED, number))
    return number


def get_traces(connection: Connection) -> int | None:
    """Return the number of the last note that traces may still be in the file, or `None` if there is none."""
    row = connection.get_row("SELECT value FROM counters WHERE name = ?", (UNSCRUBBED,))
    return None if row is None else int(row[0])


def forget_traces(connection: Connection, number: int) -> None:
    """Remove a note, unless another process has noted more since it was read."""
    connection.execute("DELETE FROM counters WHERE name = ? AND value = ?", (UNSCRUBBED, number))


def put_vectors(
    connection: Connection,
    collection: Collection,
    id: str,
    model: EmbeddingModel,
    text_digest: str,
    passages: Sequence[tuple[int, int, bytes]],
) -> bool:
    """See `Transaction.put_vectors`."""
    row = connection.get_row(_GET_TEXT_STATE, (collection.org, collection.toolset, id))
    if row is None or row[1] != text_digest or row[2] == State.WITHDRAWN:
        return False
    document, model_key = row[0], _get_model(connection, model)
    connection.execute("DELETE FROM vectors WHERE document = ? AND model = ?", (document, model_key))
    connection.execute_many(
        "INSERT INTO vectors (document, model, first, last, vector) VALUES (?, ?, ?, ?, ?)",
        [(document, model_key, *passage) for passage in passages],
    )
    change = _advance(connection, 1)
    _touch(connection, collection, change)
    connection.execute("UPDATE documents SET embedded = ? WHERE key = ?", (change, document))
    return True


def remove_vectors(connection: Connection, model: str) -> int:
    """See `Transaction.remove_vectors`."""
    row = connection.get_row("SELECT key FROM models WHERE name = ?", (model,))
    if row is None:
        return 0
    change = _advance(connection, 1)
    removed = connection.execute(
        "UPDATE documents SET embedded = ? WHERE key IN (SELECT document FROM vectors WHERE model = ?) RETURNING key",
        (change, row[0]),
    )
    connection.execute(
        "UPDATE collections SET changed = :change "
        "WHERE key IN (SELECT collection FROM documents WHERE embedded = :change)",
        {"change": change},
    )
    connection.execute("DELETE FROM vectors WHERE model = ?", row)
    connection.execute("DELETE FROM models WHERE key = ?", row)
    return len(removed)


def put_terms(connection: Connection, renewed: Sequence[RenewedTerms]) -> None:
    """Replace the analysed text of documents not written since; this does not count as a change in the sequence."""
    connection.execute_many(
        "UPDATE documents SET terms = :terms, analysis = :analysis, terms_check = :terms_check "
        "WHERE key = :key AND written = :written",
        [
            {**encode_terms_columns(each.terms, each.analysis), "key": each.key, "written": each.written}
            for each in renewed
        ],
    )


def put_links(connection: Connection, links: Sequence[Link]) -> None:
    """See `Transaction.put_links`."""
    connection.execute_many(
        "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [_add_checksum(encode_link(link)) for link in links],
    )


def remove_links(connection: Connection, links: Sequence[Link]) -> None:
    """See `Transaction.remove_links`."""
    connection.execute_many(_REMOVE_LINK, [encode_link(link)[:-1] for link in links])


def put_audit(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    """See `Transaction.put_audit`."""
    # If one of several conflicts, none is kept; a single statement needs no savepoint for that.
    with connection.savepoint() if len(entries) > 1 else nullcontext():
        _put_audit(connection, entries)


def _put_audit(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    try:
        connection.execute_many(
            "INSERT INTO audit (org, number, at, act, previous, digest) VALUES (?, ?, ?, ?, ?, ?)",
            [encode_audit(entry) for entry in entries],
        )
    except apsw.ConstraintError as error:
        if MOVED in str(error):
            raise
        raise ConflictError("The audit log has an entry of that number: read it again and repeat the change.") from None


def put_metadata(connection: Connection, records: Sequence[Metadata]) -> None:
    """See `Transaction.put_metadata`."""
    connection.execute_many(
        "INSERT INTO records (org, kind, name, due_at, value, checksum) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (org, kind, name) "
        "DO UPDATE SET due_at = excluded.due_at, value = excluded.value, checksum = excluded.checksum",
        [_add_checksum(encode_metadata(record)) for record in records],
    )


def remove_metadata(connection: Connection, keys: Sequence[MetadataKey]) -> None:
    """See `Transaction.remove_metadata`."""
    connection.execute_many(
        "DELETE FROM records WHERE org = ? AND kind = ? AND name = ?", [(key.org, key.kind, key.name) for key in keys]
    )


def probe(connection: Connection) -> None:
    """Write a row and remove it again, so that the commit goes to the disk and leaves nothing."""
    connection.execute("INSERT INTO counters (name, value) VALUES ('probe', 0)")
    connection.execute("DELETE FROM counters WHERE name = 'probe'")


def _advance(connection: Connection, changes: int) -> int:
    """Take the next `changes` numbers of the change sequence; return the last."""
    ((last,),) = connection.execute(_NEXT_CHANGES, (changes,))
    return last


def _touch(connection: Connection, collection: Collection, change: int) -> int:
    ((key,),) = connection.execute(_TOUCH_COLLECTION, (collection.org, collection.toolset, change))
    return key


def _replace_document(connection: Connection, row: DocumentRow, place: Mapping[str, Value]) -> None:
    select = "SELECT key, version, text_digest FROM documents WHERE collection = :collection AND id = :id"
    key, version, text_digest = connection.get_row(select, place) or (None, 0, row.text_digest)
    if row.version != version + 1:
        raise ConflictError(CHANGED)
    if key is not None:
        connection.execute(_KEEP_REVISION, {"key": key, "text_digest": row.text_digest})
    if row.text_digest != text_digest:
        connection.execute("DELETE FROM vectors WHERE document = ?", (key,))
    connection.execute(_PUT_DOCUMENT, place)


def _place(row: DocumentRow, collection: int, recorded_at: int, written: int) -> dict[str, Value]:
    place: dict[str, Value] = {"collection": collection, "id": row.id, "recorded_at": recorded_at, "written": written}
    return {**row.columns, **place, "checksum": add_value(row.checksum, recorded_at)}


def _add_checksum(values: Sequence[Value]) -> tuple[Value, ...]:
    return (*values, compute_checksum(*values))


def _get_model(connection: Connection, model: EmbeddingModel) -> int:
    check_texts(model.name)
    connection.execute(
        "INSERT INTO models (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING", (model.name, model.dimensions)
    )
    ((key, dimensions),) = connection.execute("SELECT key, dimensions FROM models WHERE name = ?", (model.name,))
    if dimensions != model.dimensions:
        raise InvalidInputError("The store holds vectors of this model in another width: remove those first.")
    return key
