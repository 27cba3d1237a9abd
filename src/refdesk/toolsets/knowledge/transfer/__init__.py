"""Imports and exports knowledge: one module per format, and the plan of an import. Only `files.py` touches files."""
