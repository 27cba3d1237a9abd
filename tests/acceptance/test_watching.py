"""Watches as their users meet them: real servers, a terminal that follows, kills and several servers on one store."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from refdesk.core.background.quiet import QUIET_SECONDS
from tests.acceptance.processes import WAIT_SECONDS, Running, start

SERVE = ("-m", "refdesk", "serve", "--port", "0", "--no-auth", "--toolset", "knowledge", "--toolset", "skills")
LOOK_SECONDS = 2 * QUIET_SECONDS
"""Who asks more often keeps a server from what it does when nobody waits for an answer."""


@contextmanager
def serve(home: Path, **variables: str) -> Generator[tuple[Running, httpx2.Client]]:
    with (
        start(SERVE, home, REFDESK_EMBEDDER="hashing", REFDESK_AGENT="ann", **variables) as server,
        httpx2.Client(base_url=server.read_log("listening")["url"], timeout=WAIT_SECONDS) as client,
    ):
        yield server, client


def store(client: httpx2.Client, title: str) -> str:
    answer = client.post("/knowledge", json={"title": title, "body": "It is 12."})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def watch(client: httpx2.Client) -> None:
    assert client.post("/watches", json={"kind": "search", "subject": "gate code"}).status_code == 200


def await_news(client: httpx2.Client, count: int) -> list[dict[str, Any]]:
    """Return the news, once there are so many."""
    while True:
        news = list(client.get("/watches/news", params={"after": 0, "limit": 200}).json()["news"])
        if len(news) >= count:
            return news
        time.sleep(LOOK_SECONDS)


def test_a_terminal_follows_and_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    with serve(tmp_path) as (_, client):
        watch(client)
        command = ("-m", "refdesk", "watch", "--json", "--since", "2026-01-01")
        with start(command, tmp_path, REFDESK_AGENT="ann") as terminal:
            for number in range(2):
                id = store(client, f"Gate code {number}")
                assert terminal.receive()["id"] == id
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.process.wait(timeout=WAIT_SECONDS) == 0


def test_what_was_committed_before_a_kill_is_reported_once_after_it(tmp_path: Path) -> None:
    ids: list[str] = []
    with serve(tmp_path) as (server, client):
        watch(client)
        ids += [store(client, f"Gate code {number}") for number in range(5)]
        server.process.kill()
        server.process.wait(timeout=WAIT_SECONDS)
    with serve(tmp_path) as (_, client):
        ids.append(store(client, "Gate code after the kill"))
        assert [each["id"] for each in await_news(client, len(ids))] == ids


def check_three_servers(home: Path, **variables: str) -> None:
    """Each note is reported once, whichever server it was stored through, whichever noticed, and whichever is left."""
    with ExitStack() as stack:
        servers: list[Running] = []
        clients: list[httpx2.Client] = []
        for number in range(3):
            folder = home if not variables else home / str(number)
            folder.mkdir(exist_ok=True)
            server, client = stack.enter_context(serve(folder, **variables))
            servers.append(server)
            clients.append(client)
        watch(clients[0])
        ids = [store(clients[number % 3], f"Gate code {number}") for number in range(12)]
        await_news(clients[1], len(ids))
        # Whoever was about to report the last one is gone at once; the others do it.
        ids.append(store(clients[0], "The gate code before the kill"))
        servers[0].process.kill()
        servers[0].process.wait(timeout=WAIT_SECONDS)
        await_news(clients[1], len(ids))
        # What would be reported a second time comes before what is stored after it.
        ids.append(store(clients[2], "The last gate code"))
        for client in clients[1:]:
            news = await_news(client, len(ids))
            assert [each["id"] for each in news] == ids
            assert [each["number"] for each in news] == list(range(1, len(ids) + 1))


def test_three_servers_on_one_file_report_each_thing_once(tmp_path: Path) -> None:
    check_three_servers(tmp_path)
