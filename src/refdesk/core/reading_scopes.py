"""Who may read what the toolsets keep: one rule for everything that tells a caller about several toolsets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from refdesk.core.operations import Toolset


@dataclass(frozen=True, slots=True)
class ReadingScopes:
    """Which scopes it takes to read what each toolset keeps, by the toolset's name."""

    by_toolset: Mapping[str, frozenset[str]]

    @property
    def every(self) -> frozenset[str]:
        """All of them."""
        return frozenset(scope for scopes in self.by_toolset.values() for scope in scopes)

    def may_read(self, held: Set[str], toolset: str) -> bool:
        """Return whether these scopes suffice to read what a toolset keeps; nobody reads what is not served."""
        return toolset in self.by_toolset and self.by_toolset[toolset] <= held

    def list_readable(self, held: Set[str]) -> list[str]:
        """Return the toolsets that these scopes suffice to read, in the order of the server."""
        return [name for name in self.by_toolset if self.may_read(held, name)]


def find_reading_scopes(toolsets: Iterable[Toolset], *, live: bool = True) -> ReadingScopes:
    """Return what it takes to read each toolset that can be searched; without `live`, leave out those asked live."""
    providers = {each.name: each.provider for each in toolsets if each.provider is not None}
    return ReadingScopes({name: each.scopes for name, each in providers.items() if live or not each.is_live})


def require_scopes(held: Set[str], wanted: Iterable[str]) -> None:
    """Check that all of these scopes are held.

    Raises:
        PermissionDeniedError: One of them is missing.
    """
    if missing := sorted(set(wanted) - held):
        raise PermissionDeniedError(f"This needs the scope {missing[0]}.", details={"missingScopes": missing})
