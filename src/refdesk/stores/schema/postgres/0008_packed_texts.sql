-- Title and body of a version in one column, which the client packs: a byte that says how (0: not at all, 1: deflate,
-- without a header), then the title, a zero byte and the body. NULL in a revision: those of the next version. What is
-- stored already stays as it is until it is written again. Digests as the bytes that they are.
ALTER TABLE documents
    ALTER COLUMN body TYPE bytea
        USING decode('00', 'hex') || convert_to(title, 'UTF8') || decode('00', 'hex') || convert_to(body, 'UTF8'),
    ALTER COLUMN digest TYPE bytea USING decode(digest, 'hex'),
    ALTER COLUMN text_digest TYPE bytea USING decode(text_digest, 'hex');
ALTER TABLE documents DROP COLUMN title;
ALTER TABLE documents RENAME COLUMN body TO texts;

ALTER TABLE revisions
    ALTER COLUMN body TYPE bytea
        USING decode('00', 'hex') || convert_to(title, 'UTF8') || decode('00', 'hex') || convert_to(body, 'UTF8');
ALTER TABLE revisions DROP COLUMN title;
ALTER TABLE revisions RENAME COLUMN body TO texts;

-- The server need not try to make short rows shorter any more: what is packed it cannot.
ALTER TABLE documents RESET (toast_tuple_target);
