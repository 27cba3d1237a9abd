"""Logging: one JSON object a line, on stderr. stdout belongs to the protocol."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
QUIET = ("mcp", "httpx2", "httpcore2", "uvicorn.access", "uvicorn.error", "sse_starlette", "asyncio", "markdown_it")


class JsonLines(logging.Formatter):
    """Writes an entry as one line: time, level, logger, message, then whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True, default=str)


def configure(level: str) -> None:
    """Send everything at or above `level` to stderr; libraries speak only when something is wrong.

    Call it before anything else configures logging: the SDK's own configuration gives way to one that is there.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
