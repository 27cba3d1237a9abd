"""azure-updates: Microsoft's announcements of Azure service updates, searched, filtered and kept current."""

from refdesk.toolsets.azure_updates.operations import TOOLSET

__all__ = ["TOOLSET"]
