"""OpenAI's and Gemini's embedding APIs in a process of their own, as they are and as they break.

`PUT /behaviour` sets how they answer from then on; see `BEHAVIOURS`. Requests are checked by the services' public
rules, and `GET /texts` returns what was to be embedded. Run as a program it prints its port.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias, cast

import httpx2

from tests.emulators import serving

KEY = "emulated-key"
DIMENSIONS = 8

BEHAVIOURS = """
    fine  hangs  drips  hangs-up  down  gone  quota  quota-exhausted  key-rotated
    truncated  too-wide  nan  zeros  too-few  too-many  empty  html
""".split()  # noqa: SIM905 - as a table it can be read

STATUS = {"down": 503, "gone": 404, "quota": 429, "quota-exhausted": 429, "key-rotated": 401}
RETRY_AFTER = {"quota": "1", "quota-exhausted": "3600"}

_LONGEST_SECONDS = 600.0
_DRIP_SECONDS = 0.2

Vectors: TypeAlias = list[list[float]]


class State:
    """How the services behave, and what was asked of them."""

    def __init__(self) -> None:
        self.behaviour = "fine"
        self.texts: list[str] = []
        self.stopped = threading.Event()


def embed(text: str) -> list[float]:
    """Return a vector that the text alone decides."""
    return [byte - 127.5 for byte in hashlib.blake2b(text.encode(), digest_size=DIMENSIONS).digest()]


def list_texts(body: dict[str, Any]) -> list[str]:
    """Return the texts of a request to either service."""
    requests = body.get("requests", [body] if "content" in body else [])
    return [*body.get("input", []), *(each["content"]["parts"][0]["text"] for each in requests)]


def misbehave(behaviour: str, vectors: Vectors) -> Vectors:
    """Return vectors as a broken service makes them."""
    changed: dict[str, Vectors] = {
        "too-wide": [[*vector, 1.0] for vector in vectors],
        "nan": [[float("nan"), *vector[1:]] for vector in vectors],
        "zeros": [[0.0] * len(vector) for vector in vectors],
        "too-few": vectors[1:],
        "too-many": [*vectors, vectors[0]],
    }
    return changed.get(behaviour, vectors)


class Handler(BaseHTTPRequestHandler):
    """Answers both services' requests."""

    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: standard output is for the port."""

    def do_GET(self) -> None:
        self._send(200, self.state.texts)

    def do_PUT(self) -> None:
        self.state.behaviour = self._read().decode()
        self._send(200, self.state.behaviour)

    def do_POST(self) -> None:
        body = cast("dict[str, Any]", json.loads(self._read()))
        texts, behaviour = list_texts(body), self.state.behaviour
        self.state.texts += texts
        vectors = misbehave(behaviour, [embed(text) for text in texts])
        if behaviour in ("hangs", "hangs-up"):
            self.close_connection = True
            self.state.stopped.wait(_LONGEST_SECONDS if behaviour == "hangs" else 0.0)
            return
        if behaviour in STATUS or not self._is_known():
            asked = {"Retry-After": RETRY_AFTER[behaviour]} if behaviour in RETRY_AFTER else {}
            self._send(STATUS.get(behaviour, 401), {"error": {"message": f"refused: {behaviour}, {KEY}"}}, asked)
        elif self.path.endswith("/embeddings"):
            self._answer({"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]})
        elif self.path.endswith(":batchEmbedContents"):
            self._answer({"embeddings": [{"values": vector} for vector in vectors]})
        else:
            self._answer({"embedding": {"values": vectors[0] if vectors else []}})

    def _is_known(self) -> bool:
        return KEY in (self.headers["x-goog-api-key"], (self.headers["Authorization"] or "").removeprefix("Bearer "))

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, answer: object) -> None:
        behaviour = self.state.behaviour
        content = json.dumps(answer).encode()
        broken = {"truncated": content[: len(content) // 2], "empty": b"", "html": b"<html>Sign in</html>"}
        if behaviour == "drips":
            self._drip(content)
        else:
            self._send_bytes(200, broken.get(behaviour, content), {})

    def _drip(self, content: bytes) -> None:
        """Send a byte now and then, so that the connection is never silent and the answer never whole."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + 10**6))
        self.end_headers()
        self.close_connection = True
        with suppress(ConnectionError):  # whoever asked has gone
            while not self.state.stopped.wait(_DRIP_SECONDS):
                self.wfile.write(b" ")

    def _send(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(answer).encode(), headers or {})

    def _send_bytes(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class Service:
    """The emulator as a test sees it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def behave(self, behaviour: str) -> None:
        """Answer like this from now on."""
        assert behaviour in BEHAVIOURS
        httpx2.put(f"{self.url}/behaviour", content=behaviour, timeout=120).raise_for_status()

    def list_texts(self) -> list[str]:
        """Return every text that it was to embed so far."""
        return httpx2.get(f"{self.url}/texts", timeout=120).json()

    def select(self, name: str) -> dict[str, str]:
        """Return the settings that select one of its services, `openai` or `gemini`."""
        prefix = f"REFDESK_{name.upper()}"
        return {
            "REFDESK_EMBEDDER": name,
            f"{prefix}_BASE_URL": f"{self.url}/v1",
            f"{prefix}_API_KEY": KEY,
            f"{prefix}_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
        }


@contextmanager
def running() -> Generator[Service]:
    """Yield the emulator, behaving well."""
    with serving.running("tests.emulators.embeddings") as url:
        yield Service(url)


if __name__ == "__main__":
    Handler.state = State()
    serving.serve(Handler, Handler.state.stopped.set)
