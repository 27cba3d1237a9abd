"""The settings of knowledge."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from refdesk.kit.settings import MostKept


class KnowledgeSettings(BaseModel):
    """How much may be stored, who may supersede, and how searches rank."""

    supersede: Literal["either", "own"] = Field(
        "either",
        description="Who may let one entry replace another: the author of `either`, or only of the old one (`own`); "
        "with the scope knowledge:write_others anybody.",
    )

    knowledge_fusion: Literal["rrf", "convex"] = Field(
        "rrf",
        description="How `search_knowledge` makes one ranking of several: by reciprocal ranks (`rrf`), or by a convex "
        "combination of the scores for words and meaning (`convex`), whose scores are absolute.",
    )
    knowledge_org_quota: MostKept = Field(
        1_000_000, description="How many entries an org may store; with 0 nobody can store any, `none` sets no limit."
    )
    knowledge_agent_quota: MostKept = Field(
        100_000, description="How many entries one agent may store; with 0 nobody can store any, `none` sets no limit."
    )
