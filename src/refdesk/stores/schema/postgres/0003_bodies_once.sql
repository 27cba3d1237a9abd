-- A version that has the title and the body of the next one leaves its body to it: NULL.
ALTER TABLE revisions ALTER COLUMN body DROP NOT NULL;
