"""A receiver of webhooks in a process of its own: answers as it is asked to, and says what it received.

It prints its port, then a line of JSON for each message. The path says how it answers: `/ok`, `/fail/N` (500 the first
N times), `/gone`, `/redirect`, `/hang`.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Receiver(BaseHTTPRequestHandler):
    counts: dict[str, int] = {}  # noqa: RUF012 - of the one server of this process

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.counts[self.path] = self.counts.get(self.path, 0) + 1
        headers = {
            name: self.headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "host")
        }
        say(json.dumps({"path": self.path, "headers": headers, "body": body}))
        kind, _, number = self.path.strip("/").partition("/")
        if kind == "hang":
            threading.Event().wait()
        is_failing = kind == "fail" and self.counts[self.path] <= int(number)
        status = {"gone": 410, "redirect": 302}.get(kind, 500 if is_failing else 204)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/ok")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        del format, args


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.daemon_threads = True
    say(str(server.server_address[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
