-- The audit log: for each org a chain, whose links are only ever added. `act` is JSON; `digest` covers the entry and, by
-- `previous`, every one before it.
CREATE TABLE audit (
    org TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    act TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (org, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN
    SELECT raise(ABORT, 'the audit log is only ever added to');
END;

CREATE TRIGGER audit_is_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT raise(ABORT, 'the audit log is only ever added to');
END;
