"""knowledge: entries that agents store, search and supersede; nothing is ever lost."""

TOOLSET_NAME = "knowledge"
DESCRIPTION = "Knowledge that agents store, search and supersede."
RECIPE = "Search first; store what you learned; let what no longer holds be superseded."
