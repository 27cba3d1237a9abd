"""A client's requests that are not answered yet: enough to continue with another desk when the current one ends.

Lines are passed on unchanged. Of each, only what is needed for this is read: whether it is a request, an answer or a
notification, its id, and for a tool call the tool and whether it carries an idempotency key.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence

from refdesk.forwarder.hello import unpack
from refdesk.forwarder.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

MOST_ATTEMPTS = 8
"""Most desks that get the same request: a request during which each of them ended is finally answered with an error."""

MOST_REPEAT_SECONDS = 300.0
"""How long after it was first sent a call with an idempotency key may be repeated; a desk keeps its answer for
longer."""

ASKED_AT = "refdesk/askedAt"
"""The field in the `_meta` of a repeated call for when it was first sent, in seconds since 1970, by which a desk
recognises its idempotency key."""

LISTEN = "subscriptions/listen"
UNSURE = (
    "The desk ended while this call ran: what it was to write may have been written, or not. Look for it before you "
    "call again."
)
INITIALIZED = "notifications/initialized"
_URI = "uri "
_REPLAYED = "refdesk-replay-"
ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"[ !#-\[\]-~]*"),"(result|error)":')
"""How a desk's answers begin, so that long ones need not be parsed."""


class Request:
    """A request without an answer.

    Attributes:
        sent_as: The number of its line on the current connection; `None` before it is sent.
        attempts: How many desks it has been sent to.
        asked_at: When the client sent it, in seconds since 1970.
    """

    def __init__(self, line: bytes, message: Mapping[str, Any]) -> None:
        self.line = line
        self.message = message
        self.sent_as: int | None = None
        self.attempts = 0
        self.asked_at = time.time()

    @property
    def id(self) -> object:
        """The id, as the client wrote it."""
        return self.message["id"]

    @property
    def method(self) -> object:
        """The method."""
        return self.message.get("method")


class Parcel(NamedTuple):
    """A line to send, and the requests in it."""

    line: bytes
    requests: Sequence[Request] = ()


class Calls(NamedTuple):
    """What the desk says about its tools.

    Attributes:
        reads: The tools that change nothing.
        keyed: For tools that take an idempotency key, the name of the argument.
        unsure: For each tool that writes, the result for a call of which it is unknown whether it did.
    """

    reads: frozenset[str] = frozenset()
    keyed: Mapping[str, str] = {}
    unsure: Mapping[str, Mapping[str, object]] = {}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Calls:
        """Return what a desk's greeting says."""
        calls = said.get("calls", {})
        return cls(frozenset(calls.get("reads", ())), calls.get("keyed", {}), calls.get("unsure", {}))

    def is_repeatable(self, request: Request) -> bool:
        """Return whether a request that may have been carried out can safely be sent again."""
        if request.method != "tools/call":
            return True
        params = cast("Any", request.message.get("params"))
        if not isinstance(params, dict):
            return True  # it is invalid, so no desk carries it out
        name, arguments = cast("dict[str, Any]", params).get("name"), cast("dict[str, Any]", params).get("arguments")
        if isinstance(name, str) and name in self.reads:
            return True
        key = self.keyed.get(str(name))
        has_key = key is not None and isinstance(arguments, dict) and bool(cast("dict[str, Any]", arguments).get(key))
        return has_key and time.time() - request.asked_at < MOST_REPEAT_SECONDS

    def say_unsure(self, request: Request) -> bytes:
        """Return the answer to a request of which it is unknown whether it was carried out."""
        params = _get_params(request.message)
        result = self.unsure.get(str(params.get("name"))) or _result(
            {"error": {"code": "UNAVAILABLE", "message": UNSURE}}
        )
        meta: object = params.get("_meta")
        is_modern = isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta
        return _dump({"jsonrpc": "2.0", "id": request.id, "result": {**result, **(_COMPLETE if is_modern else {})}})


_COMPLETE = {"resultType": "complete"}


def _result(error: Mapping[str, object]) -> dict[str, object]:
    return {"content": [{"type": "text", "text": json.dumps(error)}], "isError": True}


Learn: TypeAlias = "Callable[[Mapping[str, Any], bytes], bytes | None]"


