"""What the log says, and what it never does."""

from __future__ import annotations

import io
import json
import logging

import pytest
from pydantic import BaseModel

from refdesk.server import logs

WRITTEN = "what the caller wrote"


class Number(BaseModel):
    number: int


def write(name: str, message: str, *args: object, error: BaseException | None = None) -> dict[str, str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    handler.handle(
        logging.LogRecord(name, logging.ERROR, __file__, 7, message, args, error and (type(error), error, None))
    )
    assert stream.getvalue().count("\n") == 1
    return json.loads(stream.getvalue())


def break_with(text: str) -> BaseException:
    try:
        try:
            Number.model_validate({"number": text})
        except ValueError as error:
            raise ExceptionGroup(text, [KeyError(text)]) from error
    except ExceptionGroup as group:
        return group
    raise AssertionError


def test_a_trace_has_types_and_places_and_no_message() -> None:
    entry = write("refdesk.server.calls", "call broke", error=break_with(WRITTEN))
    assert entry["message"] == "call broke"
    for part in ("ValidationError", "then:", "builtins.ExceptionGroup", "  builtins.KeyError", "in break_with"):
        assert part in entry["trace"]
    assert WRITTEN not in json.dumps(entry)


@pytest.mark.parametrize("name", ["mcp.server.sse", "uvicorn.error", "sse_starlette.sse", "starlette"])
def test_a_library_that_reads_callers_messages_only_says_where(name: str) -> None:
    entry = write(name, f"Received invalid session ID: {WRITTEN} %s", WRITTEN, error=break_with(WRITTEN))
    assert entry["message"] == "see test_logs.py:7"
    assert WRITTEN not in json.dumps(entry)


def test_other_entries_say_what_they_say() -> None:
    assert write("refdesk.app", "synced %d", 3)["message"] == "synced 3"
