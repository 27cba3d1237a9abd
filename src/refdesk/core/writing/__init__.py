"""Writing: what every write must hold to, whatever is written: idempotency, quotas, supersession."""
