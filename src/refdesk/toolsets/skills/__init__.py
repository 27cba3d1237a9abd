"""skills: playbooks learned from conversations, searched, refined, and rated by their outcomes."""

TOOLSET_NAME = "skills"
DESCRIPTION = "Playbooks learned from support conversations."
RECIPE = (
    "Help: search_skills(detail: concise) → report_outcome. Learn: create_skill. "
    "Refine: search_skills(detail: concise) → update_skill. Take back: withdraw_outcome."
)
