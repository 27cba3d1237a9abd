"""The descriptor of azure-updates: all that code outside this folder sees of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from refdesk.core.counts import say_count
from refdesk.core.descriptors import Check, Exported, Exporter, Means, Sync, ToolsetDescriptor
from refdesk.toolsets.azure_updates import DESCRIPTION, RECIPE, TOOLSET_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from refdesk.core.background.records import ToDocument
    from refdesk.core.context import Context
    from refdesk.core.descriptors import ExportRequest
    from refdesk.core.operations import Rest, Toolset
    from refdesk.core.search.providers import LeftOut, ProviderAnswer, Question
    from refdesk.model import Document
    from refdesk.sources import Source
    from refdesk.toolsets.azure_updates.settings import AzureUpdatesSettings

CHECK_SECONDS = 5.0
M365_VARIABLE = "REFDESK_AZURE_UPDATES_M365_URL"


def _load(means: Means) -> Toolset:
    from refdesk.core.operations import Toolset
    from refdesk.core.search.providers import SearchProvider
    from refdesk.toolsets.azure_updates.operations import SCOPES, SEARCH_UPDATES
    from refdesk.toolsets.azure_updates.prompts import PROMPTS

    listed, load_rest = (SEARCH_UPDATES,), _load_rest
    if means.settings is not None and _list_feeds(means.settings):
        from refdesk.toolsets.azure_updates.feed_operations import SEARCH_FEEDS

        listed, load_rest = (SEARCH_FEEDS,), _load_rest_of_feeds
    provider = SearchProvider(SEARCH_UPDATES.name, SCOPES, _find)
    return Toolset(TOOLSET_NAME, DESCRIPTION, listed, load_rest, provider=provider, recipe=RECIPE, prompts=PROMPTS)


async def _find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    # The search code is loaded at the first search: every server offers it, but fewer than half are ever asked.
    from refdesk.toolsets.azure_updates.provider import FIND

    return await FIND(context, question)


def _load_rest() -> Rest:
    from refdesk.core.operations import Rest
    from refdesk.toolsets.azure_updates.changes import GET_HISTORY, LIST_CHANGES
    from refdesk.toolsets.azure_updates.resources import RESOURCES

    return Rest((LIST_CHANGES, GET_HISTORY), RESOURCES)


def _load_rest_of_feeds() -> Rest:
    from refdesk.toolsets.azure_updates.feed_operations import choose_resources

    rest = _load_rest()
    return replace(rest, resources=choose_resources(rest.resources))


def _load_settings() -> type[AzureUpdatesSettings]:
    from refdesk.toolsets.azure_updates.settings import AzureUpdatesSettings

    return AzureUpdatesSettings


def _open_source(settings: AzureUpdatesSettings) -> Source:
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader

    return AzureUpdatesSource(make_reader(settings.azure_updates_url))


def _open_roadmap(settings: AzureUpdatesSettings) -> Source:
    from refdesk.toolsets.azure_updates.roadmap import name_item
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader

    return AzureUpdatesSource(make_reader(settings.azure_updates_m365_url, M365_VARIABLE), adapt=name_item)


def _load_roadmap_converter() -> ToDocument:
    from refdesk.toolsets.azure_updates.roadmap import to_document

    return to_document


def _get_roadmap_converter_version() -> str:
    from refdesk.toolsets.azure_updates.roadmap import get_converter_version

    return get_converter_version()


def _list_feeds(settings: AzureUpdatesSettings) -> Mapping[str, Sync]:
    return {name: sync for name, sync in FEEDS.items() if name in settings.azure_updates_feeds}


def _choose_options(settings: AzureUpdatesSettings) -> object:
    from refdesk.toolsets.azure_updates.options import Options

    return Options(settings.azure_updates_feeds, settings.azure_updates_stale_hours)


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
    from refdesk.toolsets.azure_updates.source import VARIABLE

    checks = [await _check_feed("feed", settings.azure_updates_url, VARIABLE)]
    if _list_feeds(settings):
        checks.append(await _check_feed("feed m365", settings.azure_updates_m365_url, M365_VARIABLE))
    return checks


async def _check_feed(name: str, url: str, variable: str) -> Check:
    import anyio

    from refdesk import errors
    from refdesk.core.clock import SystemClock
    from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader

    advice = f"Search goes on with what is on file. Check the network, a proxy, or {variable}."
    try:
        reader = replace(make_reader(url, variable), connect_seconds=CHECK_SECONDS)
        source = AzureUpdatesSource(reader, total_seconds=CHECK_SECONDS)
        with anyio.fail_after(CHECK_SECONDS):
            async for _ in source.read(SystemClock().now().isoformat()):
                break
    except errors.RefdeskError as error:
        return Check(name, "warn", error.message, advice)
    except TimeoutError:
        return Check(name, "warn", f"no answer within {CHECK_SECONDS:g} seconds", advice)
    return Check(name, "ok", f"{url} answers")


async def _export(request: ExportRequest) -> Exported:
    from refdesk.toolsets.azure_updates.export import Format, export_updates
    from refdesk.toolsets.azure_updates.models import SearchInput

    search = cast("SearchInput", request.search or SearchInput())
    count = await export_updates(request.context, search, cast("Format", request.form), request.target)
    return Exported(f"{say_count(count, 'update')} written to {request.place}." if request.is_named else "")


FEEDS = {
    "m365": Sync(
        open_source=_open_roadmap,
        load_converter=_load_roadmap_converter,
        get_converter_version=_get_roadmap_converter_version,
        stale_after=_get_stale_after,
        full_after=_get_full_after,
        id_prefix="m365-",
    )
}
"""The feeds besides Azure's."""

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
    list_feeds=_list_feeds,
    choose_options=_choose_options,
    announces=_load_announcement,
    check=_check,
    exporter=Exporter(formats=("json", "csv", "md"), export=_export, takes_search=True),
)
