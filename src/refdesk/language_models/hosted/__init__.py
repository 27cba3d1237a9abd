"""Hosted language models: prompts, validation of the output, and one module per service."""
