"""Toolsets: folders that look alike, one for each kind of knowledge."""
