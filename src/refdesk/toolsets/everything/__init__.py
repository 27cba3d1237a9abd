"""everything: one ranked search over all toolsets in play, with a line on each that tells whether it had its say."""

TOOLSET_NAME = "everything"
DESCRIPTION = "One search over all of the toolsets: start here when you do not know where an answer is."
