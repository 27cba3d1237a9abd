"""Logging: one JSON object per line, on stderr; stdout belongs to the protocol.

No line contains text that a caller wrote. Messages of exceptions, and of libraries that read callers' messages, may
quote it; so a trace has only types and places, and an entry of such a library only says where it was made.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_READS_CALLERS = ("mcp", "sse_starlette", "starlette", "uvicorn")
QUIET = ("mcp", "httpx2", "httpcore2", "uvicorn.access", "uvicorn.error", "sse_starlette", "asyncio", "markdown_it")


class JsonLines(logging.Formatter):
    """Writes an entry as one line: time, level, logger, message, then what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        is_foreign = record.name.partition(".")[0] in _READS_CALLERS
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": f"see {record.filename}:{record.lineno}" if is_foreign else record.getMessage(),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info and record.exc_info[1] is not None:
            entry["trace"] = describe(record.exc_info[1])
        return json.dumps(entry, ensure_ascii=True, default=str)


def describe(error: BaseException) -> str:
    """Return where an exception was raised and its type, with its causes and parts, but without its message."""
    lines: list[str] = []
    _describe(error, "", set(), lines)
    return "\n".join(lines)


def _describe(error: BaseException, indent: str, seen: set[int], lines: list[str]) -> None:
    if id(error) in seen:
        return
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        _describe(cause, indent, seen, lines)
        lines.append(f"{indent}then:")
    frames = traceback.extract_tb(error.__traceback__)
    lines.extend(f"{indent}{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    lines.append(f"{indent}{type(error).__module__}.{type(error).__qualname__}")
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            _describe(part, f"{indent}  ", seen, lines)  # pyright: ignore[reportUnknownArgumentType]


def configure(level: str) -> None:
    """Send everything at or above `level` to stderr; libraries log only warnings and above.

    Call it before anything else configures logging: the SDK does not configure logging that is configured already.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
