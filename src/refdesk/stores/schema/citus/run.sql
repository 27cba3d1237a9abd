-- Runs statements on the node that holds an org, on the shards of that org. Each step has a name, a statement with
-- {{table}} for each table (and {{#table}} for the number of its shard), and its values in brackets or nothing. Returns of
-- each step the types of its columns and its rows, in PostgreSQL's own text. Everything that is read is of this node:
-- where the shard has been moved away, nothing is run. A step without a text is one that this session has prepared:
-- where it has not, the answer is NULL. Of which types the columns are is kept in a setting, beside what is prepared.
CREATE OR REPLACE FUNCTION refdesk_run(asked text, path text, steps text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    shard bigint;
    step json;
    place record;
    found record;
    statement text;
    call text;
    types json;
    rows text[];
    answers json[] := '{}';
BEGIN
    PERFORM set_config('search_path', path, true), set_config('citus.enable_manual_changes_to_shards', 'on', true);
    shard := get_shard_id_for_distribution_column('documents', asked);
    IF NOT EXISTS (
        SELECT FROM pg_dist_placement WHERE shardid = shard AND groupid = (SELECT groupid FROM pg_dist_local_group)
    ) THEN
        RAISE EXCEPTION 'the org has been moved to another node' USING ERRCODE = 'serialization_failure';
    END IF;
    FOR step IN SELECT * FROM json_array_elements(steps::json) LOOP
        call := (step ->> 0) || '_' || shard;
        types := nullif(current_setting('refdesk.' || call, true), '');
        IF types IS NULL THEN
            -- What was prepared in a transaction that was undone is still there.
            SELECT coalesce(to_json(result_types::oid[]), '[]') INTO types FROM pg_prepared_statements WHERE name = call;
            statement := step ->> 1;
            IF types IS NULL AND statement IS NULL THEN
                RETURN NULL;
            ELSIF types IS NULL THEN
                FOR place IN
                    SELECT relname, CASE partmethod
                        WHEN 'h' THEN get_shard_id_for_distribution_column(logicalrelid, asked)
                        ELSE (SELECT shardid FROM pg_dist_shard s WHERE s.logicalrelid = p.logicalrelid)
                    END AS shardid
                    FROM pg_dist_partition p JOIN pg_class ON pg_class.oid = logicalrelid
                    WHERE relnamespace = current_schema()::regnamespace
                        AND (strpos(statement, '{{' || relname || '}}') > 0 OR strpos(statement, '{{#' || relname || '}}') > 0)
                LOOP
                    statement := replace(statement, '{{' || place.relname || '}}', place.relname || '_' || place.shardid);
                    statement := replace(statement, '{{#' || place.relname || '}}', place.shardid::text);
                END LOOP;
                EXECUTE 'PREPARE ' || call || ' AS ' || statement;
                SELECT coalesce(to_json(result_types::oid[]), '[]') INTO types FROM pg_prepared_statements WHERE name = call;
            END IF;
            PERFORM set_config('refdesk.' || call, types::text, false);
        END IF;
        rows := '{}';
        IF json_array_length(types) = 0 THEN
            EXECUTE 'EXECUTE ' || call || (step ->> 2);
        ELSE
            FOR found IN EXECUTE 'EXECUTE ' || call || (step ->> 2) LOOP
                rows := rows || found::text;
            END LOOP;
        END IF;
        answers := answers || json_build_array(types, rows);
    END LOOP;
    RETURN array_to_json(answers);
END
$$;
