"""skills: playbooks learned from conversations, searched, refined, and rated by their outcomes."""

TOOLSET_NAME = "skills"
DESCRIPTION = "Playbooks learned from support conversations."
