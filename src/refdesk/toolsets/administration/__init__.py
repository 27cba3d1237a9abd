"""administration: erasing for good, the record of who did what, and keeping what is served current."""

TOOLSET_NAME = "administration"
DESCRIPTION = "Erase for good, see who did what, and keep what is served current."
