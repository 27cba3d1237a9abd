"""Which toolsets there are and which of them the settings bring into play, and what keeps each of them current."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from refdesk import errors

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from refdesk.core.background.syncing import Syncer
    from refdesk.core.operations import Toolset
    from refdesk.protocols import Store
    from refdesk.settings import Settings
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings

SKILLS = "skills"
TOOLSET_NAMES = ("azure-updates", "knowledge", SKILLS, "salesforce-knowledge")
EVERYTHING = "everything"
"""The search over all of them: it comes by itself where several are in play, and has no documents of its own."""


def load_toolsets(names: Sequence[str] = (), settings: Settings | None = None) -> tuple[Toolset, ...]:
    """Return the toolsets of these names, in the order of the table; without a name, all that are configured.

    Args:
        names: Which ones.
        settings: They choose what skills are learned with, and whether there is a help desk; without them, rules learn
            and every toolset counts as configured.

    Raises:
        ConfigurationError: There is no toolset of such a name, or what the settings choose lacks one.
        MissingDependencyError: What the settings choose needs an extra that is not installed.
    """
    unknown = sorted(set(names) - set(TOOLSET_NAMES))
    if unknown:
        raise errors.ConfigurationError(f"There is no toolset {unknown[0]}; there are {', '.join(TOOLSET_NAMES)}.")
    is_connected = settings is None or settings.salesforce_instance_url is not None
    configured = [name for name in TOOLSET_NAMES if is_connected or name != "salesforce-knowledge"]
    return tuple(_load_toolset(name, settings) for name in TOOLSET_NAMES if name in (names or configured))


def _load_toolset(name: str, settings: Settings | None) -> Toolset:
    match name:
        case "azure-updates":
            from refdesk.toolsets import azure_updates

            return azure_updates.TOOLSET
        case "knowledge":
            from refdesk.toolsets import knowledge

            return knowledge.TOOLSET
        case "skills":
            return _load_skills(settings)
        case "salesforce-knowledge":
            from refdesk.toolsets import salesforce_knowledge

            return salesforce_knowledge.TOOLSET
        case _:
            raise errors.ConfigurationError(f"There is no toolset {name}.")


def _load_skills(settings: Settings | None) -> Toolset:
    from refdesk.factories.language_models import choose_language_model
    from refdesk.language_models.rules import RulesModel
    from refdesk.toolsets.skills import make_toolset

    return make_toolset(choose_language_model(settings) if settings is not None else RulesModel())


def describe_toolsets() -> tuple[Toolset, ...]:
    """Return every toolset as it is described, the search over all of them included; none is bound to a live source."""
    from refdesk.toolsets.everything import describe

    toolsets = load_toolsets()
    return (*toolsets, describe(toolsets))


def join_toolsets(toolsets: Sequence[Toolset], group: TaskGroup) -> tuple[Toolset, ...]:
    """Return the toolsets, and behind them the search over all of them where several can be searched.

    Args:
        toolsets: Bound to what they need.
        group: Outlives the toolsets' use; in it ends what was asked and is too slow.
    """
    if sum(toolset.provider is not None for toolset in toolsets) < 2:
        return tuple(toolsets)
    from refdesk.toolsets.everything import make_toolset

    return (*toolsets, make_toolset(toolsets, group))


@asynccontextmanager
async def connect_live(
    settings: Settings, toolsets: Sequence[Toolset]
) -> AsyncGenerator[tuple[tuple[Toolset, ...], dict[str, Callable[[], str | None]]]]:
    """Yield the toolsets, those that are asked live bound to their sources, and what tells of each such source."""
    name = "salesforce-knowledge"
    if settings.salesforce_instance_url is None or name not in [toolset.name for toolset in toolsets]:
        yield tuple(toolsets), {}
        return
    from refdesk.toolsets.salesforce_knowledge import make_toolset
    from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource

    async with SalesforceSource(to_salesforce(settings)) as source:
        bound = make_toolset(source)
        yield tuple(bound if toolset.name == name else toolset for toolset in toolsets), {name: lambda: source.problem}


def to_salesforce(settings: Settings) -> SalesforceSettings:
    """Return how the Salesforce org is reached.

    Raises:
        ConfigurationError: A setting is missing or malformed.
    """
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings

    secret, token = settings.salesforce_client_secret, settings.salesforce_access_token
    return SalesforceSettings(
        instance_url=settings.salesforce_instance_url or "",
        client_id=settings.salesforce_client_id,
        client_secret=secret.get_secret_value() if secret else None,
        username=settings.salesforce_username,
        private_key_file=settings.salesforce_private_key_file,
        access_token=token.get_secret_value() if token else None,
        body_fields=settings.salesforce_body_fields,
        api_version=settings.salesforce_api_version,
        timeout_seconds=settings.salesforce_timeout_seconds,
    )


def get_stale_after(settings: Settings, name: str) -> timedelta | None:
    """Return for how long a toolset counts as current after a sync, or `None` when it has no source."""
    return timedelta(hours=settings.azure_updates_stale_hours) if name == "azure-updates" else None


def choose_syncer(settings: Settings, name: str, store: Store) -> Syncer:
    """Return what brings a toolset up to date with its source.

    Raises:
        InvalidInputError: It has no source.
    """
    stale_after = get_stale_after(settings, name)
    if stale_after is None:
        raise errors.InvalidInputError(f"{name} has no source to be synced with.")
    from refdesk.core.background.syncing import Syncer
    from refdesk.core.clock import SystemClock
    from refdesk.toolsets.azure_updates.models import COLLECTION
    from refdesk.toolsets.azure_updates.records import to_document
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource

    return Syncer(
        store,
        AzureUpdatesSource(settings.azure_updates_url),
        COLLECTION,
        to_document,
        SystemClock(),
        stale_after=stale_after,
        full_after=timedelta(hours=settings.azure_updates_full_hours),
    )
