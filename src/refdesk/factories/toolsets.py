"""Which of the toolsets the settings bring into play, and what keeps each of them current."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.core.descriptors import FEED_MARK, Means
from refdesk.core.operations import Toolset
from refdesk.discovery import discover, find_descriptor, find_descriptors

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

    from anyio.abc import TaskGroup

    from refdesk.core.background.syncing import Syncer
    from refdesk.core.descriptors import Live, Sync, ToolsetDescriptor
    from refdesk.core.keeping.migrating import Part
    from refdesk.core.writing.quotas import Quota
    from refdesk.playbooks import Inducer
    from refdesk.protocols import Store
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)


def list_names() -> tuple[str, ...]:
    """Return the names of all toolsets except those that only ask others, in the order of the table."""
    return tuple(descriptor.name for descriptor in find_descriptors() if descriptor.load is not None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Toolsets in the order of the table, and, by package, why its toolset is left out."""

    toolsets: tuple[Toolset, ...]
    problems: Mapping[str, str]


def load_toolsets(names: Sequence[str] = (), settings: Settings | None = None) -> tuple[Toolset, ...]:
    """Return the toolsets of these names, in the order of the table; without names, all that are configured.

    A package's toolset that cannot be served is left out, and the log says why; so does `refdesk doctor`.

    Args:
        names: Which ones.
        settings: They choose what skills are learned with, and which toolsets are configured; without them, rules learn
            and every toolset counts as configured.

    Raises:
        InvalidInputError: There is no toolset of such a name.
        ConfigurationError: What the settings choose lacks a setting, or a named toolset of a package cannot be served.
        MissingDependencyError: What the settings choose needs an extra that is not installed.
    """
    known = list_names()
    if unknown := sorted(set(names) - set(known)):
        broken = "".join(f" {_tell(*problem)}" for problem in discover().problems.items())
        from refdesk.kit.nearest import find_nearest  # seldom

        near = find_nearest(unknown[0], known)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise errors.InvalidInputError(
            f"There is no toolset {unknown[0]}; there are {', '.join(known)}.{meant}{broken}"
        )
    loaded = load_what_can_be(names, settings)
    served = {toolset.name for toolset in loaded.toolsets}
    for package, reason in loaded.problems.items():
        if any(discover().packages.get(name) == package for name in set(names) - served):
            raise errors.ConfigurationError(_tell(package, reason))
        logger.warning("The toolset of the package %s is left out: %s.", package, reason)
    return loaded.toolsets


def load_what_can_be(names: Sequence[str] = (), settings: Settings | None = None) -> Loaded:
    """Return the toolsets that can be served, and why the others cannot; arguments and errors as in `load_toolsets`."""
    means = Means(partial(_choose_language_model, settings), settings)
    chosen = [each for each in find_descriptors() if (each.name in names if names else _is_configured(each, settings))]
    toolsets, problems = list[Toolset](), dict(discover().problems)
    for descriptor in sorted(chosen, key=lambda each: each.name in discover().packages):
        package = discover().packages.get(descriptor.name)
        if descriptor.load is not None and package is None:
            toolsets.append(descriptor.load(means))
        elif descriptor.load is not None and package is not None:
            _add_foreign(toolsets, problems, package, partial(descriptor.load, means))
    return Loaded(tuple(toolsets), problems)


def _add_foreign(toolsets: list[Toolset], problems: dict[str, str], package: str, load: Callable[[], Toolset]) -> None:
    """Load the toolset of a package, or note why it cannot be served beside the others."""
    try:
        toolset = load()
    except Exception as error:
        problems[package] = f"it cannot be loaded: {type(error).__name__}: {error}"
        return
    if taken := sorted(_list_places(toolset) & {place for other in toolsets for place in _list_places(other)}):
        problems[package] = f"{taken[0]} is another toolset's"
    else:
        toolsets.append(toolset)


def _list_places(toolset: Toolset) -> set[str]:
    """Return what no two toolsets may share: names of tools, addresses of resources, routes."""
    entries = [*toolset.operations, *toolset.resources]
    routes = {f"{entry.route.method} {entry.route.path}" for entry in entries}
    uris = {each.uri for each in (*toolset.resources, *toolset.templates)}
    return {entry.name for entry in entries} | uris | routes


def _tell(package: str, reason: str) -> str:
    return f"The package {package} brings a toolset that is left out: {reason}."


