-- What searches read, in one table behind the wall, and nothing that orgs share a row, a lock or a number of.
-- What an older version derived is made anew from the documents when the store is opened next.
SELECT set_config('refdesk.all_orgs', 'on', true);

-- The change sequence of an org: under the org's lock its numbers come in the order of commits; what is undone leaves
-- gaps. A document's key is the number of its first version.
CREATE TABLE orgs (
    org text COLLATE "C" PRIMARY KEY,
    changes bigint NOT NULL
);

INSERT INTO orgs (org, changes) SELECT org, greatest(max(key), max(written)) FROM documents GROUP BY org;

DROP TABLE tokens, terms, entries;
DROP SEQUENCE changes, document_keys;

-- Rows of models belong to all orgs: a reference to one would lock it for as long as a transaction lasts.
ALTER TABLE vectors DROP CONSTRAINT vectors_model_fkey, DROP CONSTRAINT vectors_org_document_fkey;
ALTER TABLE embeddings DROP CONSTRAINT embeddings_model_fkey;
ALTER TABLE models DROP COLUMN passages;

-- Texts are compressed in place.
ALTER TABLE documents DROP COLUMN words;
ALTER TABLE documents SET (toast_tuple_target = 512);
ALTER TABLE documents
    ALTER COLUMN org SET STORAGE MAIN, ALTER COLUMN toolset SET STORAGE MAIN, ALTER COLUMN id SET STORAGE MAIN,
    ALTER COLUMN state SET STORAGE MAIN, ALTER COLUMN digest SET STORAGE MAIN,
    ALTER COLUMN text_digest SET STORAGE MAIN, ALTER COLUMN author SET STORAGE MAIN,
    ALTER COLUMN title SET STORAGE MAIN, ALTER COLUMN facets SET STORAGE MAIN, ALTER COLUMN spans SET STORAGE MAIN,
    ALTER COLUMN body SET STORAGE MAIN, ALTER COLUMN data SET STORAGE MAIN;

DO $$
BEGIN
    ALTER TABLE documents ALTER COLUMN body SET COMPRESSION lz4, ALTER COLUMN data SET COMPRESSION lz4;
    ALTER TABLE revisions ALTER COLUMN body SET COMPRESSION lz4, ALTER COLUMN data SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- a server built without it compresses in its own way
END
$$;

-- `counted`: entries up to this key are counted in term_counts; `uncounted`: about how many changes are not.
ALTER TABLE collections DROP COLUMN last_term, DROP COLUMN secret,
    ADD COLUMN counted bigint NOT NULL DEFAULT 0, ADD COLUMN uncounted bigint NOT NULL DEFAULT 0;
UPDATE collections SET documents = 0, words = 0;

-- What a search reads of a document that is not withdrawn. Terms are numbers that the collection and the term are
-- hashed to. `terms` ascend, `frequencies` say how often each occurs (at most 32,767 times), in the same order, and
-- `length` is their sum; a word of the title counts as two. `sequence` has a character for each term of the text, by
-- its place among `terms`, so that a phrase is a part of it. `facets` are hashes of facets and values. `others`, which
-- begins with a 0 in every entry, are further ways to find it: words as they are written, pieces of the title, facets.
CREATE TABLE entries (
    document bigint NOT NULL,
    created_at bigint NOT NULL,
    modified_at bigint NOT NULL,
    length bigint NOT NULL,
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    title_key text COLLATE "C" NOT NULL,
    sequence text COLLATE "C" NOT NULL,
    facets bigint[] NOT NULL,
    frequencies smallint[] NOT NULL,
    terms integer[] NOT NULL,
    others integer[] NOT NULL,
    PRIMARY KEY (org, toolset, document)
) WITH (toast_tuple_target = 8160);

-- The list of pending entries, written by one and searched by all, is kept short.
CREATE INDEX entries_by_word ON entries USING gin ((others || terms)) WITH (gin_pending_list_limit = 128);

-- How many entries hold a term, by the term's last ten bits; what came since `counted` is added by who reads.
CREATE TABLE term_counts (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    bucket integer NOT NULL,
    terms integer[] NOT NULL,
    documents integer[] NOT NULL,
    PRIMARY KEY (org, toolset, bucket)
) WITH (toast_tuple_target = 8160);

-- Terms that entries counted before have gained or lost since.
CREATE TABLE term_changes (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    change smallint NOT NULL,
    terms integer[] NOT NULL,
    PRIMARY KEY (org, toolset, number, change)
);

CREATE FUNCTION refdesk_form(word text, collection bigint) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hashtextextended(word, collection) & 1073741823)::integer + 1073741824;

DO $$
DECLARE
    protected text;
BEGIN
    FOREACH protected IN ARRAY ARRAY['orgs', 'entries', 'term_counts', 'term_changes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', protected);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', protected);
    END LOOP;
    FOREACH protected IN ARRAY ARRAY['orgs', 'term_counts', 'term_changes'] LOOP
        EXECUTE format(
            'CREATE POLICY one_org ON %I USING (org = current_setting(''refdesk.org'', true) '
            'OR current_setting(''refdesk.all_orgs'', true) = ''on'')',
            protected
        );
    END LOOP;
END
$$;

-- Under row-level security PostgreSQL uses an index only for conditions that it knows not to leak, and the operators of
-- arrays are none of these; but what the policy itself asks may use any. So the policy asks for the words too: a
-- statement sees those entries of its org that hold any of some words, or all of others, as its transaction named
-- them; every entry holds 0.
CREATE POLICY one_org ON entries USING (
    org = current_setting('refdesk.org', true) AND (
        (others || terms) && nullif(current_setting('refdesk.any', true), '')::integer[]
        OR (others || terms) @> nullif(current_setting('refdesk.all', true), '')::integer[]
    )
);

SELECT set_config('refdesk.all_orgs', 'off', true);
