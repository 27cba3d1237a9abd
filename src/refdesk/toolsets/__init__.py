"""Toolsets: one folder of the same layout for each kind of knowledge."""
