"""One desk for every client of a data folder: real processes, as hosts start them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from refdesk.forwarder.locking import FileLock
from tests.acceptance.processes import TOOLS, Running, list_desks, shake_hands, start

SERVE = ["-m", "refdesk", "serve", "--stdio"]
HASHING = {"REFDESK_EMBEDDER": "hashing"}


def call(server: Running, name: str, arguments: dict[str, Any], id: int = 9) -> dict[str, Any]:
    result = server.ask(id, "tools/call", {"name": name, "arguments": arguments})["result"]
    assert not result.get("isError"), result
    return result["structuredContent"]


def test_clients_share_one_desk_and_each_is_its_own_agent(tmp_path: Path) -> None:
    with start([*SERVE, "--agent", "ann"], tmp_path, **HASHING) as ann, start(SERVE, tmp_path, **HASHING) as probe:
        for server in (ann, probe):
            shake_hands(server)
            assert [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]] == TOOLS
        ids = [call(server, "store_knowledge", {"title": "Refund", "body": "b"})["id"] for server in (ann, probe)]
        assert [call(ann, "get_knowledge", {"id": id})["author"] for id in ids] == ["ann", "probe"]
        with start([*SERVE, "--org", "acme"], tmp_path, **HASHING) as other:
            shake_hands(other)
            assert call(other, "search_knowledge", {"query": "refund"})["results"] == []
        assert len(list_desks(tmp_path)) == 1
        assert [server.close()[0] for server in (ann, probe)] == [0, 0]


def test_twenty_first_starts_at_the_same_moment_make_one_desk(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(start(SERVE, tmp_path, **HASHING)) for _ in range(20)]
        for server in servers:
            shake_hands(server)
        assert len({server.ask(2, "tools/list")["result"]["tools"][0]["name"] for server in servers}) == 1
        [desk] = list_desks(tmp_path)
        assert list_processes(tmp_path) == [desk]


def list_processes(home: Path) -> list[int]:
    """Return every process that was started as a desk of a data folder, announced or not."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_desk = b"refdesk.server.local\0" in (folder / "cmdline").read_bytes()
            if is_desk and f"REFDESK_HOME={home}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_for_end(home: Path) -> None:
    """Return once no process is left of what was killed: the system takes its time to bury them."""
    while list_processes(home):
        os.sched_yield()


def kill(home: Path) -> None:
    [desk] = list_desks(home)
    os.kill(desk, signal.SIGKILL)


def test_a_client_goes_on_when_the_desk_is_killed_between_its_calls(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as server:
        shake_hands(server)
        id = call(server, "store_knowledge", {"title": "Refund limit", "body": "500"})["id"]
        kill(tmp_path)
        assert call(server, "get_knowledge", {"id": id})["body"] == "500"
        assert call(server, "search_knowledge", {"query": "refund"})["results"][0]["author"] == "probe"
        assert server.close()[0] == 0


def test_other_settings_have_another_desk(tmp_path: Path) -> None:
    with (
        start(SERVE, tmp_path, **HASHING) as one,
        start(SERVE, tmp_path, **HASHING, REFDESK_GEMINI_API_KEY="secret") as other,
    ):
        for server in (one, other):
            shake_hands(server)
        assert len(list_desks(tmp_path)) == 2
        names = [path.name for path in (tmp_path / "desk").iterdir()]
        assert not [name for name in names if "secret" in name and name != "secret"]


@pytest.fixture
def loopback(tmp_path: Path) -> Generator[Running]:
    with start(SERVE, tmp_path, **HASHING, REFDESK_DESK_SOCKET="loopback") as server:
        yield server


def test_the_same_works_on_loopback_with_a_secret(loopback: Running, tmp_path: Path) -> None:
    shake_hands(loopback)
    assert call(loopback, "store_knowledge", {"title": "Refund", "body": "b"})["id"]
    [said] = [json.loads(path.read_text()) for path in (tmp_path / "desk").glob("*.json")]
    assert isinstance(said["address"], int)
    kill(tmp_path)
    assert call(loopback, "search_knowledge", {"query": "refund"})["results"]


def test_a_mistake_in_the_settings_ends_the_command_with_its_reason(tmp_path: Path) -> None:
    with start([*SERVE, "--tools", "store_knowlege"], tmp_path, **HASHING) as server:
        status, out, err = server.close()
    assert (status, out) == (1, "")
    assert "store_knowledge" in err
    with start(SERVE, tmp_path, REFDESK_EMBEDDER="hashin") as server:
        status, out, err = server.close()
    assert (status, out) == (1, "")
    assert "REFDESK_EMBEDDER" in err


def test_where_no_desk_can_be_reached_the_client_is_served_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with start(SERVE, tmp_path / "file" / "home", **HASHING) as server:
        shake_hands(server)
        assert server.ask(2, "tools/list")["result"]["tools"]
        status, _, err = server.close()
    assert status == 0
    assert "served in this process" in err


def open_session(server: Running) -> list[dict[str, Any]]:
    """Return the results of what hosts ask first."""
    opened = shake_hands(server)["result"]
    lists = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    return [opened, *(server.ask(number, method)["result"] for number, method in enumerate(lists, 2))]


def test_while_a_desk_starts_the_first_questions_are_answered_as_it_answered_them_last(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as server:
        shown = open_session(server)
    wait_for_end(tmp_path)
    [lock] = (tmp_path / "desk").glob("*.start")
    held = FileLock(str(lock))
    assert held.take()
    try:  # nobody can start a desk now
        with start(SERVE, tmp_path, **HASHING) as server:
            assert open_session(server) == shown
            assert list_processes(tmp_path) == []
            held.release()
            assert call(server, "store_knowledge", {"title": "Refund", "body": "b"})["id"]
            assert server.ask(7, "tools/list")["result"] == shown[1]
    finally:
        held.release()
    with start([*SERVE, "--isolated"], tmp_path, **HASHING) as server:
        assert open_session(server) == shown


def test_a_client_that_got_a_list_that_is_no_longer_so_hears_of_it(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as server:
        shown = open_session(server)
    [kept] = (tmp_path / "desk").glob("*.snapshot")
    kept.write_text(kept.read_text().replace("store_knowledge", "keep_knowledge"))
    with start(SERVE, tmp_path, **HASHING) as server:
        shake_hands(server)
        assert server.ask(2, "tools/list")["result"] != shown[1]
        assert server.receive() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert server.ask(3, "tools/list")["result"] == shown[1]
