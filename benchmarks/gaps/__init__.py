"""Whether the gap list has the questions without an answer, and no others, each with its like."""
