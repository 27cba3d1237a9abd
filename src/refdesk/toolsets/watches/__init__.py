"""watches: tells agents what is new of what they asked to be told of."""

TOOLSET_NAME = "watches"
DESCRIPTION = "What is new of what you asked to be told of."
