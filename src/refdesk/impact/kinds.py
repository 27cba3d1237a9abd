"""The names of impacts and cases, for whoever reads them: it loads none of the rules that find them."""

from __future__ import annotations

from typing import Literal, TypeAlias

ChangeKind: TypeAlias = Literal["retires", "breaks", "deprecates", "price", "limit", "renames", "default", "releases"]
"""How an announcement changes something; what it releases was said not to be there yet."""

SEVERITY: tuple[ChangeKind, ...] = (
    "retires",
    "breaks",
    "deprecates",
    "default",
    "limit",
    "price",
    "renames",
    "releases",
)
"""The worst first."""

Way: TypeAlias = Literal["value", "denial", "state"]
"""How two notes contradict each other."""

THRESHOLD = 0.5
"""From this confidence on an impact or a contradiction is shown."""
