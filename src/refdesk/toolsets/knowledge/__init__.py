"""What agents wrote down: stored, searched, superseded, never lost."""

TOOLSET_NAME = "knowledge"
DESCRIPTION = "Knowledge that agents store, search and supersede."
