"""everything: one ranked search over all toolsets in play, with a line on each that tells whether it had its say."""

from refdesk.toolsets.everything.operations import TOOLSET, describe, make_toolset

__all__ = ["TOOLSET", "describe", "make_toolset"]
