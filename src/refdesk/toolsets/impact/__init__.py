"""impact: what announcements mean for what is written here."""

TOOLSET_NAME = "impact"
DESCRIPTION = "What announcements make wrong of what is written here."
