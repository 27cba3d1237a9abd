"""Answers for one repository as a model hub does: `python -m tests.embedders.hub FOLDER` prints its address."""

from __future__ import annotations

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0" * 40


def make_handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    """Return what answers for the files of a folder, at `/OWNER/NAME/resolve/REVISION/PATH`."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            content = self._answer()
            if content is not None:
                self.wfile.write(content)

        def _answer(self) -> bytes | None:
            path = folder / self.path.split("/resolve/", 1)[-1].partition("/")[2]
            if not path.is_file():
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            content = path.read_bytes()
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            return content

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    return Handler


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(Path(sys.argv[1])))
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
