"""What the glossary can do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from refdesk.core.operations import READS, Operation, Route
from refdesk.errors import ConfigurationError, NotFoundError
from refdesk.kit.wire import Message, Text

if TYPE_CHECKING:
    from refdesk.core.context import Context

SCOPES = frozenset({"company-glossary:read"})


class DefineInput(Message):
    """What `define_company_word` takes."""

    word: Text


class DefineOutput(Message):
    """What it answers."""

    word: str
    meaning: str


async def read_words(path: Path) -> dict[str, str]:
    """Return the words with their meanings.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    try:
        return json.loads(await anyio.Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        raise ConfigurationError("REFDESK_COMPANY_GLOSSARY_FILE names no JSON file that can be read.") from None


def make_operations(get_path: Callable[[], Path]) -> tuple[Operation, ...]:
    """Return the table of operations over the file at a path."""

    async def define(context: Context, asked: DefineInput) -> DefineOutput:
        del context
        words = await read_words(get_path())
        if asked.word not in words:
            raise NotFoundError("The glossary does not have this word.")
        return DefineOutput(word=asked.word, meaning=words[asked.word])

    return (_describe(define),)


def _describe(handler: Callable[[Context, DefineInput], Awaitable[DefineOutput]]) -> Operation:
    return Operation(
        name="define_company_word",
        title="Define a word",
        description="Say what a word means in this company. Use it before you guess at an abbreviation.",
        input=DefineInput,
        output=DefineOutput,
        handler=handler,
        scopes=SCOPES,
        effects=READS,
        route=Route("GET", "/company-glossary/{word}"),
        errors={"NOT_FOUND": "The glossary does not have this word."},
        examples=({"word": "RDK"},),
    )
