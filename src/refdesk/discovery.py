"""Which toolsets there are: one for each folder in `toolsets/`, by the descriptor in it.

Only descriptors are imported here, and they import nothing heavy.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast

from refdesk import toolsets

if TYPE_CHECKING:
    from refdesk.core.descriptors import ToolsetDescriptor

SERVER_SCOPES = {"metrics:read": "read what the server counts of itself", "admin": "see the server's inner state"}
"""What no toolset is needed for."""


@cache
def find_descriptors() -> tuple[ToolsetDescriptor, ...]:
    """Return every toolset's descriptor: by name, those that are asked live after the others, who asks others last."""
    found = [_load(folder.name) for folder in iter_modules(toolsets.__path__) if folder.ispkg]
    return tuple(sorted(found, key=_get_place))


def find_descriptor(name: str) -> ToolsetDescriptor | None:
    """Return a toolset's descriptor, or `None` where there is no toolset of this name."""
    return next((each for each in find_descriptors() if each.name == name), None)


def list_scopes() -> dict[str, str]:
    """Return every scope that a credential can have, each with what it allows."""
    return {scope: says for each in find_descriptors() for scope, says in each.scopes.items()} | SERVER_SCOPES


def _load(folder: str) -> ToolsetDescriptor:
    module = import_module(f"{toolsets.__name__}.{folder}.descriptor")
    return cast("ToolsetDescriptor", module.TOOLSET)


def _get_place(descriptor: ToolsetDescriptor) -> tuple[bool, bool, str]:
    return descriptor.join is not None, descriptor.connect is not None, descriptor.name
