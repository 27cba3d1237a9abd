"""Where the things that have a page of their own are shown."""

from __future__ import annotations

from urllib.parse import urlencode

READERS = {
    "azure-updates": ("search_azure_updates", "id"),
    "knowledge": ("get_knowledge", "id"),
    "skills": ("get_skill", "skill_id"),
}
"""The operation that reads a thing, and its argument for the id, by the toolset that keeps the thing."""


def find_address(toolset: str, id: str) -> str:
    """Return the address of a thing's page; empty if it has none."""
    operation, argument = READERS.get(toolset, ("", ""))
    return f"/console/read/{operation}?{urlencode({argument: id})}" if operation else ""
