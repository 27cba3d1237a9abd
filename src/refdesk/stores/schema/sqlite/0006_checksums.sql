-- What shows that a row is still as it was written: CRC-32 of all that is shown of it, and of the place it belongs to. A
-- bit that flips in a text, or a page that lands in another's place, looks sound to SQLite. `checksum(...)` is defined by
-- the program while it migrates; `stores/sqlite/checksums.py` says what it covers.
ALTER TABLE documents ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE revisions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE links ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE documents SET checksum = (
    SELECT checksum(
        org, toolset, id, version, state, created_at, modified_at, author, title, facets, spans, body, data, recorded_at
    ) FROM collections WHERE collections.key = documents.collection
);

-- A version without a body has that of the next one that has its own.
UPDATE revisions SET checksum = (
    SELECT checksum(
        org, toolset, id, revisions.version, revisions.state, revisions.created_at, revisions.modified_at,
        revisions.author, revisions.title, revisions.facets, revisions.spans,
        coalesce(
            revisions.body,
            (SELECT next.body FROM revisions AS next
                WHERE next.document = revisions.document AND next.version > revisions.version AND next.body IS NOT NULL
                ORDER BY next.version LIMIT 1),
            documents.body
        ),
        revisions.data, revisions.recorded_at
    )
    FROM documents JOIN collections ON collections.key = documents.collection
    WHERE documents.key = revisions.document
);

UPDATE records SET checksum = checksum(org, kind, name, due_at, value);

UPDATE links SET checksum = checksum(org, source_toolset, source_id, kind, target_toolset, target_id, created_at);
