"""everything: federated search over all served toolsets, with the coverage of each."""

TOOLSET_NAME = "everything"
DESCRIPTION = "One search over all of the toolsets."
