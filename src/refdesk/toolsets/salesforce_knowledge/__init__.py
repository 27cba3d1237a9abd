"""salesforce-knowledge: the help desk's published articles, live from Salesforce; nothing of them is kept."""

TOOLSET_NAME = "salesforce-knowledge"
DESCRIPTION = "The help desk's published articles in Salesforce Knowledge, searched and read live."
