-- One key for a word and for the term that it is, facets in one place, and no index that few ask.
-- What searches read is made anew from the documents when the store is opened next.
DROP INDEX documents_living;
DROP TABLE facet_values, entries;
DROP FUNCTION refdesk_form(text, bigint);

-- What a search reads of a document that is not withdrawn. Terms are numbers that the collection and the term are
-- hashed to. `terms` ascend, `frequencies` has a byte for each, in the same order, how often it occurs, and where that
-- needs more, `high_frequencies` the higher byte (at most 32,767 times); `length` is their sum; a word of the title
-- counts as two. `sequence` has a character for each term of the text, by its place among `terms`, so that a phrase is
-- a part of it. `facets` are hashes of facets and values. `others`, which begins with a 0 in every entry, are further
-- ways to find it: words that are written otherwise than its terms, pieces of the title, facets. `inflected` are terms
-- that are themselves written nowhere in it: of "printers" the term is "printer".
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
    frequencies bytea NOT NULL,
    high_frequencies bytea,
    facets bigint[] NOT NULL,
    terms integer[] NOT NULL,
    others integer[] NOT NULL,
    inflected integer[],
    PRIMARY KEY (org, toolset, document)
) WITH (toast_tuple_target = 8160);

-- The list of pending entries, written by one and searched by all, is kept short.
CREATE INDEX entries_by_word ON entries USING gin ((others || terms)) WITH (gin_pending_list_limit = 128);

-- The number of a term, or of a word as it is written, as `Tokens.of_term` gives it.
CREATE FUNCTION refdesk_number(word text, collection bytea) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
RETURN ('x' || encode(substr(sha256(collection || convert_to(word, 'UTF8')), 1, 4), 'hex'))::bit(32)::integer
    & 1073741823 | 1073741824;

ALTER TABLE entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE entries FORCE ROW LEVEL SECURITY;

-- The policy asks for the words too: see the step before.
CREATE POLICY one_org ON entries USING (
    org = current_setting('refdesk.org', true) AND (
        (others || terms) && nullif(current_setting('refdesk.any', true), '')::integer[]
        OR (others || terms) @> nullif(current_setting('refdesk.all', true), '')::integer[]
    )
);
