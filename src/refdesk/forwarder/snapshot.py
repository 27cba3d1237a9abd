"""A desk's latest answers to what clients ask first, so that nobody waits for a desk that is only just starting.

An answer is used only for the same version, settings, handshake and request; that to the handshake only on the same day
as well, since the instructions name the date. The desk is asked again as soon as it runs; if its answer differs, the
client gets notice that the list has changed, as the protocol provides.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence

from refdesk.forwarder.journal import ANSWER, key_of
from refdesk.forwarder.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INITIALIZE = "initialize"
CHANGES = {
    INITIALIZE: "",
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
"""The requests whose answers are kept, each with the notification that tells a client when an answer has changed."""

MOST_KEPT = 64
_OF_CALLERS = ("clientInfo", "io.modelcontextprotocol/clientInfo", "progressToken")


class Snapshot:
    """Answers kept in a file.

    Args:
        path: The file; if it cannot be read or written, nothing is kept.
        facts: What else the answers depend on, such as the version.
    """

    def __init__(self, path: str, facts: Sequence[object]) -> None:
        self._path = path
        self._facts = list(facts)
        self._opening: object = None
        self._kept: dict[str, str] | None = None
        self._told: dict[str, str] = {}

    @property
    def is_kept(self) -> bool:
        """Whether the file exists."""
        return os.path.exists(self._path)

    def answer(self, message: Mapping[str, Any]) -> bytes | None:
        """Return the answer to a request, if one is kept."""
        name = self._name(message)
        kept = self._load().get(name) if name else None
        if name is None or kept is None:
            return None
        self._told[name] = kept
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (key_of(message.get("id")).encode(), kept.encode())

    def learn(self, message: Mapping[str, Any], line: bytes) -> bytes | None:
        """Keep the desk's answer to a request; return what to tell a client that was given a different one."""
        name, plain = self._name(message), ANSWER.match(line)
        if name is None or plain is None or plain[2] != b"result":
            return None
        result = line[plain.end() : line.rindex(b"}")].decode()
        if self._load().get(name) != result:
            self._keep(name, result)
        told = self._told.pop(name, result)
        change = CHANGES[str(message["method"])]
        return None if told == result or not change else b'{"jsonrpc":"2.0","method":"%b"}\n' % change.encode()

    def _name(self, message: Mapping[str, Any]) -> str | None:
        """Return a key for a request and everything its answer depends on, or `None` for requests whose answers are not
        kept."""
        method = message.get("method")
        if method not in CHANGES:
            return None
        params = _strip(message.get("params"))
        if method == INITIALIZE:
            self._opening = params
        day = time.strftime("%Y-%m-%d", time.gmtime()) if method == INITIALIZE else ""
        return json.dumps([*self._facts, day, self._opening, method, params], sort_keys=True)

    def _load(self) -> dict[str, str]:
        if self._kept is None:
            try:
                with open(self._path, encoding="utf-8") as file:
                    self._kept = cast("dict[str, str]", json.load(file))
            except (OSError, ValueError):
                self._kept = {}
        return self._kept

    def _keep(self, name: str, result: str) -> None:
        kept = self._load()
        kept.pop(name, None)
        kept[name] = result
        for oldest in list(kept)[:-MOST_KEPT]:
            del kept[oldest]
        draft = f"{self._path}-{os.getpid()}"
        try:
            with open(draft, "w", encoding="utf-8") as file:
                json.dump(kept, file)
            os.replace(draft, self._path)
        except OSError:
            return


def _strip(value: object) -> object:
    """Return parameters without the fields that only identify the client or the call."""
    if not isinstance(value, dict):
        return value
    return {name: _strip(each) for name, each in cast("dict[str, object]", value).items() if name not in _OF_CALLERS}
