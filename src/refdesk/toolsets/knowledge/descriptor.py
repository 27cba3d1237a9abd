"""The descriptor of knowledge: all that code outside this folder sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from refdesk.core.descriptors import Exported, Exporter, Means, ToolsetDescriptor
from refdesk.toolsets.knowledge import DESCRIPTION, READ_SCOPE, RECIPE, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.context import Context
    from refdesk.core.descriptors import ExportRequest
    from refdesk.core.operations import Rest, Toolset
    from refdesk.core.search.providers import LeftOut, ProviderAnswer, Question
    from refdesk.core.writing.quotas import Quota
    from refdesk.toolsets.knowledge.settings import KnowledgeSettings
    from refdesk.toolsets.knowledge.transfer.reports import ExportFormat


def _load(means: Means) -> Toolset:
    from refdesk.core.operations import Toolset
    from refdesk.core.search.providers import SearchProvider
    from refdesk.toolsets.knowledge.operations import LISTED, SEARCH_KNOWLEDGE
    from refdesk.toolsets.knowledge.prompts import PROMPTS
    from refdesk.toolsets.knowledge.resources import TEMPLATES

    del means
    return Toolset(
        TOOLSET_NAME,
        DESCRIPTION,
        LISTED,
        _load_rest,
        templates=TEMPLATES,
        provider=SearchProvider(SEARCH_KNOWLEDGE.name, frozenset({READ_SCOPE}), _find),
        recipe=RECIPE,
        prompts=PROMPTS,
    )


async def _find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    # The search code is loaded at the first search: every server offers it, but fewer than half are ever asked.
    from refdesk.toolsets.knowledge.provider import FIND

    return await FIND(context, question)


def _load_rest() -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.knowledge.disputes import LIST_CASES, SETTLE_CASE
    from refdesk.toolsets.knowledge.editing import EDIT_KNOWLEDGE
    from refdesk.toolsets.knowledge.importing import IMPORT_KNOWLEDGE
    from refdesk.toolsets.knowledge.listing import LIST_AUTHORS, LIST_KNOWLEDGE, LIST_TAGS

    lists = LIST_KNOWLEDGE, LIST_TAGS, LIST_AUTHORS
    return Rest((*lists, LIST_CASES, SETTLE_CASE, EDIT_KNOWLEDGE, IMPORT_KNOWLEDGE))


def _load_settings() -> type[KnowledgeSettings]:
    from refdesk.toolsets.knowledge.settings import KnowledgeSettings

    return KnowledgeSettings


def _list_quotas(settings: KnowledgeSettings) -> Sequence[Quota]:
    from refdesk.core.writing.quotas import Quota
    from refdesk.toolsets.knowledge.keeping import QUOTA_NAME

    return [Quota(QUOTA_NAME, settings.knowledge_org_quota, settings.knowledge_agent_quota)]


def _choose_options(settings: KnowledgeSettings) -> object:
    from refdesk.toolsets.knowledge.options import Options

    return Options(protects_authors=settings.supersede == "own", fusion=settings.knowledge_fusion)


async def _export(request: ExportRequest) -> Exported:
    from refdesk.toolsets.knowledge.transfer.files import export_entries
    from refdesk.toolsets.knowledge.transfer.reports import tell_exported

    context, form = request.context, cast("ExportFormat", request.form)
    report = await export_entries(
        context.knowledge_base, context.principal.org, request.target, form, request.on_progress
    )
    return Exported(tell_exported(report, request.place), not report.problems)


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    load=_load,
    scopes={
        "knowledge:read": "search and read what agents of the org wrote",
        "knowledge:write": "store entries, and supersede by or of one's own",
        "knowledge:write_others": "supersede, withdraw and restore entries that others wrote",
        "knowledge:supersede_own": "narrows: supersede only entries of one's own, whatever the server allows",
    },
    load_settings=_load_settings,
    list_quotas=_list_quotas,
    choose_options=_choose_options,
    relies=True,
    disputes=True,
    exporter=Exporter(formats=("jsonl", "markdown"), export=_export),
)
