"""How a hosted model is asked: with messages of two sides, and how often until its answer can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

MAX_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Message:
    """A message of one side: refdesk asks, the model answers."""

    side: Literal["asking", "answering"]
    text: str


class Complete(Protocol):
    """Sends a conversation to a model and returns its answer as text; raises `LanguageModelError` if that fails."""

    async def __call__(self, instruction: str, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the model's answer to the last message.

        Args:
            instruction: The system prompt.
            messages: First an asking one, then alternating.
            schema: The JSON Schema that the answer is to follow.
        """
        ...
