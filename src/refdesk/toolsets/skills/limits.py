"""How much a skill holds at most; what is more is left out, and said in the changes."""

MAX_CONDITIONS = 40
MAX_KEYWORDS = 80
MAX_STEPS = 60
MAX_NOTES = 40
"""Prerequisites, and edge cases, each."""
