"""administration: erasing for good, and reading and checking the record of who did what, for whoever may."""

TOOLSET_NAME = "administration"
DESCRIPTION = "Erase for good, and see who did what."
