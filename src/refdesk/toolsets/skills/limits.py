"""How much a skill holds at most; what exceeds that is left out, and the changes say so."""

MAX_CONDITIONS = 40
MAX_KEYWORDS = 80
MAX_STEPS = 60
MAX_NOTES = 40
"""Most prerequisites, most edge cases, and most notes."""
