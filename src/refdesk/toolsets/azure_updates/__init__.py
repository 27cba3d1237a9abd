"""azure-updates: Microsoft's announcements of Azure service updates, searched, filtered and kept current."""

TOOLSET_NAME = "azure-updates"
DESCRIPTION = "Microsoft's announcements of Azure service updates, kept current."
RECIPE = "Survey: search_azure_updates(detail: concise). Read: search_azure_updates(limit: 3)."
