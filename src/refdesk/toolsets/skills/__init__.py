"""skills: playbooks learned from conversations, found again, refined, and judged by their outcome."""

TOOLSET_NAME = "skills"
DESCRIPTION = "Playbooks learned from support conversations."
