"""skills, as everything outside its folder knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.descriptors import Means, ToolsetDescriptor
from refdesk.toolsets.skills import DESCRIPTION, RECIPE, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Toolset
    from refdesk.core.writing.quotas import Quota
    from refdesk.toolsets.skills.settings import SkillsSettings


def _load(means: Means) -> Toolset:
    from random import Random

    from refdesk.core.operations import FLAT, Toolset
    from refdesk.toolsets.skills.operations import make_operations
    from refdesk.toolsets.skills.prompts import PROMPTS
    from refdesk.toolsets.skills.provider import PROVIDER
    from refdesk.toolsets.skills.resources import TEMPLATES

    random = Random() if means.settings is not None and means.settings.skills_explore else None
    operations = make_operations(means.choose_language_model(), random)
    return Toolset(
        TOOLSET_NAME,
        DESCRIPTION,
        operations,
        templates=TEMPLATES,
        error_format=FLAT,
        provider=PROVIDER,
        recipe=RECIPE,
        prompts=PROMPTS,
    )


def _load_settings() -> type[SkillsSettings]:
    from refdesk.toolsets.skills.settings import SkillsSettings

    return SkillsSettings


def _list_quotas(settings: SkillsSettings) -> Sequence[Quota]:
    from refdesk.core.writing.quotas import Quota
    from refdesk.toolsets.skills.queries import QUOTA_NAME

    return [Quota(QUOTA_NAME, settings.skills_org_quota, settings.skills_agent_quota)]


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    load=_load,
    scopes={
        "skills:read": "search and read playbooks",
        "skills:write": "learn, refine and judge playbooks",
    },
    load_settings=_load_settings,
    record_prefix="skill_",
    relies=True,
    own_store="skills_store",
    list_quotas=_list_quotas,
)
