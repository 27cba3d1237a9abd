"""`python -m refdesk.toolsets.skills`: serves this toolset alone, over stdio, or with `--http` or `--sse`."""

from __future__ import annotations

from refdesk.kit.launching import launch
from refdesk.toolsets.skills import TOOLSET_NAME

if __name__ == "__main__":
    launch(TOOLSET_NAME)