def _is_configured(descriptor: ToolsetDescriptor, settings: Settings | None) -> bool:
    return settings is None or descriptor.is_configured(settings)


def _choose_language_model(settings: Settings | None) -> Inducer:
    from refdesk.factories.language_models import choose_language_model
    from refdesk.language_models.rules import RulesModel

    return choose_language_model(settings) if settings is not None else RulesModel()


def describe_toolsets() -> tuple[Toolset, ...]:
    """Return every toolset, including those that ask others, to be described; none is bound to a live source."""
    toolsets = load_toolsets()
    return (*toolsets, *_join(toolsets, None))


def join_toolsets(toolsets: Sequence[Toolset], group: TaskGroup | None) -> tuple[Toolset, ...]:
    """Return the toolsets, followed by those that ask all of them, such as the search, if several can be searched.

    Args:
        toolsets: Bound to what they need.
        group: Outlives the toolsets' use; questions that are too slow run to their end in it. `None` if none are asked.
    """
    if sum(toolset.provider is not None for toolset in toolsets) < 2:
        return tuple(toolsets)
    return (*toolsets, *_join(toolsets, group))


def _join(toolsets: Sequence[Toolset], group: TaskGroup | None) -> list[Toolset]:
    return [each.join(toolsets, list_names(), group) for each in find_descriptors() if each.join is not None]


def has_documents(name: str) -> bool:
    """Return whether a toolset has documents of its own, rather than only asking others."""
    descriptor = find_descriptor(name)
    return descriptor is None or descriptor.join is None


@asynccontextmanager
async def connect_live(
    settings: Settings, toolsets: Sequence[Toolset]
) -> AsyncGenerator[tuple[tuple[Toolset, ...], dict[str, Callable[[], str | None]]]]:
    """Yield the toolsets, those that are asked live bound to their sources, and what reports on each such source."""
    live: dict[str, Live] = {}
    async with AsyncExitStack() as stack:
        for toolset in toolsets:
            descriptor = find_descriptor(toolset.name)
            if descriptor is not None and descriptor.connect is not None and descriptor.is_configured(settings):
                live[toolset.name] = await stack.enter_async_context(descriptor.connect(settings))
        bound = tuple(live[each.name].toolset if each.name in live else each for each in toolsets)
        yield bound, {name: each.get_problem for name, each in live.items()}


def get_toolset(source: str) -> str:
    """Return the name of the toolset that has a source of this name."""
    return source.partition(FEED_MARK)[0]


def list_sources(settings: Settings, toolset: str) -> list[str]:
    """Return the names of a toolset's sources: its own name, followed by those of the feeds that settings add."""
    descriptor = find_descriptor(toolset)
    if descriptor is None or descriptor.sync is None:
        return []
    return [toolset, *(f"{toolset}{FEED_MARK}{feed}" for feed in _list_feeds(descriptor, settings))]


def _list_feeds(descriptor: ToolsetDescriptor, settings: Settings) -> Mapping[str, Sync]:
    return descriptor.list_feeds(settings) if descriptor.list_feeds is not None else {}


def _find_sync(settings: Settings, source: str) -> Sync | None:
    descriptor, (_, _, feed) = find_descriptor(get_toolset(source)), source.partition(FEED_MARK)
    if descriptor is None:
        return None
    return _list_feeds(descriptor, settings).get(feed) if feed else descriptor.sync


def get_stale_after(settings: Settings, name: str) -> timedelta | None:
    """Return how long a source counts as current after a sync, or `None` if there is no source of this name."""
    sync = _find_sync(settings, name)
    return sync.stale_after(settings) if sync is not None else None


def choose_syncer(settings: Settings, name: str, store: Store) -> Syncer:
    """Return what brings a toolset up to date with its source of this name; see `list_sources`.

    Raises:
        InvalidInputError: There is no such source.
        ConfigurationError: The settings name no source that could be read.
    """
    sync, toolset = _find_sync(settings, name), get_toolset(name)
    descriptor = find_descriptor(toolset)
    if descriptor is None or sync is None:
        raise errors.InvalidInputError(f"{name} has no source to be synced with.")
    from refdesk.core.background.syncing import Syncer
    from refdesk.core.clock import SystemClock
    from refdesk.core.writing import audit
    from refdesk.model import SHARED_ORG, Collection

    get_version = sync.get_converter_version
    others = tuple(each.id_prefix for each in _list_feeds(descriptor, settings).values())
    return Syncer(
        audit.watch(store, SystemClock(), audit.SERVER, f"sync {name}", documents_only=True),
        sync.open_source(settings),
        Collection(SHARED_ORG, toolset),
        sync.load_converter(),
        SystemClock(),
        stale_after=sync.stale_after(settings),
        full_after=sync.full_after(settings),
        converter_version=get_version() if get_version is not None else None,
        name=name,
        owns=_tell_owner(sync.id_prefix, others),
    )


