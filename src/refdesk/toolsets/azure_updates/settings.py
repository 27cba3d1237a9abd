"""What can be set about azure-updates."""

from __future__ import annotations

from pydantic import BaseModel, Field

from refdesk.kit.settings import Hours, Url


class AzureUpdatesSettings(BaseModel):
    """Where the feed is, and how often it is read."""

    azure_updates_url: Url = Field(
        "https://www.microsoft.com/releasecommunications/api/v2/azure",
        description="Where the Azure release communications API is, as a URL.",
    )
    azure_updates_stale_hours: Hours = Field(
        6.0, description="After how many hours the updates are stale and a server start syncs them."
    )
    azure_updates_full_hours: Hours = Field(
        24.0, description="After how many hours a sync compares everything, not only what changed."
    )
