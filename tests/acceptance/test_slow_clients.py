"""Clients that leave something undone: half a request, an answer that is not read, sockets that are hoarded."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.processes import HANDSHAKE, WAIT_SECONDS, Running, start
from tests.acceptance.test_http import make_key

HURRIED = {
    "REFDESK_EMBEDDER": "hashing",
    "REFDESK_HEADER_TIMEOUT_SECONDS": "0.3",
    "REFDESK_BODY_TIMEOUT_SECONDS": "0.3",
    "REFDESK_WRITE_TIMEOUT_SECONDS": "0.3",
}
PATIENT = {"REFDESK_EMBEDDER": "hashing"}
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


CRAMPED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
runpy.run_module("refdesk", run_name="__main__", alter_sys=True)
"""
"""Runs the command where the system lets a process open few files."""


@contextmanager
def serve(home: Path, *python: str, **variables: str) -> Generator[tuple[Running, str]]:
    with start([*(python or ("-m", "refdesk")), "serve", "--port", "0", "--sse"], home, **variables) as server:
        yield server, server.read_log("listening")["url"]


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, bytes]]:
    """The address of a server with short deadlines, and the header that carries a key."""
    home = tmp_path_factory.mktemp("home")
    with serve(home, **HURRIED) as (_, url):
        _, headers = make_key(home, "--scope", "knowledge:read")
        yield url, f"Authorization: {headers['authorization']}\r\n".encode()


