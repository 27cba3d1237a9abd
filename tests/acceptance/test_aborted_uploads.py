"""Clients that go away in the middle of a request: one line in the log for each, and nothing of what they sent."""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.acceptance.processes import Running, start
from tests.acceptance.test_http import make_key
from tests.acceptance.test_slow_clients import HURRIED, PATIENT, connect

SECRET = "zebra-4711"
HALF = f'{{"query": "{SECRET}'.encode()
OWN = re.compile(r"refdesk\.(?!server\.(?!local|process))")
"""Loggers of what the server does by itself, beside answering."""


@dataclass(frozen=True)
class Watched:
    """A server whose log is read line by line."""

    server: Running
    url: str
    headers: dict[str, str]
    messages: str

    def read_entry(self) -> dict[str, Any]:
        """Return the next entry of the log that a request caused."""
        while line := self.server.said.read_line():
            assert SECRET.encode() not in line
            entry = json.loads(line)
            if not OWN.match(entry["logger"]):
                return entry
        raise AssertionError("the server ended")

    def read_entries(self) -> list[dict[str, Any]]:
        """Return what the log has of one request, which was sent before."""
        found = [self.read_entry()]
        assert httpx2.get(f"{self.url}/knowledge/none", headers=self.headers).status_code == 400
        while (entry := self.read_entry())["message"] != "call refused":
            found.append(entry)
        return found

    def upload(self, path: str, body: bytes, *more: str) -> socket.socket:
        """Return a connection over which a request was begun."""
        head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
        head += ["Accept: application/json, text/event-stream", "X-Forwarded-For: 192.0.2.7"]
        head += [f"{name}: {value}" for name, value in self.headers.items()]
        connection = connect(self.url)
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        return connection


@contextmanager
def watch(home: Path, **settings: str) -> Generator[Watched]:
    arguments = ["-m", "refdesk", "serve", "--port", "0", "--sse", "--toolset", "knowledge"]
    with start(arguments, home, REFDESK_TRUSTED_PROXIES="127.0.0.1", **settings) as server:
        url = server.read_log("listening")["url"]
        _, headers = make_key(home, "--scope", "knowledge:read", "--scope", "knowledge:write")
        with closing(connect(url)) as listener:
            lines = [f"{name}: {value}" for name, value in headers.items()]
            listener.sendall("\r\n".join(["GET /sse HTTP/1.1", "Host: localhost", *lines, "", ""]).encode())
            received = b""
            while b"session_id=" not in received or not received.endswith(b"\n"):
                received += listener.recv(4096)
            yield Watched(server, url, headers, received.split(b"data: ")[1].split()[0].decode())


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    with watch(tmp_path_factory.mktemp("home"), **PATIENT) as started:
        yield started


PATHS = ["/knowledge/search", "/knowledge/import", "/mcp", "messages"]
LENGTH, CHUNKED = "Content-Length: 100", "Transfer-Encoding: chunked"


@pytest.mark.parametrize("how", ["length", "chunked", "reset"])
@pytest.mark.parametrize("path", PATHS)
def test_an_upload_whose_client_goes_away_leaves_one_line(watched: Watched, path: str, how: str) -> None:
    place = watched.messages if path == "messages" else path
    body = b"64\r\n" + HALF if how == "chunked" else HALF
    with closing(watched.upload(place, body, CHUNKED if how == "chunked" else LENGTH)) as connection:
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    [entry] = watched.read_entries()
    assert (entry["level"], entry["message"], entry["agent"]) == ("info", "upload aborted", "ann")
    # Of a connection that was reset before it was accepted, the system knows no other end.
    assert (entry["address"] or "192.0.2.7", entry["org"]) == ("192.0.2.7", "local")
    assert "trace" not in entry


def test_an_upload_without_a_byte_of_its_body_does_too(watched: Watched) -> None:
    watched.upload("/mcp", b"", LENGTH).close()
    [entry] = watched.read_entries()
    assert (entry["message"], entry["bytes"]) == ("upload aborted", 0)


@pytest.mark.parametrize("path", PATHS)
def test_one_that_is_no_http_any_more_leaves_one_line(watched: Watched, path: str) -> None:
    place = watched.messages if path == "messages" else path
    with closing(watched.upload(place, b"5\r\n" + HALF, CHUNKED)):
        [entry] = watched.read_entries()
    assert (entry["level"], entry["logger"]) == ("warning", "uvicorn.error")


def test_one_that_is_too_slow_leaves_one_line(tmp_path: Path) -> None:
    with watch(tmp_path, **HURRIED) as hurried:
        for path in ("/knowledge/search", "/mcp", hurried.messages):
            with closing(hurried.upload(path, HALF, LENGTH)):
                [entry] = hurried.read_entries()
            assert (entry["message"], entry["part"]) == ("request cut off", "body")


def test_one_that_is_refused_before_it_is_read_leaves_none_of_them(watched: Watched) -> None:
    without = Watched(watched.server, watched.url, {}, watched.messages)
    without.upload("/mcp", HALF, LENGTH).close()
    assert httpx2.get(f"{watched.url}/knowledge/none", headers=watched.headers).status_code == 400
    assert watched.read_entry()["message"] == "call refused"
