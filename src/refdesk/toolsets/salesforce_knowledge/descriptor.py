"""The descriptor of salesforce-knowledge: all that code outside this folder sees of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.core.descriptors import Check, Live, Means, ToolsetDescriptor
from refdesk.toolsets.salesforce_knowledge import DESCRIPTION, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from refdesk.core.operations import Toolset
    from refdesk.toolsets.salesforce_knowledge.settings import SalesforceKnowledgeSettings

ADVICE = "To serve its articles, set REFDESK_SALESFORCE_INSTANCE_URL; see the how-to on connecting an org."


def _load(means: Means) -> Toolset:
    from refdesk.toolsets.salesforce_knowledge.operations import UNBOUND

    del means
    return UNBOUND


def _load_settings() -> type[SalesforceKnowledgeSettings]:
    from refdesk.toolsets.salesforce_knowledge.settings import SalesforceKnowledgeSettings

    return SalesforceKnowledgeSettings


def _is_configured(settings: SalesforceKnowledgeSettings) -> bool:
    return settings.salesforce_instance_url is not None or settings.salesforce_orgs is not None


@asynccontextmanager
async def _connect(settings: SalesforceKnowledgeSettings) -> AsyncGenerator[Live]:
    from refdesk.toolsets.salesforce_knowledge.operations import make_toolset
    from refdesk.toolsets.salesforce_knowledge.orgs import open_orgs
    from refdesk.toolsets.salesforce_knowledge.settings import list_orgs

    async with open_orgs(list_orgs(settings)) as source:
        yield Live(make_toolset(source), lambda: source.problem)


async def _check(settings: SalesforceKnowledgeSettings) -> Sequence[Check]:
    from refdesk.toolsets.salesforce_knowledge.check import check_connection
    from refdesk.toolsets.salesforce_knowledge.settings import list_orgs

    if not _is_configured(settings):
        return [Check("salesforce", "ok", "not configured: no help desk is served", ADVICE)]
    orgs = list_orgs(settings)
    found = {name: await check_connection(org) for name, org in orgs.items()}
    return [
        check if len(orgs) == 1 else replace(check, name=f"{check.name} of {name}")
        for name, checks in found.items()
        for check in checks
    ]


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    load=_load,
    scopes={"articles:read": "search and read help-desk articles"},
    load_settings=_load_settings,
    is_configured=_is_configured,
    connect=_connect,
    check=_check,
)
