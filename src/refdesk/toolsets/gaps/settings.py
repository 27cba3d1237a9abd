"""The settings of gaps."""

from __future__ import annotations

from pydantic import BaseModel, Field


class GapsSettings(BaseModel):
    """Whether questions without an answer are kept, how long and how many."""

    gaps: bool = Field(True, description="Whether questions that nothing answers are kept, masked.")
    gaps_days: int = Field(
        90, ge=1, le=3650, description="After so many days without being asked again a question is forgotten."
    )
    gaps_most: int = Field(
        500, ge=1, le=5000, description="How many gaps of an org are kept; of more, those asked longest ago go."
    )
