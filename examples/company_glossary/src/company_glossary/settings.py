"""What can be set about the glossary."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field


class GlossarySettings(BaseModel):
    """Where the words are."""

    company_glossary_file: Path | None = Field(
        None, description="A JSON object of words and their meanings; without it the glossary is not served."
    )
