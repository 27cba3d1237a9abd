"""An embedding service on a loopback port that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered: JSON, or `content` as it is; without a status the connection is closed instead."""

    status: int | None = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None


@dataclass(slots=True)
class Service:
    """Answers with `replies` in turn, then with what `answer` makes of the body."""

    answer: Callable[[str, dict[str, Any]], object]
    replies: list[Reply] = field(default_factory=list[Reply])
    asked: list[Asked] = field(default_factory=list[Asked])
    url: str = ""

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return self.replies.pop(0) if self.replies else Reply(200, self.answer(asked.path, asked.body))


@contextmanager
def serve(service: Service) -> Generator[Service]:
    """Run the service until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = service.reply(Asked(self.path, headers, body))
            if reply.status is None:
                self.close_connection = True
                return
            content = json.dumps(reply.body).encode() if reply.content is None else reply.content
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
