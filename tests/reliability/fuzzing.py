"""Messages that no client should send: valid ones of every kind, taken apart, and bytes that were never a message.

Each is made from a seed and a number alone, so that what broke a server can be sent again.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any, Final, cast

from refdesk.factories.toolsets import describe_toolsets
from tests.acceptance.processes import ENVELOPE, HANDSHAKE

NASTY: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 10**30, -(10**400), 0.5, 1e308, float("nan"), float("inf")),
    *("", " ", "\x00", "\ud800", "\u202e", "a" * 5000, "../../etc/passwd", "' OR 1=1 --", "NEAR(", '"', "*", "{{7*7}}"),
    *(
        "2026-13-45T99:99:99Z",
        "0000-00-00",
        "٣",
        "🙂" * 300,
        "\n\r",
        "skill://../x",
        "knowledge://",
        "%00",
        "tools/call",
    ),
    *(
        json.loads(text)
        for text in ("[]", "{}", "[[]]", '{"": {}}', '{"$ref": "#"}', '{"__proto__": 1}', '["a", 1, null]')
    ),
)
METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list"),
    *("resources/subscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "tasks/get"),
    *(
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "server/discover",
        "nothing",
        "",
    ),
)
URIS = ("azure-updates://guide", "knowledge://x", "skill://x", "file:///etc/passwd", "http://127.0.0.1:9/", "")


class Fuzz:
    """Makes messages.

    Args:
        seed: The same makes the same.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        operations = [operation for toolset in describe_toolsets() for operation in toolset.operations]
        self._calls = [
            {"name": each.name, "arguments": dict(example)} for each in operations for example in each.examples or ({},)
        ]

    def make(self, number: int) -> bytes:
        """Return one message, which may be none."""
        chance = random.Random(f"{self._seed}:{number}")
        valid = self._make_valid(chance, number)
        message: object = valid
        if valid["method"] == "tools/call" and chance.random() < 0.6:
            # Deep in a call that is otherwise right, where a tool would meet it.
            for _ in range(chance.choice((0, 1, 1, 2, 4))):
                valid["params"]["arguments"] = mutate(valid["params"]["arguments"], chance)
            return json.dumps(valid).encode()
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            message = mutate(message, chance)
        if chance.random() < 0.05:
            message = [message, self._make_valid(chance, number)]
        data = json.dumps(message, ensure_ascii=chance.random() < 0.7).encode("utf-8", "surrogatepass")
        return damage(data, chance) if chance.random() < 0.2 else data

    def _make_valid(self, chance: random.Random, number: int) -> dict[str, Any]:
        method = chance.choice(METHODS) if chance.random() < 0.5 else "tools/call"
        params: dict[str, Any] = {}
        if method == "tools/call":
            params = copy.deepcopy(chance.choice(self._calls))
        elif method == "initialize":
            params = dict(HANDSHAKE)
        elif method.startswith("resources/"):
            params = {"uri": chance.choice(URIS)}
        elif method == "completion/complete":
            reference = {"type": "ref/resource", "uri": "knowledge://{id}"}
            params = {"ref": reference, "argument": {"name": "id", "value": "0"}}
        if chance.random() < 0.4:
            params |= ENVELOPE
        if method.startswith("notifications/") and chance.random() < 0.8:
            return {"jsonrpc": "2.0", "method": method, "params": params}
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def mutate(value: object, chance: random.Random) -> object:
    """Return a value with one thing in it changed: replaced, left out, doubled, renamed or wrapped."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        found = dict(cast("dict[str, object]", value))
        name = chance.choice(list(found))
        kind = chance.random()
        if kind < 0.6:
            found[name] = mutate(found[name], chance)
        elif kind < 0.75:
            del found[name]
        elif kind < 0.9:
            found[str(chance.choice(NASTY))[:100]] = chance.choice(NASTY)
        else:
            found[name.swapcase()] = found.pop(name)
        return found
    if isinstance(value, list) and value and chance.random() < 0.7:
        items = list(cast("Sequence[object]", value))
        place = chance.randrange(len(items))
        return [*items[:place], mutate(items[place], chance), *items[place + chance.randrange(2) :]]
    if chance.random() < 0.05:
        return wrap(cast("object", value), chance.randrange(3, 60))
    return chance.choice(NASTY)


def wrap(value: object, times: int) -> object:
    """Return a value in so many lists and objects."""
    wrapped = value
    for number in range(times):
        wrapped = cast("object", [wrapped] if number % 2 else {"a": wrapped})
    return wrapped


def damage(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with some lost, doubled, changed or added."""
    if not data:
        return data
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    noise = chance.randbytes(chance.randrange(1, 40))
    match chance.randrange(6):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:end] + data[start:]
        case 3:
            return data[:start] + noise + data[start:]
        case 4:
            return noise
        case _:
            return b"\xef\xbb\xbf" + data
