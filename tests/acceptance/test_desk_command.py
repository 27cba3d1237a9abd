"""What people do with the desk: look at it, stop it, ask it from the command line, serve HTTP beside it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import refdesk
from refdesk.forwarder.locking import FileLock
from refdesk.forwarder.rendezvous import list_places
from tests.acceptance.processes import list_desks, run, shake_hands, start
from tests.acceptance.test_desk import HASHING, SERVE, call


def test_the_command_line_asks_the_desk_that_runs_and_works_alone_where_none_does(tmp_path: Path) -> None:
    store = ["knowledge", "store", "--title", "Refund limit", "--body", "500", "--agent", "ann", "--json"]
    alone = json.loads(run(store, tmp_path, **HASHING).stdout)
    assert list_desks(tmp_path) == []
    with start(SERVE, tmp_path, **HASHING) as server:
        shake_hands(server)
        stored = json.loads(run(store, tmp_path, **HASHING).stdout)
        entry = call(server, "get_knowledge", {"id": stored["id"]})
        assert (entry["author"], stored["id"] != alone["id"]) == ("ann", True)
        found = run(["search", "--toolset", "knowledge", "refund", "--json"], tmp_path, **HASHING)
        assert {hit["id"] for hit in json.loads(found.stdout)["results"]} == {alone["id"], stored["id"]}
        # A file that is gone would be an empty store to whoever opens it: only the desk still has this one.
        missing = run(["knowledge", "get", "01900000-0000-7000-8000-000000000000"], tmp_path, **HASHING)
        assert missing.returncode == 2
        log = next((tmp_path / "desk").glob("*.log")).read_text()
        assert re.search('"target": "get_knowledge".*"transport": "cli"', log)


def test_status_shows_the_desk_and_its_clients_and_stop_ends_it_but_not_them(tmp_path: Path) -> None:
    assert "No desk runs" in run(["status"], tmp_path).stdout
    with start([*SERVE, "--agent", "ann"], tmp_path, **HASHING) as server:
        shake_hands(server)
        [pid] = list_desks(tmp_path)
        [desk] = json.loads(run(["status", "--json"], tmp_path).stdout)["desks"]
        [client] = desk["clients"]
        assert (desk["pid"], desk["kind"], desk["memory"] > 10_000_000) == (pid, "desk", True)
        assert (client["client"], client["agent"], client["pid"]) == ("probe", "ann", server.process.pid)
        shown = run(["status"], tmp_path).stdout
        assert f"Desk {pid}" in shown
        assert "probe as ann of local" in shown
        assert f"The desk {pid} has ended." in run(["stop"], tmp_path).stdout
        assert list_desks(tmp_path) == []
        assert call(server, "store_knowledge", {"title": "Refund limit", "body": "500"})["id"]
        assert list_desks(tmp_path) not in ([], [pid])
        assert server.close()[0] == 0


def test_a_server_over_http_takes_the_desks_place_and_gives_it_back(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as client:
        shake_hands(client)
        [first] = list_desks(tmp_path)
        id = call(client, "store_knowledge", {"title": "Refund limit", "body": "500"})["id"]
        with start(["-m", "refdesk", "serve", "--port", "0", "--no-auth"], tmp_path, **HASHING) as server:
            server.read_log("listening")
            server.read_log("the desk serves")
            assert call(client, "get_knowledge", {"id": id})["body"] == "500"
            assert list_desks(tmp_path) == [server.process.pid] != [first]
            server.process.terminate()
            assert server.process.wait(20) == 0
        assert call(client, "get_knowledge", {"id": id})["body"] == "500"
        assert list_desks(tmp_path) not in ([], [first], [server.process.pid])


def test_a_desk_ends_some_time_after_its_last_client(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING, REFDESK_DESK_IDLE="0.2") as client:
        shake_hands(client)
        [place] = (tmp_path / "desk").glob("*.lock")
        assert client.close()[0] == 0
        lock = FileLock(str(place))
        assert lock.take(40.0)
        lock.release()
    assert list((tmp_path / "desk").glob("*.json")) == []
    assert "no client for" in next((tmp_path / "desk").glob("*.log")).read_text()


NEWER = "import refdesk\nrefdesk.__version__ = '9.0.0'\n"
ANSWERS_LATE = """
import anyio
from refdesk.server.local.lines import Session
write = Session.write
async def write_late(self, text):
    await anyio.sleep(1)
    return await write(self, text)
