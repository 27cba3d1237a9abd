"""administration: erasing for good, the audit log, and keeping served data up to date."""

TOOLSET_NAME = "administration"
DESCRIPTION = "Erase for good, see who did what, and keep what is served current."
