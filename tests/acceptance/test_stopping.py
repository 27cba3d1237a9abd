"""A server that is told to stop ends what is open as it should end: no client takes it for a fault."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from tests.acceptance.processes import WAIT_SECONDS, start
from tests.acceptance.test_revoked_streams import Opened, open_legacy, open_listen, open_sse

SERVE = ["-m", "refdesk", "serve", "--no-auth", "--port", "0", "--sse", "--toolset", "knowledge"]


@contextmanager
def open_page(client: httpx2.Client) -> Generator[Opened]:
    with client.stream("GET", "/console/events") as stream:
        yield Opened(stream, stream.iter_bytes())


def test_streams_end_whole_and_nothing_is_logged_as_an_error(tmp_path: Path) -> None:
    kinds = {"legacy": open_legacy, "sse": open_sse, "listen": open_listen, "page": open_page}
    with start(SERVE, tmp_path, REFDESK_EMBEDDER="hashing") as server, ExitStack() as stack:
        url = server.read_log("listening")["url"]
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=WAIT_SECONDS))
        opened = {name: stack.enter_context(kind(client)) for name, kind in kinds.items()}
        assert {each.stream.status_code for each in opened.values()} == {200}
        assert b"acknowledged" in next(opened["listen"].chunks)
        server.process.send_signal(signal.SIGTERM)
        # Each is read to its end; a stream that is cut off raises.
        rest = {name: b"".join(each.chunks) for name, each in opened.items()}
        assert server.process.wait(timeout=WAIT_SECONDS) == 0
        entries = [json.loads(line) for line in server.said]
    [ended] = [json.loads(line.removeprefix(b"data: ")) for line in rest["listen"].split(b"\r\n") if b"result" in line]
    assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == ended["id"] == 1
    assert [entry for entry in entries if entry["level"] not in {"info", "debug"}] == []
