"""skills, as everything outside its folder knows it."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from refdesk.core.descriptors import Means, ToolsetDescriptor
from refdesk.toolsets.skills import DESCRIPTION, RECIPE, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.core.context import Context
    from refdesk.core.operations import Rest, Toolset
    from refdesk.core.search.providers import LeftOut, ProviderAnswer, Question
    from refdesk.core.writing.quotas import Quota
    from refdesk.playbooks import Inducer
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.settings import SkillsSettings


def _load(means: Means) -> Toolset:
    from random import Random

    from refdesk.core.operations import FLAT, Toolset
    from refdesk.core.search.providers import SearchProvider
    from refdesk.toolsets.skills.operations import READ_SCOPE, SEARCH, make_listed
    from refdesk.toolsets.skills.prompts import PROMPTS
    from refdesk.toolsets.skills.resources import TEMPLATES

    random = Random() if means.settings is not None and means.settings.skills_explore else None
    get_learner = cache(partial(_load_learner, means.choose_language_model()))
    return Toolset(
        TOOLSET_NAME,
        DESCRIPTION,
        make_listed(get_learner, random),
        partial(_load_rest, get_learner),
        templates=TEMPLATES,
        error_format=FLAT,
        provider=SearchProvider(SEARCH.name, frozenset({READ_SCOPE}), _find),
        recipe=RECIPE,
        prompts=PROMPTS,
    )


async def _find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    # What searching needs is loaded when somebody searches: every server offers it, and fewer than half are asked.
    from refdesk.toolsets.skills.provider import FIND

    return await FIND(context, question)


def _load_learner(language_model: Inducer) -> Learner:
    # What learning needs is loaded when somebody learns: a server that only answers starts without it.
    from refdesk.toolsets.skills.learning import Learner

    return Learner(language_model)


def _load_rest(get_learner: Callable[[], Learner]) -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.skills.exchange_operations import EXPORT, make_import
    from refdesk.toolsets.skills.history_operations import HISTORY, make_merge, make_split, make_unmerge
    from refdesk.toolsets.skills.listing import LIST
    from refdesk.toolsets.skills.version_operations import OUTCOMES, VERSION

    mending = make_merge(get_learner), make_unmerge(get_learner), make_split(get_learner)
    return Rest((LIST, HISTORY, VERSION, OUTCOMES, *mending, EXPORT, make_import(get_learner)))


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
