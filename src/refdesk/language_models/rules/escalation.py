"""When agents hand a conversation over, in their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refdesk.kit import sentences
from refdesk.language_models.rules.problems import escalates

if TYPE_CHECKING:
    from refdesk.playbooks import Turn

DEFAULT = "Where these steps do not resolve it, hand over to a person, with what was tried."


def describe(conversations: Sequence[Sequence[Turn]]) -> str:
    """Return how many conversations were handed over, and how an agent last said so; the default if none was."""
    said = [words for turns in conversations if (words := _find(turns))]
    if not said:
        return DEFAULT
    if len(conversations) == 1:
        return f"The agent handed over here: {said[-1]}"
    return f"{len(said)} of {len(conversations)} were handed over, as in: {said[-1]}"


def _find(conversation: Sequence[Turn]) -> str:
    for turn in conversation:
        if turn.speaker == "agent" and escalates(turn.text):
            said = next((each for each in sentences.split(turn.text) if escalates(each)), "")
            if said:
                return said
    return ""
