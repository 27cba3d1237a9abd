"""salesforce-knowledge: the help desk's published articles, live from Salesforce; nothing of them is kept."""

from refdesk.toolsets.salesforce_knowledge.operations import TOOLSET, make_toolset

__all__ = ["TOOLSET", "make_toolset"]
