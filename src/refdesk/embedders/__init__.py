"""Embedding models: one module or folder for each kind, behind one port."""
