"""Says why a skill is not there, as far as the caller may know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import NotFoundError
from refdesk.kit.unknown_ids import Naming
from refdesk.model import Collection
from refdesk.toolsets.skills import TOOLSET_NAME

if TYPE_CHECKING:
    from refdesk.protocols import Reader


NAMING = Naming(lambda org: Collection(org, TOOLSET_NAME), "skills:read")


async def explain(reader: Reader, org: str, skill_id: str) -> NotFoundError:
    """Return the error for an id that no skill has; if that skill was merged into another one, it names that one."""
    from refdesk.toolsets.skills import records  # not at the start

    [document] = await reader.get_documents(records.get_collection(org), [skill_id])
    into = document.data.get(records.MERGED_INTO) if document is not None else None
    if into is not None:
        return NotFoundError(f"The skill {skill_id} was merged into {into}: use that one.")
    return NotFoundError(
        f"There is no skill {skill_id}. Use an id that search_skills or create_skill returned.", unknown=skill_id
    )
