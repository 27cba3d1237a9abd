"""watches: tells agents the news about what they asked to watch."""

TOOLSET_NAME = "watches"
DESCRIPTION = "What is new of what you asked to be told of."
