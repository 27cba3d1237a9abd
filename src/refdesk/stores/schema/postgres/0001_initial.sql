-- Instants are whole microseconds since 1970-01-01 UTC. Texts compare by code point ("C"), as in every other engine.
-- Keys are led by org: a deployment can distribute or partition by it.

-- The change sequence. Under the store's lock its numbers come in the order of commits; what is undone leaves gaps.
CREATE SEQUENCE changes;

-- Numbers of the whole store: 'analysis' is the version of the analysed text.
CREATE TABLE counters (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO counters (name, value) VALUES ('analysis', 0);

-- What BM25 needs to know of a collection as a whole: how many documents are not withdrawn and how many words they
-- have, a word of a title counting as two. `last_term` is the highest number given to a term.
-- `secret` keys the tokens of the collection, see the table tokens.
CREATE TABLE collections (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    secret uuid NOT NULL DEFAULT gen_random_uuid(),
    documents bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    last_term integer NOT NULL DEFAULT 0,
    PRIMARY KEY (org, toolset)
);

CREATE SEQUENCE document_keys;

-- The present version of every document. `words` is derived: the terms of title and body with a blank on either side
-- of each and a line feed between the two, so that a phrase is a substring.
CREATE TABLE documents (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    version integer NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('current', 'superseded', 'withdrawn')),
    created_at bigint NOT NULL,
    modified_at bigint NOT NULL,
    recorded_at bigint NOT NULL,
    written bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    text_digest text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    facets json NOT NULL,
    spans json NOT NULL,
    body text COLLATE "C" NOT NULL,
    data json NOT NULL,
    words text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, toolset, id),
    UNIQUE (org, key)
);

CREATE INDEX documents_by_state ON documents (org, toolset, state);
CREATE INDEX documents_living ON documents (org, toolset, id) INCLUDE (digest) WHERE state <> 'withdrawn';

-- The versions before the present one.
CREATE TABLE revisions (
    org text COLLATE "C" NOT NULL,
    document bigint NOT NULL,
    version integer NOT NULL,
    state text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    modified_at bigint NOT NULL,
    recorded_at bigint NOT NULL,
    author text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    facets json NOT NULL,
    spans json NOT NULL,
    body text COLLATE "C" NOT NULL,
    data json NOT NULL,
    PRIMARY KEY (org, document, version),
    FOREIGN KEY (org, document) REFERENCES documents (org, key)
);

-- The terms of a collection, numbered as they come; `documents` is how many hold the term and are not withdrawn.
CREATE TABLE terms (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    term text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    documents bigint NOT NULL,
    PRIMARY KEY (org, toolset, term),
    UNIQUE (org, toolset, number)
) WITH (fillfactor = 80);

-- What a search reads of a document that is not withdrawn: short rows, kept out of TOAST, beside the long ones.
-- `terms` are the numbers of its terms in ascending order, `frequencies` how often each occurs, in the same order, and
-- `length` their sum; a word of the title counts as two.
CREATE TABLE entries (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    document bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    modified_at bigint NOT NULL,
    length bigint NOT NULL,
    title_key text COLLATE "C" NOT NULL,
    terms integer[] NOT NULL,
    frequencies integer[] NOT NULL,
    PRIMARY KEY (org, toolset, document),
    FOREIGN KEY (org, document) REFERENCES documents (org, key)
) WITH (toast_tuple_target = 8160);

-- The inverted index: for each entry the hashes of its terms, of its facet values and of its title's trigrams.
-- Under row-level security PostgreSQL uses an index only for conditions it knows not to leak, and the operators of
-- full-text search, arrays and LIKE are none of these: a GIN index on a protected table would never be used by the role
-- that ought to serve. So this table holds nothing to protect: neither org nor text, only hashes keyed by the secret of
-- the collection, which row-level security does hide. The secret also parts the index: the words of one collection cost
-- no search in another.
CREATE TABLE tokens (
    document bigint PRIMARY KEY,
    tokens tsvector NOT NULL
) WITH (toast_tuple_target = 128);

-- Searches read the index, not the column: out of line, a page holds a hundred rows.
ALTER TABLE tokens ALTER COLUMN tokens SET STORAGE EXTERNAL;
-- A list of pending entries, written by one and searched by all, would make some searches slow.
CREATE INDEX tokens_by_token ON tokens USING gin (tokens) WITH (fastupdate = off);

-- One row for each facet, value and spelling of an entry; `is_first` marks one spelling of each value.
CREATE TABLE facet_values (
    org text COLLATE "C" NOT NULL,
    document bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    uses integer NOT NULL,
    is_first boolean NOT NULL
);

CREATE INDEX facet_values_by_document ON facet_values (org, document);

CREATE TABLE spans (
    org text COLLATE "C" NOT NULL,
    document bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL
);

CREATE INDEX spans_by_document ON spans (org, document);

-- `passages` counts those of all orgs: it tells how much of the model's graph one collection is.
CREATE TABLE models (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    dimensions integer NOT NULL,
    passages bigint NOT NULL DEFAULT 0
);

-- How many passages of a model a collection has.
CREATE TABLE embeddings (
    org text COLLATE "C" NOT NULL,
    toolset text COLLATE "C" NOT NULL,
    model integer NOT NULL REFERENCES models (key),
    passages bigint NOT NULL,
    PRIMARY KEY (org, toolset, model)
);

-- One embedded passage: `first` and `last` are code points of the body. Each model has an HNSW index of its own.
CREATE TABLE vectors (
    org text COLLATE "C" NOT NULL,
    document bigint NOT NULL,
    model integer NOT NULL REFERENCES models (key),
    number integer NOT NULL,
    first integer NOT NULL,
    last integer NOT NULL,
    vector halfvec NOT NULL,
    PRIMARY KEY (org, document, model, number),
    FOREIGN KEY (org, document) REFERENCES documents (org, key)
);

CREATE TABLE links (
    org text COLLATE "C" NOT NULL,
    source_toolset text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    target_toolset text COLLATE "C" NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (org, source_toolset, source_id, kind, target_toolset, target_id)
);

CREATE INDEX links_by_target ON links (org, target_toolset, target_id);

CREATE TABLE records (
    org text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    due_at bigint,
    value json NOT NULL,
    PRIMARY KEY (org, kind, name)
);

CREATE INDEX records_by_due ON records (kind, due_at, org, name);

-- The second wall between orgs: a statement sees the rows of the org that its transaction named, or none. The server's
-- own work over all orgs (jobs, sweeps, statistics) says so by another setting, which no caller's request sets.
DO $$
DECLARE
    protected text;
BEGIN
    FOREACH protected IN ARRAY ARRAY[
        'collections', 'documents', 'revisions', 'terms', 'entries', 'facet_values', 'spans', 'embeddings', 'vectors',
        'links', 'records'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', protected);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format(
            'CREATE POLICY one_org ON %I USING ('
            'org = (SELECT current_setting(''refdesk.org'', true)) '
            'OR (SELECT current_setting(''refdesk.all_orgs'', true)) = ''on'')',
            protected
        );
    END LOOP;
END
$$;
