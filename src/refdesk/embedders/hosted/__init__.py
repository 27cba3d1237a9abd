"""Embedding models behind an HTTP service: one module per service, one client for all."""
