"""`python -m refdesk.toolsets.watches`: serves all configured toolsets with it, as `everything` does."""

from __future__ import annotations

from refdesk.kit.launching import launch

if __name__ == "__main__":
    launch(None)
