"""A library behind the line protocol that the servers speak: one JSON-RPC message a line, `tools/call` alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any


def serve(tools: dict[str, Callable[..., Any]]) -> None:
    """Answer until the input ends; whatever a library prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": _answer(message, tools)}) + "\n")
        out.flush()


def _answer(message: dict[str, Any], tools: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    if message["method"] == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "library", "version": "0"}}
    if message["method"] == "tools/list":
        return {"tools": []}
    called = message["params"]
    try:
        return {"structuredContent": tools[called["name"]](**called["arguments"])}
    except Exception as error:  # said to the client as servers say it
        return {"isError": True, "content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}]}
