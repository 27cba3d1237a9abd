"""The names for how well a hit matches; `matching` assigns them, and need not be imported for the names alone."""

from __future__ import annotations

from typing import Literal, TypeAlias

Match: TypeAlias = Literal["strong", "partial", "weak"]
