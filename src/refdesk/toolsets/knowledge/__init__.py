"""knowledge: entries that agents store, search and supersede; nothing is ever lost."""

TOOLSET_NAME = "knowledge"
READ_SCOPE = "knowledge:read"
DESCRIPTION = "What agents noted, up to now."
RECIPE = (
    "Find: search_knowledge → get_knowledge. Note: search_knowledge → store_knowledge. "
    "Correct: Note → supersede_knowledge. Take back: search_knowledge → withdraw_knowledge. "
    "Undo: search_knowledge(includeSuperseded) → restore_knowledge."
)
