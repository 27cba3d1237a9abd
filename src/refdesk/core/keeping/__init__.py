"""Persistence shared by all engines: value encodings, row layouts, and migration from one engine to another."""
