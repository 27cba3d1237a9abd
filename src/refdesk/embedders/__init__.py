"""Embedding models: one module or folder each, behind one port."""