def _tell_owner(prefix: str, others: tuple[str, ...]) -> Callable[[str], bool] | None:
    """Return what says whether an id belongs to the source with this prefix; `None` if there is no other source."""
    if prefix:
        return lambda id: id.startswith(prefix)
    return (lambda id: not id.startswith(others)) if others else None


def choose_own_stores(settings: Settings, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return, for each of these toolsets that is kept apart, the URL of its store and the variable that names it."""
    from refdesk.settings import variable

    found: dict[str, tuple[str, str]] = {}
    for descriptor in find_descriptors():
        if descriptor.own_store is None or descriptor.name not in names:
            continue
        url = getattr(settings, descriptor.own_store)
        if url is not None and url.get_secret_value() != settings.store_url:
            found[descriptor.name] = url.get_secret_value(), variable(descriptor.own_store)
    return found


@dataclass(frozen=True, slots=True)
class Move:
    """A part of a store that is to be migrated, and where to.

    Attributes:
        variable: The setting or option that names the target.
        toolset: The toolset whose part it is, if that goes to a store of its own.
    """

    url: str
    variable: str
    part: Part
    toolset: str | None = None


def plan_moves(
    settings: Settings, source: str, target: str, held: Collection[str], org: str | None = None
) -> list[Move]:
    """Return which part of a store goes where: a toolset's part goes to its own store, if the settings name one.

    Args:
        settings: They name those stores.
        source: The URL of the store that is migrated. A toolset whose own store this is goes along with the rest.
        target: The URL of the store for everything else. If it is a toolset's own store, only that toolset goes there,
            unless it is also the main store.
        held: The toolsets of which the source holds anything.
        org: The org that is moved alone; `None` for all.
    """
    from refdesk.core.keeping.migrating import EVERYTHING
    from refdesk.settings import variable

    moves, apart = list[Move](), list["ToolsetDescriptor"]()
    for descriptor in find_descriptors():
        url = getattr(settings, descriptor.own_store) if descriptor.own_store is not None else None
        place = url.get_secret_value() if url is not None and descriptor.name in held else source
        if place == source or (place == target == settings.store_url):
            continue
        apart.append(descriptor)
        part = _make_part(settings, [descriptor], is_rest=False)
        moves.append(Move(place, variable(str(descriptor.own_store)), part, descriptor.name))
    rest = _make_part(settings, apart, is_rest=True) if apart else EVERYTHING
    is_of_one = any(move.url == target for move in moves)
    planned = moves if is_of_one else [Move(target, "--to", rest), *moves]
    return planned if org is None else [replace(move, part=_narrow(move.part, org)) for move in planned]


def _narrow(part: Part, org: str) -> Part:
    """Return the part narrowed to one org."""
    from refdesk.gaps.records import STATE
    from refdesk.impact.records import IMPACT
    from refdesk.watching import moving
    from refdesk.watching.watches import WATCH

    worked_on = (IMPACT, STATE, WATCH)
    return replace(part, org=org, settle=moving.settle, finish=moving.note_arrival, worked_on=worked_on)


def _make_part(settings: Settings, descriptors: Sequence[ToolsetDescriptor], *, is_rest: bool) -> Part:
    from refdesk.core.keeping.migrating import Part

    quotas = [quota.name for each in descriptors if each.list_quotas for quota in each.list_quotas(settings)]
    prefixes = tuple(each.record_prefix for each in descriptors if each.record_prefix is not None)
    return Part(frozenset(each.name for each in descriptors), prefixes, frozenset(quotas), is_rest)


def list_quotas(settings: Settings) -> dict[str, Quota]:
    """Return how much may be kept, by the quotas' names."""
    listed = [quota for each in find_descriptors() if each.list_quotas for quota in each.list_quotas(settings)]
    return {quota.name: quota for quota in listed}


def choose_options(settings: Settings) -> dict[str, object]:
    """Return how toolsets are to behave according to the settings, by toolset."""
    return {each.name: each.choose_options(settings) for each in find_descriptors() if each.choose_options}
