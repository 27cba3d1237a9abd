"""What can be set about skills; which language model learns them is set for all of refdesk."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr


class SkillsSettings(BaseModel):
    """Where skills are kept."""

    skills_store: SecretStr | None = Field(
        None, description="Where skills are kept if not with everything else, as a URL like the store's."
    )
