-- The search index is kept in files beside this one. It is derived: any of them, or a row here, may be removed at any
-- time. A file counts only while it is named here, so that a store put back from a copy never trusts what came later.
-- `last` is the change up to which a part and those before it hold the collection; `format` is the files' version.
CREATE TABLE index_parts (
    collection INTEGER NOT NULL REFERENCES collections (key),
    format INTEGER NOT NULL,
    last INTEGER NOT NULL,
    name TEXT NOT NULL UNIQUE,
    PRIMARY KEY (collection, format, last)
) STRICT, WITHOUT ROWID;

-- How often the parts of a collection changed: who has them mapped compares one number.
ALTER TABLE collections ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;

-- What is removed for good must not live on in a file: such parts are named no more, and whoever had them removes them.
CREATE TRIGGER documents_removed AFTER DELETE ON documents BEGIN
    DELETE FROM index_parts WHERE collection = OLD.collection;
    UPDATE collections SET indexed = indexed + 1 WHERE key = OLD.collection;
END;
