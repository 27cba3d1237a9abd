"""salesforce-knowledge: the help desk's published articles, read live from Salesforce and never stored."""

TOOLSET_NAME = "salesforce-knowledge"
DESCRIPTION = "The help desk's published articles, read live from Salesforce."
