"""Rules for every write, whatever is written: idempotency, quotas, supersession."""
