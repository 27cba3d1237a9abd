"""Hosted embedding models: one module per service, one HTTP client for all."""
