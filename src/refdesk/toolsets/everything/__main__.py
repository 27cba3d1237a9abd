"""`python -m refdesk.toolsets.everything`: serves all configured toolsets, over stdio, or with `--http` or `--sse`."""

from __future__ import annotations

from refdesk.kit.launching import launch

if __name__ == "__main__":
    launch(None)
