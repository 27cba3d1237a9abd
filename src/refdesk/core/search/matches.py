"""The names of how well a hit matches; `matching` gives them, and is not imported where only the names are wanted."""

from __future__ import annotations

from typing import Literal, TypeAlias

Match: TypeAlias = Literal["strong", "partial", "weak"]
