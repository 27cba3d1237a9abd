"""azure-updates, as everything outside its folder knows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from refdesk.core.descriptors import Check, Exported, Exporter, Means, Sync, ToolsetDescriptor
from refdesk.toolsets.azure_updates import DESCRIPTION, RECIPE, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.core.background.records import ToDocument
    from refdesk.core.context import Context
    from refdesk.core.descriptors import ExportRequest
    from refdesk.core.operations import Rest, Toolset
    from refdesk.core.search.providers import LeftOut, ProviderAnswer, Question
    from refdesk.model import Document
    from refdesk.protocols import Source
    from refdesk.toolsets.azure_updates.settings import AzureUpdatesSettings

CHECK_SECONDS = 5.0


def _load(means: Means) -> Toolset:
    from refdesk.core.operations import Toolset
    from refdesk.core.search.providers import SearchProvider
    from refdesk.toolsets.azure_updates.operations import SCOPES, SEARCH_UPDATES
    from refdesk.toolsets.azure_updates.prompts import PROMPTS

    del means
    listed, provider = (SEARCH_UPDATES,), SearchProvider(SEARCH_UPDATES.name, SCOPES, _find)
    return Toolset(TOOLSET_NAME, DESCRIPTION, listed, _load_rest, provider=provider, recipe=RECIPE, prompts=PROMPTS)


async def _find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    # What searching takes is loaded when somebody searches: every server offers it, and not one in two is asked.
    from refdesk.toolsets.azure_updates.provider import FIND

    return await FIND(context, question)


def _load_rest() -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.azure_updates.changes import GET_HISTORY, LIST_CHANGES
    from refdesk.toolsets.azure_updates.resources import RESOURCES

    return Rest((LIST_CHANGES, GET_HISTORY), RESOURCES)


def _load_settings() -> type[AzureUpdatesSettings]:
    from refdesk.toolsets.azure_updates.settings import AzureUpdatesSettings

    return AzureUpdatesSettings


def _open_source(settings: AzureUpdatesSettings) -> Source:
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader

    return AzureUpdatesSource(make_reader(settings.azure_updates_url))


def _load_converter() -> ToDocument:
    from refdesk.toolsets.azure_updates.records import to_document

    return to_document


def _load_announcement() -> Callable[[Document], object]:
    from refdesk.toolsets.azure_updates.impact import to_announcement

    return to_announcement


def _get_converter_version() -> str:
    from refdesk.toolsets.azure_updates.records import get_converter_version

    return get_converter_version()


def _get_stale_after(settings: AzureUpdatesSettings) -> timedelta:
    return timedelta(hours=settings.azure_updates_stale_hours)


def _get_full_after(settings: AzureUpdatesSettings) -> timedelta:
    return timedelta(hours=settings.azure_updates_full_hours)


async def _check(settings: AzureUpdatesSettings) -> Sequence[Check]:
    import anyio

    from refdesk import errors
    from refdesk.core.clock import SystemClock
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader

    advice = "Search goes on with what is on file. Check the network, a proxy, or REFDESK_AZURE_UPDATES_URL."
    try:
        reader = replace(make_reader(settings.azure_updates_url), connect_seconds=CHECK_SECONDS)
        source = AzureUpdatesSource(reader, total_seconds=CHECK_SECONDS)
        with anyio.fail_after(CHECK_SECONDS):
            async for _ in source.read(SystemClock().now().isoformat()):
                break
    except errors.RefdeskError as error:
        return [Check("feed", "warn", error.message, advice)]
    except TimeoutError:
        return [Check("feed", "warn", f"no answer within {CHECK_SECONDS:g} seconds", advice)]
    return [Check("feed", "ok", f"{settings.azure_updates_url} answers")]


async def _export(request: ExportRequest) -> Exported:
    from refdesk.toolsets.azure_updates.export import Format, export_updates
    from refdesk.toolsets.azure_updates.models import SearchInput

    search = cast("SearchInput", request.search or SearchInput())
    count = await export_updates(request.context, search, cast("Format", request.form), request.target)
    return Exported(f"{count} updates written to {request.place}." if request.is_named else "")


TOOLSET = ToolsetDescriptor(
    name=TOOLSET_NAME,
    description=DESCRIPTION,
    load=_load,
    scopes={"updates:read": "search vendors' announcements"},
    load_settings=_load_settings,
    sync=Sync(
        open_source=_open_source,
        load_converter=_load_converter,
        get_converter_version=_get_converter_version,
        stale_after=_get_stale_after,
        full_after=_get_full_after,
    ),
    announces=_load_announcement,
    check=_check,
    exporter=Exporter(formats=("json", "csv", "md"), export=_export, takes_search=True),
)
