"""The settings of azure-updates."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_settings import NoDecode

from refdesk.kit.settings import Hours, Url, split_names

Feed: TypeAlias = Literal["azure", "m365"]


def _require_azure(feeds: tuple[Feed, ...]) -> tuple[Feed, ...]:
    if "azure" not in feeds:
        raise ValueError("azure is always among the feeds")
    return tuple(dict.fromkeys(feeds))


Feeds: TypeAlias = Annotated[tuple[Feed, ...], NoDecode, BeforeValidator(split_names), AfterValidator(_require_azure)]
"""Names of feeds, separated by commas, each once."""


class AzureUpdatesSettings(BaseModel):
    """Where the feed is, and how often it is read."""

    azure_updates_url: Url = Field(
        "https://www.microsoft.com/releasecommunications/api/v2/azure",
        description="Where the Azure release communications API is, as a URL.",
    )
    azure_updates_feeds: Feeds = Field(
        ("azure",),
        description="Which feeds are read, separated by commas: `azure`, and with `azure,m365` the Microsoft 365 "
        "roadmap, too.",
    )
    azure_updates_m365_url: Url = Field(
        "https://www.microsoft.com/releasecommunications/api/v2/m365",
        description="Where the API of the Microsoft 365 roadmap is, as a URL.",
    )
    azure_updates_stale_hours: Hours = Field(
        6.0,
        description="After how many hours the updates are stale: a server syncs them, and answers say how old they "
        "are, as they do after 48 hours in any case.",
    )
    azure_updates_full_hours: Hours = Field(
        24.0, description="After how many hours a sync compares everything, not only what changed."
    )
