"""The invented feed of cloud announcements, and an emulator of the API that such a feed comes from."""

from __future__ import annotations

from sample_world.azure_updates.world import Record, load_world

__all__ = ["Record", "load_world"]
