"""skills: playbooks learned from conversations, searched, refined, and rated by their outcomes."""

TOOLSET_NAME = "skills"
DESCRIPTION = "Playbooks learned from support conversations."
RECIPE = "Follow what fits a customer's problem, then report_outcome; create_skill from what was new."
