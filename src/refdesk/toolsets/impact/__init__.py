"""impact: what announcements mean for what is written here."""

TOOLSET_NAME = "impact"
DESCRIPTION = "What announcements make wrong of what is written here."
SCOPES = frozenset(("updates:read",))
"""Of the announcements; what relies on them is shown to who may read that, too."""
