"""Which toolsets there are: one for each folder in `toolsets/`, and those that installed packages bring.

A package brings one by an entry point in the group `refdesk.toolsets`, which names its `ToolsetDescriptor`. Only
descriptors are imported here, and refdesk's own import nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast

from refdesk import toolsets
from refdesk.core.descriptors import ToolsetDescriptor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "refdesk.toolsets"

ADMIN_SCOPE = "admin"
"""Must be granted explicitly: clients are not asked to request it, and nobody has it without a credential."""

SERVER_SCOPES: Mapping[str, str] = {
    "metrics:read": "read what the server counts of itself",
    ADMIN_SCOPE: "see the server's inner state, erase for good, read the audit log",
}
"""The scopes of the server itself, which belong to no toolset."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found.

    Attributes:
        descriptors: In the order of the table: refdesk's own by name, those that are asked live after the others; then
            those that packages bring, in the same order; last those that ask the others.
        packages: The package that brought a toolset, by toolset; without refdesk's own.
        problems: Why a package's toolset is left out, by package.
    """

    descriptors: tuple[ToolsetDescriptor, ...]
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def discover() -> Found:
    """Return what toolsets there are. One that is broken, or clashes with another, is left out and reported."""
    own = [_load_own(folder.name) for folder in iter_modules(toolsets.__path__) if folder.ispkg]
    return gather(own, sorted(entry_points(group=GROUP), key=lambda point: (_name_package(point), point.name)))


def gather(own: Iterable[ToolsetDescriptor], points: Iterable[EntryPoint]) -> Found:
    """Return refdesk's own toolsets and those of packages, except those that clash with earlier ones."""
    found, packages, problems = list(own), dict[str, str](), dict[str, str]()
    for point in points:
        package = _name_package(point)
        try:
            descriptor = _load_foreign(point)
            clash = _find_clash(descriptor, found)
        except Exception as error:
            problems[package] = f"its toolset {point.name} cannot be loaded: {type(error).__name__}: {error}"
            continue
        if clash:
            problems[package] = clash
        else:
            found.append(descriptor)
            packages[descriptor.name] = package
    order = sorted(found, key=lambda each: (each.join is not None, each.name in packages, _get_place(each)))
    return Found(tuple(order), packages, problems)


def find_descriptors() -> tuple[ToolsetDescriptor, ...]:
    """Return every toolset's descriptor, in the order of the table."""
    return discover().descriptors


def find_descriptor(name: str) -> ToolsetDescriptor | None:
    """Return a toolset's descriptor, or `None` if there is no toolset of this name."""
    return next((each for each in find_descriptors() if each.name == name), None)


def list_scopes() -> dict[str, str]:
    """Return every scope that a credential can have, each with what it allows."""
    return {scope: says for each in find_descriptors() for scope, says in each.scopes.items()} | dict(SERVER_SCOPES)


def _load_own(folder: str) -> ToolsetDescriptor:
    return cast("ToolsetDescriptor", import_module(f"{toolsets.__name__}.{folder}.descriptor").TOOLSET)


def _load_foreign(point: EntryPoint) -> ToolsetDescriptor:
    descriptor = point.load()
    if not isinstance(descriptor, ToolsetDescriptor):
        raise TypeError(f"{point.value} is no ToolsetDescriptor")
    return descriptor


def _name_package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(".")[0]


def _find_clash(descriptor: ToolsetDescriptor, others: Iterable[ToolsetDescriptor]) -> str:
    """Return in what way a toolset clashes with the others; empty if it does not."""
    taken = {scope for other in others for scope in other.scopes} | SERVER_SCOPES.keys()
    if not _NAME.fullmatch(descriptor.name):
        return f"{descriptor.name!r} is no name for a toolset: write it in kebab case"
    if descriptor.join is not None:
        return f"its toolset {descriptor.name} asks the others, which only refdesk's own may"
    if any(other.name == descriptor.name for other in others):
        return f"there is a toolset {descriptor.name} already"
    if clashing := sorted(taken & descriptor.scopes.keys()):
        return f"the scope {clashing[0]} is another toolset's"
    return _find_clashing_setting(descriptor, others)


def _find_clashing_setting(descriptor: ToolsetDescriptor, others: Iterable[ToolsetDescriptor]) -> str:
    if descriptor.load_settings is None:
        return ""
    prefix = descriptor.name.replace("-", "_") + "_"
    names = descriptor.load_settings().model_fields
    if strange := [name for name in names if not name.startswith(prefix)]:
        return f"its setting {strange[0]} must begin with {prefix}"
    shared = [other.name for other in others if (other.name.replace("-", "_") + "_").startswith(prefix)]
    return f"its settings could be those of {shared[0]}" if shared else ""


def _get_place(descriptor: ToolsetDescriptor) -> tuple[bool, str]:
    return descriptor.connect is not None, descriptor.name
