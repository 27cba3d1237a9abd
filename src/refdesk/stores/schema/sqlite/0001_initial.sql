-- Instants are whole microseconds since 1970-01-01 UTC. JSON is text, so that people can read it with any SQLite shell.

-- Numbers of the whole store: 'change' is the change sequence.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('change', 0);

-- `changed` is the last change within the collection: who holds an index of it compares one number.
CREATE TABLE collections (
    key INTEGER PRIMARY KEY,
    org TEXT NOT NULL,
    toolset TEXT NOT NULL,
    changed INTEGER NOT NULL,
    UNIQUE (org, toolset)
) STRICT;

-- The present version of every document. The long columns come last, so that the short ones are read without them.
-- `written` is the change that wrote this version, `embedded` the last change of its vectors alone (0: none).
-- `terms` is derived from title and body by the analysis named in `analysis`; `terms_check` is its CRC-32.
CREATE TABLE documents (
    key INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL REFERENCES collections (key),
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('current', 'superseded', 'withdrawn')),
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    digest TEXT NOT NULL,
    text_digest TEXT NOT NULL,
    written INTEGER NOT NULL,
    embedded INTEGER NOT NULL DEFAULT 0,
    analysis INTEGER NOT NULL,
    terms_check INTEGER NOT NULL,
    author TEXT NOT NULL,
    title TEXT NOT NULL,
    facets TEXT NOT NULL,
    spans TEXT NOT NULL,
    terms BLOB NOT NULL,
    body TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (collection, id)
) STRICT;

CREATE INDEX documents_by_written ON documents (collection, written);
CREATE INDEX documents_by_embedded ON documents (collection, embedded) WHERE embedded > 0;
CREATE INDEX documents_by_state ON documents (collection, state);
CREATE INDEX documents_living ON documents (collection, id, digest, state) WHERE state <> 'withdrawn';

-- The versions before the present one.
CREATE TABLE revisions (
    document INTEGER NOT NULL REFERENCES documents (key),
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    author TEXT NOT NULL,
    title TEXT NOT NULL,
    facets TEXT NOT NULL,
    spans TEXT NOT NULL,
    body TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (document, version)
) STRICT;

CREATE TABLE models (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    dimensions INTEGER NOT NULL
) STRICT;

-- One embedded passage: `first` and `last` are code points of the body, `vector` little-endian half floats.
CREATE TABLE vectors (
    key INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (key),
    model INTEGER NOT NULL REFERENCES models (key),
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;

CREATE INDEX vectors_by_document ON vectors (document, model);
CREATE INDEX vectors_by_model ON vectors (model, document);

CREATE TABLE links (
    org TEXT NOT NULL,
    source_toolset TEXT NOT NULL,
    source_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    target_toolset TEXT NOT NULL,
    target_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org, source_toolset, source_id, kind, target_toolset, target_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX links_by_target ON links (org, target_toolset, target_id);

CREATE TABLE records (
    org TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    due_at INTEGER,
    value TEXT NOT NULL,
    PRIMARY KEY (org, kind, name)
) STRICT;

CREATE INDEX records_by_due ON records (kind, due_at IS NULL, due_at, org, name);
