-- A version that has the title and the body of the next one leaves its body to it: NULL.
CREATE TABLE versions (
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
    body TEXT,
    data TEXT NOT NULL,
    UNIQUE (document, version)
) STRICT;

INSERT INTO versions
SELECT document, version, state, created_at, modified_at, recorded_at, author, title, facets, spans,
    CASE WHEN body = coalesce(
        (SELECT next.body FROM revisions AS next
            WHERE next.document = revisions.document AND next.version = revisions.version + 1),
        (SELECT documents.body FROM documents
            WHERE documents.key = revisions.document AND documents.version = revisions.version + 1)
    ) THEN NULL ELSE body END, data
FROM revisions ORDER BY document, version;

DROP TABLE revisions;
ALTER TABLE versions RENAME TO revisions;