Session.write = write_late
"""


def plant(folder: Path, code: str) -> dict[str, str]:
    """Return the variables with which every Python process runs this first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def test_a_newer_version_takes_over_once_calls_in_hand_are_answered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with start(SERVE, home, **HASHING, **plant(tmp_path / "slow", ANSWERS_LATE)) as old:
        shake_hands(old)
        [first] = list_places(str(home))
        arguments = {"title": "Refund limit", "body": "500"}
        params = {"name": "store_knowledge", "arguments": arguments}
        old.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        with start(SERVE, home, **HASHING, **plant(tmp_path / "new", NEWER)) as new:
            shake_hands(new)
            stored = old.receive()["result"]
            assert not stored.get("isError")
            [second] = list_places(str(home))
            assert (first[1].version, second[1].version) == (refdesk.__version__, "9.0.0")
            for client in (old, new):
                assert call(client, "get_knowledge", {"id": stored["structuredContent"]["id"]})["body"] == "500"
            assert [found for _, found in list_places(str(home))] == [second[1]]


WORKS = """
import os
from pathlib import Path
home = Path(os.environ["REFDESK_HOME"])
if "refdesk.server.local" in Path("/proc/self/cmdline").read_text():
    from refdesk.app import Desk
    def list_work(self):
        with (home / "looked").open("a") as file:
            file.write("x")
        return ["embedding"] if (home / "busy").exists() else []
    Desk.list_work = list_work
"""


def test_a_desk_never_ends_while_it_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "busy").touch()
    variables = {**HASHING, **plant(tmp_path / "planted", WORKS), "REFDESK_DESK_IDLE": "0.1"}
    with start(SERVE, home, **variables) as client:
        shake_hands(client)
        assert client.close()[0] == 0
        [(place, found)] = list_places(str(home))
        (home / "looked").write_text("")
        while len((home / "looked").read_text()) < 5:
            os.kill(found.pid, 0)
        (home / "busy").unlink()
        lock = place.get_life_lock()
        assert lock.take(40.0)
        lock.release()


HEAVY = {"mcp", "pydantic", "numpy", "asyncio", "anyio", "click", "ssl", "subprocess", "dataclasses", "inspect"} | {
    *("typing", "hashlib", "socket", "selectors"),  # which take a fifth of a forwarder's memory
}


def test_a_forwarder_whose_desk_runs_imports_next_to_nothing(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as first:
        shake_hands(first)  # whoever is there before a desk runs imports what starts one
        with start(["-X", "importtime", *SERVE], tmp_path, **HASHING) as second:
            shake_hands(second)
            status, _, err = second.close()
    loaded = {line.rpartition("|")[2].strip() for line in err.splitlines() if "import time" in line}
    assert status == 0
    assert "refdesk.forwarder.carrying" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert {name for name in loaded if name.startswith("refdesk.") and "forwarder" not in name} == set()


NO_DESK = """
import os
from pathlib import Path
if b"refdesk.server.local" in Path("/proc/self/cmdline").read_bytes():
    os._exit(3)
"""


def test_where_desks_cannot_be_started_a_client_is_served_whether_it_was_answered_already_or_not(
    tmp_path: Path,
) -> None:
    home, planted = tmp_path / "home", plant(tmp_path / "planted", NO_DESK)
    with start(SERVE, home, **HASHING, **planted) as client:
        shake_hands(client)
        id = call(client, "store_knowledge", {"title": "Refund limit", "body": "500"})["id"]
        status, _, err = client.close()
        assert (status, "served in this process" in err) == (0, True)
    with start(SERVE, home, **HASHING) as client:
        shake_hands(client)
    with start(SERVE, home, **HASHING, **planted) as client:
        shake_hands(client)
        assert call(client, "get_knowledge", {"id": id})["body"] == "500"
        status, _, err = client.close()
        assert (status, "served in a process of its own" in err) == (0, True)
