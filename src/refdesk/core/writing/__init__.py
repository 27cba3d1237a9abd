"""Rules for every write, whatever is written: idempotency, quotas, sizes, supersession, audit, tombstones."""
