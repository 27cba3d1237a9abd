"""The settings of watches."""

from __future__ import annotations

from pydantic import BaseModel, Field, field_validator

from refdesk.kit.settings import MostKept, Names


class WatchesSettings(BaseModel):
    """How many watches there may be, and where webhooks may be."""

    watches_agent_quota: MostKept = Field(
        100, description="How many watches one agent may have; with 0 nobody can make any, `none` sets no limit."
    )
    webhook_private: Names = Field(
        (),
        description="Names, addresses and networks that webhooks may be at although they are private, also over plain "
        "HTTP; separated by commas. Default: none.",
    )

    @field_validator("webhook_private")
    @classmethod
    def _check(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value:
            from refdesk.watching.reaching import read_reach  # importing the HTTP client would slow every start

            try:
                read_reach(value)
            except ValueError:
                raise ValueError("must list names of hosts, addresses or networks such as 10.0.0.0/8") from None
        return value
