"""What can be set about knowledge."""

from __future__ import annotations

from pydantic import BaseModel, Field

from refdesk.kit.settings import MostKept


class KnowledgeSettings(BaseModel):
    """How much may be stored."""

    knowledge_org_quota: MostKept = Field(
        1_000_000, description="How many entries an org may store; with 0 nobody can store any, `none` sets no limit."
    )
    knowledge_agent_quota: MostKept = Field(
        100_000, description="How many entries one agent may store; with 0 nobody can store any, `none` sets no limit."
    )
