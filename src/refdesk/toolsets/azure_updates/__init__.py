"""azure-updates: Microsoft's announcements of Azure service updates, searched, filtered and kept current."""

TOOLSET_NAME = "azure-updates"
DESCRIPTION = "Microsoft's announcements of Azure service updates: searched, filtered, kept current."
RECIPE = "Filter by tags, products and days rather than by words."
