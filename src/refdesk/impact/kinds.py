"""The kinds of impacts and cases, for code that reads them without loading the rules that find them."""

from __future__ import annotations

from typing import Literal, TypeAlias

ChangeKind: TypeAlias = Literal["retires", "breaks", "deprecates", "price", "limit", "renames", "default", "releases"]
"""How an announcement changes something; `releases` is for things that notes say are not available yet."""

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
"""The kinds of change, the worst first."""

Way: TypeAlias = Literal["value", "denial", "state"]
"""How two notes contradict each other."""

THRESHOLD = 0.5
"""From this confidence on, an impact or a contradiction is shown."""
