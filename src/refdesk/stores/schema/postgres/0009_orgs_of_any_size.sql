-- A search is planned once for all orgs, as if each had the average of entries. Among many small orgs that is so few that
-- the planner would rather read all entries of an org than use the index of words, and so of a large one, too. So it is to
-- take an org to have all the entries there are. On a Citus cluster that is told to each shard, once it is there.
DO $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = 'entries'::regclass) THEN
            RETURN;
        END IF;
    END IF;
    ALTER TABLE entries ALTER COLUMN org SET (n_distinct = 1);
    ANALYZE entries;
END
$$;
