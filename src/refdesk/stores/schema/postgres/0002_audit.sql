-- The audit log: for each org a chain, whose links are only ever added. `digest` covers the entry and, by `previous`,
-- every one before it.
CREATE TABLE audit (
    org text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    act json NOT NULL,
    previous text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, number)
);

CREATE FUNCTION refdesk_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END
$$;

CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION refdesk_audit_stays();

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY one_org ON audit USING (
    org = (SELECT current_setting('refdesk.org', true))
    OR (SELECT current_setting('refdesk.all_orgs', true)) = 'on'
);
