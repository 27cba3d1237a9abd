"""Hybrid search: retrieves candidates, ranks them, and fuses the results of several toolsets into one list."""
