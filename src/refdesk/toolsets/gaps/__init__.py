"""gaps: questions that were asked and that nothing answers."""

TOOLSET_NAME = "gaps"
DESCRIPTION = "Questions that nothing here answers."
