"""What can be set about skills; which language model learns them is set for all of refdesk."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr

from refdesk.kit.settings import MostKept


class SkillsSettings(BaseModel):
    """Where skills are kept, and how many."""

    skills_store: SecretStr | None = Field(
        None, description="Where skills are kept if not with everything else, as a URL like the store's."
    )

    skills_org_quota: MostKept = Field(
        100_000, description="How many skills an org may create; with 0 nobody can create any, `none` sets no limit."
    )
    skills_agent_quota: MostKept = Field(
        10_000, description="How many skills one agent may create; with 0 nobody can create any, `none` sets no limit."
    )
