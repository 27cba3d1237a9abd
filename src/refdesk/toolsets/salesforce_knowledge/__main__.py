"""`python -m refdesk.toolsets.salesforce_knowledge`: serves this toolset alone; stdio unless `--http` or `--sse`."""

from __future__ import annotations

from refdesk.kit.launching import launch
from refdesk.toolsets.salesforce_knowledge import TOOLSET_NAME

if __name__ == "__main__":
    launch(TOOLSET_NAME)
