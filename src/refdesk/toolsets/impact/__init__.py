"""impact: what announcements mean for what is written here."""

TOOLSET_NAME = "impact"
DESCRIPTION = "What announcements make wrong of what is written here."
SCOPES = frozenset(("updates:read",))
"""The scopes for reading announcements. An impact is shown only to callers who may also read what relies on them."""
