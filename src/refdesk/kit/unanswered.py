"""Determines whether an answer left a question open; each search applies it to its own answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.operations import Unanswered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refdesk.core.search.matches import Match


def tell_unanswered(
    text: str, toolsets: Sequence[str], matches: Iterable[tuple[str, Match | None]]
) -> Unanswered | None:
    """Return the question if nothing that was found is a strong match, else `None`.

    Args:
        text: The question as it was asked.
        toolsets: The toolsets that answered.
        matches: The match of everything that was found, each with its toolset.
    """
    found = set(matches)
    if not text.strip() or not toolsets or any(match == "strong" for _, match in found):
        return None
    return Unanswered(text, tuple(toolsets), frozenset(name for name, match in found if match == "partial"))