class Journal:
    """The state of one client's session, as far as another desk needs it.

    Args:
        learn: Called with each request that a desk answers, and the answer; returns what to send the client if the
            answer itself is not for it.
    """

    def __init__(self, learn: Learn = lambda _request, _line: None) -> None:
        self.calls = Calls()
        self._learn = learn
        self._pending: dict[str, Request] = {}
        self._opening: list[bytes] = []
        self._standing: dict[str, bytes] = {}
        self._asked_by_desk: dict[str, object] = {}
        self._answered_here: list[bytes] = []
        self._swallowed: dict[str, Mapping[str, Any]] = {}
        self._lines = 0
        self._epoch = 0
        self._replays = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the client is waiting for something that only a desk can send."""
        return bool(self._pending or self._standing)

    def note_client(self, line: bytes) -> Parcel | None:
        """Record a line from the client; return what to send for it, or `None` for nothing."""
        value = _load(line)
        if isinstance(value, list):
            batch = cast("list[object]", value)
            return Parcel(line, [request for each in batch if (request := self._note(_dump(each), each))])
        if isinstance(value, dict) and "method" not in value and "id" in value:
            reply = self._note_reply(line, cast("dict[str, Any]", value))
            return Parcel(reply) if reply is not None else None
        request = self._note(line, cast("object", value))
        return Parcel(line, [request] if request else [])

    def note_sent(self, parcel: Parcel) -> None:
        """Record that a parcel is sent to the current desk."""
        self._lines += 1
        for request in parcel.requests:
            request.sent_as, request.attempts = self._lines, request.attempts + 1

    def note_desk(self, line: bytes) -> bytes | None:
        """Record a line from the desk; return what to send to the client for it, or `None` for nothing."""
        plain = ANSWER.match(line)
        if plain is not None:
            return self._note_answer(line, plain[1].decode(), plain[2] == b"result")
        message = _load(line)
        if not isinstance(message, dict) or "id" not in message:
            return line
        answered = cast("dict[str, Any]", message)
        if "method" in answered:
            return self._note_question(line, answered)
        return self._note_answer(line, key_of(answered["id"]), "result" in answered)

    def lose(self, read: int | None) -> list[bytes]:
        """Record that the current desk ended; return what to send to the client at once.

        Args:
            read: How many lines the desk had read, all of which it answered; `None` if it did not say.
        """
        told: list[bytes] = []
        for key, request in list(self._pending.items()):
            if request.sent_as is None:
                continue
            is_untouched = read is not None and request.sent_as > read
            if is_untouched:
                request.attempts -= 1
            elif request.attempts >= MOST_ATTEMPTS or not self.calls.is_repeatable(request):
                told.append(self.calls.say_unsure(request))
                del self._pending[key]
            request.sent_as = None
        shown = (json.loads(key) for key in self._asked_by_desk)
        told += [_notify("notifications/cancelled", {"requestId": id}) for id in shown]
        uris = [name.removeprefix(_URI) for name in self._standing if name.startswith(_URI)]
        told += [_notify("notifications/resources/updated", {"uri": uri}) for uri in uris]  # they may have changed
        self._asked_by_desk.clear()
        self._swallowed.clear()
        self._lines, self._epoch = 0, self._epoch + 1
        return told

    def replay_opening(self) -> list[Parcel]:
        """Return the handshake for another desk, if there was one; the answers to it are not passed on."""
        if any(request.method == "initialize" for request in self._pending.values()):
            return []
        return [Parcel(self._disguise(line)) for line in self._opening]

    def answer_here(self, line: bytes, answer: Callable[[Mapping[str, Any]], bytes | None]) -> bytes | None:
        """Answer a client's line before there is a desk; once there is one, it is asked the same.

        Returns:
            What the client gets, empty for a line that needs no answer, or `None` if only a desk can answer.
        """
        value = _load(line)
        message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if self._opening and message.get("method") == INITIALIZED:
            self._note(line, message)
            return b""
        answered = answer(message) if _is_id(message.get("id")) else None
        if answered is not None and message["method"] == "initialize":
            self._opening = [line]
        elif answered is not None:
            self._answered_here.append(line)
        return answered

    def replay_rest(self) -> list[Parcel]:
        """Return what follows the handshake: lists that were answered here, subscriptions, then every request without
        an answer."""
        standing = [Parcel(self._disguise(line)) for line in (*self._answered_here, *self._standing.values())]
        self._answered_here.clear()
        return [*standing, *(Parcel(_date(request), [request]) for request in self._pending.values())]

    def is_own_answer(self, line: bytes) -> bool:
        """Return whether a line from the desk answers something that was replayed."""
        plain = ANSWER.match(line)
        return plain is not None and plain[1].decode() in self._swallowed

    def fail(self, message: str) -> list[bytes]:
        """Return an error for every request without an answer, since no desk can be reached."""
        failed = list(self._pending.values())
        self._pending.clear()
        error = {"code": -32603, "message": message}
        return [_dump({"jsonrpc": "2.0", "id": each.id, "error": error}) for each in failed]

    def _note_answer(self, line: bytes, key: str, has_succeeded: bool) -> bytes | None:
        if key in self._swallowed:
            return self._learn(self._swallowed.pop(key), line)
        request = self._pending.pop(key, None)
        if request is not None and has_succeeded:
            self._note_standing(request)
            self._learn(request.message, line)
        return line

    def _note(self, line: bytes, value: object) -> Request | None:
        if not isinstance(value, dict):
            return None
        message = cast("dict[str, Any]", value)
        method = message.get("method")
        if method == INITIALIZED:
            self._opening = [*self._opening[:1], line]
        elif method == "notifications/cancelled":
            self._pending.pop(key_of(_get_params(message).get("requestId")), None)
        if not isinstance(method, str) or not _is_id(message.get("id")):
            return None
        if method == "initialize":
            self._opening = [line]
        request = self._pending[key_of(message["id"])] = Request(line, message)
        return request

    def _note_reply(self, line: bytes, reply: dict[str, Any]) -> bytes | None:
        """Return the client's answer to a question from the desk, if the current desk asked it."""
        original = self._asked_by_desk.pop(key_of(reply["id"]), None)
        if original is None:
            return line if self._epoch == 0 else None
        return line if original == reply["id"] else _dump({**reply, "id": original})

    def _note_question(self, line: bytes, question: dict[str, Any]) -> bytes:
        """Return a question from the desk under an id that no earlier desk has used."""
        id = question["id"]
        shown = id if self._epoch == 0 else f"desk-{self._epoch}:{key_of(id)}"
        self._asked_by_desk[key_of(shown)] = id
        return line if self._epoch == 0 else _dump({**question, "id": shown})

    def _note_standing(self, request: Request) -> None:
        params = _get_params(request.message)
        if request.method == "resources/subscribe":
            self._standing[f"{_URI}{params.get('uri')}"] = request.line
        elif request.method == "resources/unsubscribe":
            self._standing.pop(f"{_URI}{params.get('uri')}", None)
        elif request.method == "logging/setLevel":
            self._standing["level"] = request.line

    def _disguise(self, line: bytes) -> bytes:
        """Return a line that is sent again, under an id of our own."""
        message = cast("dict[str, Any]", _load(line))
        if "id" not in message:
            return line
        self._replays += 1
        id = f"{_REPLAYED}{self._replays}"
        self._swallowed[key_of(id)] = message
        return _dump({**message, "id": id})


def _date(request: Request) -> bytes:
    """Return a request as it is sent: a tool call that was sent to a desk before says when it was first sent."""
    params = _get_params(request.message)
    if not request.attempts or request.method != "tools/call" or not params:
        return request.line
    meta: object = params.get("_meta")
    dated = {**(cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}), ASKED_AT: request.asked_at}
    return _dump({**request.message, "params": {**params, "_meta": dated}})


def read_end(line: bytes) -> int | None:
    """Return how many lines a desk had read, if this is its last line, which says so."""
    said = unpack(line)
    return said.get("read") if said is not None else None


def _load(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def _notify(method: str, params: Mapping[str, object]) -> bytes:
    return _dump({"jsonrpc": "2.0", "method": method, "params": params})


def _get_params(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's parameters; none if a client sent something else in their place."""
    params: object = message.get("params")
    return cast("dict[str, Any]", params) if isinstance(params, dict) else {}


def _is_id(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def key_of(id: object) -> str:
    """Return a text that stands for an id: 1 and "1" are different ids."""
    return json.dumps(id)
