"""gaps: what was asked and nothing answers."""

TOOLSET_NAME = "gaps"
DESCRIPTION = "Questions that nothing here answers."
