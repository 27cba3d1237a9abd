-- How many documents, not counting withdrawn ones, have vectors of a model: nobody has to count them.
-- Statements of the version before name columns without their table: the name must be none that they use.
ALTER TABLE embeddings ADD COLUMN embedded bigint NOT NULL DEFAULT 0;

-- The policies would hide every org's rows from the owner, too.
SELECT set_config('refdesk.all_orgs', 'on', true);

UPDATE embeddings SET embedded = counts.documents FROM (
    SELECT vectors.org, documents.toolset, vectors.model, count(*) AS documents FROM vectors
    JOIN documents ON documents.org = vectors.org AND documents.key = vectors.document
    WHERE vectors.number = 0 AND documents.state <> 'withdrawn'
    GROUP BY vectors.org, documents.toolset, vectors.model
) AS counts
WHERE embeddings.org = counts.org AND embeddings.toolset = counts.toolset AND embeddings.model = counts.model;

SELECT set_config('refdesk.all_orgs', 'off', true);