def connect(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def test_half_a_request_is_cut_off(hurried: tuple[str, bytes]) -> None:
    with closing(connect(hurried[0])) as slow:
        slow.sendall(HALF)
        answer = read_to_end(slow)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"send it at once" in answer


def test_a_connection_on_which_nothing_comes_is_closed(hurried: tuple[str, bytes]) -> None:
    with closing(connect(hurried[0])) as silent:
        assert read_to_end(silent) == b""


def test_an_answer_comes_as_a_whole(hurried: tuple[str, bytes]) -> None:
    """Whoever waits for it is woken once, not by its head and then by its body."""
    with closing(connect(hurried[0])) as client:
        for _ in range(20):
            client.sendall(b"GET /assets/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = client.recv(1 << 20).partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}\r\n".encode() in head + b"\r\n"


def test_blank_lines_keep_no_connection_open(hurried: tuple[str, bytes]) -> None:
    with closing(connect(hurried[0])) as slow:
        slow.sendall(b"GET /assets/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")
        slow.sendall(b"\r\n")
        read_to_end(slow)


@pytest.mark.parametrize("path", ["/mcp", "/knowledge/search", "/messages/?session_id=" + 32 * "0"])
def test_a_slow_body_is_cut_off_with_a_valid_key_too(hurried: tuple[str, bytes], path: str) -> None:
    url, key = hurried
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nContent-Type: application/json\r\n"
    with closing(connect(url)) as slow:
        slow.sendall(head.encode() + key + b"\r\n" + b'{"query": ')
        assert read_to_end(slow).startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_is_not_read_is_given_up(hurried: tuple[str, bytes], tmp_path: Path) -> None:
    """It asks for far more than the system's own buffers hold, reads nothing, and is heard no more."""
    with serve(tmp_path, **HURRIED) as (server, url):
        with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(WAIT_SECONDS)
            host, port = url.removeprefix("http://").split(":")
            slow.connect((host, int(port)))
            request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            slow.sendall(500 * request)
            assert server.read_log("answer not read")["bytes"] > 0
        assert httpx2.get(f"{url}/health").status_code == 200


def test_a_stream_of_events_outlives_every_deadline(hurried: tuple[str, bytes]) -> None:
    url, key = hurried
    with closing(connect(url)) as listener, closing(connect(url)) as slow:
        listener.sendall(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n" + key + b"\r\n")
        assert listener.recv(65536).startswith(b"HTTP/1.1 200 ")
        slow.sendall(HALF)  # the deadline of this one is the later one
        read_to_end(slow)
        listener.setblocking(False)
        while True:
            try:
                assert listener.recv(65536) != b""
            except BlockingIOError:
                break


@pytest.mark.parametrize("body", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_request_with_two_ends_is_refused_and_ends_the_connection(hurried: tuple[str, bytes], body: bytes) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with closing(connect(hurried[0])) as smuggler:
        smuggler.sendall(head + body)
        answer = read_to_end(smuggler)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("number", [300, pytest.param(1200, marks=pytest.mark.soak)])
def test_half_sent_requests_keep_nobody_out(tmp_path: Path, number: int) -> None:
    """They come from the good client's own address, and their deadlines are far away."""
    patient = {"REFDESK_HEADER_TIMEOUT_SECONDS": "3600", "REFDESK_BODY_TIMEOUT_SECONDS": "3600"}
    with serve(tmp_path, "-c", CRAMPED, **PATIENT, **patient) as (_, url), ExitStack() as stack:
        _, headers = make_key(tmp_path, "--scope", "knowledge:read")
        for _ in range(number):
            slow = stack.enter_context(closing(connect(url)))
            slow.sendall(HALF)
        for _ in range(20):
            answer = httpx2.post(f"{url}/knowledge/search", json={"query": "x"}, headers=headers)
            assert answer.status_code == 200


ASKED = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"
QUESTION = b'{"query": "anything"}'


@pytest.mark.parametrize("path", ["/health", "/ready", "/", "/docs", "/openapi.json"])
def test_who_sends_no_more_is_answered_all_the_same(hurried: tuple[str, bytes], path: str) -> None:
    with closing(connect(hurried[0])) as client:
        client.sendall(3 * (ASKED % path.encode() + b"\r\n"))
        client.shutdown(socket.SHUT_WR)
        answers = read_to_end(client)
    assert answers.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("path", ["/knowledge/search", "/mcp"])
def test_who_sends_no_more_than_a_question_is_answered(hurried: tuple[str, bytes], path: str) -> None:
    url, key = hurried
    opening = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}).encode()
    body = QUESTION if path != "/mcp" else opening
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    with closing(connect(url)) as client:
        accepts = b"Accept: application/json, text/event-stream\r\n"
        client.sendall(head.encode() + accepts + key + b"\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        answer = read_to_end(client)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"}")


@pytest.mark.parametrize("sent", [HALF, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"])
def test_who_sends_no_more_than_half_a_request_is_let_go(tmp_path: Path, sent: bytes) -> None:
    patient = {"REFDESK_HEADER_TIMEOUT_SECONDS": "3600", "REFDESK_BODY_TIMEOUT_SECONDS": "3600"}
    with serve(tmp_path, **PATIENT, **patient) as (_, url), closing(connect(url)) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert read_to_end(client) == b""


@pytest.mark.parametrize("path", ["/sse", "/console/events"])
def test_a_stream_ends_for_who_sends_no_more(hurried: tuple[str, bytes], path: str) -> None:
    """It may have gone: nothing but a write would tell."""
    url, key = hurried
    with closing(connect(url)) as listener:
        listener.sendall(ASKED % path.encode() + key + b"\r\n")
        assert listener.recv(65536).startswith(b"HTTP/1.1 200 ")
        listener.shutdown(socket.SHUT_WR)
        read_to_end(listener)


@pytest.mark.parametrize("path", ["/sse", "/console/events"])
def test_who_has_gone_before_a_stream_begins_is_no_error(tmp_path: Path, path: str) -> None:
    with serve(tmp_path, **PATIENT) as (server, url):
        _, headers = make_key(tmp_path, "--scope", "knowledge:read")
        with closing(connect(url)) as client:
            key = f"Authorization: {headers['authorization']}\r\n\r\n".encode()
            client.sendall(ASKED % path.encode() + key)
            client.shutdown(socket.SHUT_WR)
            read_to_end(client)
        server.process.terminate()
        _, _, log = server.close()
    assert '"level": "error"' not in log


@pytest.mark.parametrize("path", ["/sse", "/console/events", "/docs"])
def test_the_head_of_an_answer_leaves_the_connection_for_the_next(hurried: tuple[str, bytes], path: str) -> None:
    url, key = hurried
    with closing(connect(url)) as client:
        client.sendall(ASKED.replace(b"GET", b"HEAD") % path.encode() + key + b"\r\n")
        client.sendall(ASKED % b"/health" + b"Connection: close\r\n\r\n")
        answers = read_to_end(client)
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert answers.endswith(b"}")
