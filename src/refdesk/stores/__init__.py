"""Storage engines: one module or folder each, nothing shared but the port."""
