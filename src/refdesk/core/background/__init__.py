"""Background work: embedding, syncing, and the leases that let one process at a time do it."""
