"""What can be set about skills; which language model learns them is set for all of refdesk."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr

from refdesk.kit.settings import MostKept


class SkillsSettings(BaseModel):
    """Where skills are kept, how many, and how they are ranked."""

    skills_store: SecretStr | None = Field(
        None, description="Where skills are kept if not with everything else, as a URL like the store's."
    )

    skills_org_quota: MostKept = Field(
        100_000, description="How many skills an org may create; with 0 nobody can create any, `none` sets no limit."
    )
    skills_agent_quota: MostKept = Field(
        10_000, description="How many skills one agent may create; with 0 nobody can create any, `none` sets no limit."
    )
    skills_explore: bool = Field(
        False,
        description="Whether a search now and then ranks a skill with few reports above a proven one that fits as "
        "well, so that it gets tried (Thompson sampling).",
    )
