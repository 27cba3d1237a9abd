"""Reverse proxies that show a server under a path: nginx and Caddy as the docs have them, and a plain one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from tests.acceptance.processes import WAIT_SECONDS
from tests.conftest import REPOSITORY

PREFIX = "/desk"
HOW_TO = REPOSITORY / "docs" / "how-to" / "deploy.md"
SHOWN = "127.0.0.1:8350"
"""Where the server is in the docs."""

NGINX = """
daemon off; pid {folder}/pid; error_log stderr; events {{}}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; {shown} }}
}}
"""
CADDY = "{{ admin off\nauto_https off\nstorage file_system {folder}\n}}\n{shown}"


@contextmanager
def run_proxy(kind: str, port: int, server: str, folder: Path) -> Generator[None]:
    """Run a proxy.

    Args:
        kind: `nginx` or `caddy`, configured as the docs say; `kept` or `stripped`, by what becomes of the path.
        port: Where it listens.
        server: The host and port to which it passes on what is below the path.
        folder: An empty folder for what it writes.
    """
    if kind in ("kept", "stripped"):
        with _run_plain(port, server, is_kept=kind == "kept"):
            yield
        return
    if shutil.which(kind) is None:
        pytest.skip(f"no {kind} on this machine")
    folder.mkdir()
    config = folder / "config"
    config.write_text(_write_config(kind, port, server, folder))
    command = {
        "nginx": ["nginx", "-e", "stderr", "-c", str(config)],
        "caddy": ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)],
    }
    environment = {**os.environ, "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command[kind], stdout=log, stderr=log, env=environment)
    try:
        _await_listener(port, process, folder / "log")
        yield
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def _write_config(kind: str, port: int, server: str, folder: Path) -> str:
    fence = {"nginx": "nginx", "caddy": "text"}[kind]
    [shown] = re.findall(rf"```{fence}\n(.*?)```", HOW_TO.read_text("utf-8"), re.DOTALL)
    shown = shown.replace(SHOWN, server).replace("example.com", f"http://127.0.0.1:{port}")
    return {"nginx": NGINX, "caddy": CADDY}[kind].format(folder=folder, port=port, shown=shown)


def _await_listener(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
    raise TimeoutError("the proxy does not listen")


@contextmanager
def _run_plain(port: int, server: str, *, is_kept: bool) -> Generator[None]:
    host, _, number = server.partition(":")

    class Passing(StreamRequestHandler):
        """Passes on one request, and closes the connection."""

        def handle(self) -> None:
            method, target, version = self.rfile.readline().split(b" ")
            head = [line for line in iter(self.rfile.readline, b"\r\n") if not line.lower().startswith(b"connection:")]
            if not target.startswith(PREFIX.encode()):
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            passed = target if is_kept else target.removeprefix(PREFIX.encode()) or b"/"
            length = next((int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length")), 0)
            with socket.create_connection((host, int(number)), WAIT_SECONDS) as upstream:
                upstream.sendall(b" ".join((method, passed, version)) + b"".join(head) + b"connection: close\r\n\r\n")
                upstream.sendall(self.rfile.read(length))
                with suppress(OSError):
                    while piece := upstream.recv(65536):
                        self.wfile.write(piece)

    class Listening(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    with Listening(("127.0.0.1", port), Passing) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield
        proxy.shutdown()
