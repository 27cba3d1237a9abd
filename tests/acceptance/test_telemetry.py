"""Traces and metrics as an operator gets them: real servers, and a receiver in a process of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.processes import Running, run, start
from tests.emulators.otlp import Received, SpanSeen, read_metrics, read_received, read_spans, receiving
from tests.test_cli import refdesk

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"
SECRET = "zanzibar"
"""Part of everything that callers write here."""


@contextmanager
def serve(home: Path, *options: str, **variables: str) -> Generator[tuple[Running, str]]:
    arguments = ["-m", "refdesk", "serve", "--port", "0", *options]
    with start(arguments, home, REFDESK_EMBEDDER="hashing", **variables) as server:
        yield server, server.read_log("listening")["url"]


def stop(server: Running) -> str:
    """End a server as an operator does; return what else it logged."""
    server.process.send_signal(signal.SIGTERM)
    status, _, errors = server.close()
    assert status == 0
    return errors


async def call_everything(url: str, key: str) -> str:
    """Call by REST and MCP, well and badly, with the secret wherever a caller may write; return the note's id."""
    headers = {"authorization": f"Bearer {key}", "traceparent": TRACEPARENT, "tracestate": f"{SECRET}=1"}
    note: dict[str, Any] = {"title": f"The {SECRET} note", "body": f"{SECRET} {SECRET}", "tags": [SECRET]}
    async with httpx2.AsyncClient(base_url=url, headers=headers) as rest:
        stored = (await rest.post("/knowledge", json=note)).json()
        assert (await rest.get(f"/knowledge/{SECRET}")).status_code == 400
        assert (await rest.post("/knowledge/search", json={"query": SECRET})).status_code == 200
        assert (await rest.post("/knowledge/search", json={SECRET: SECRET})).status_code == 400
        assert (await rest.post("/search", json={"query": SECRET}, headers={"traceparent": SECRET})).status_code == 200
    async with (
        httpx2.AsyncClient(headers={"authorization": headers["authorization"]}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        meta: Any = {"traceparent": f"00-{OTHER_TRACE}-{PARENT}-01", "tracestate": f"{SECRET}=1", "baggage": SECRET}
        await client.call_tool("search_knowledge", {"query": f"{SECRET} by mcp"}, meta=meta)
        for ask in (client.read_resource(f"skill://{SECRET}/SKILL.md"), client.call_tool(SECRET, {SECRET: SECRET})):
            with pytest.raises(MCPError):
                await ask
    return stored["id"]


def find(spans: list[SpanSeen], name: str, **attributes: str) -> list[SpanSeen]:
    wanted = {f"refdesk.{key}": value for key, value in attributes.items()}.items()
    return [span for span in spans if span.name == name and wanted <= span.attributes.items()]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[list[Received], str, tuple[str, ...]]]:
    """What a server sent of a morning's work, its page of metrics, and what must not be in it."""
    import anyio

    home = tmp_path_factory.mktemp("home")
    scopes = [part for scope in ("knowledge:read", "knowledge:write", "skills:read") for part in ("--scope", scope)]
    made = refdesk(home, ["keys", "create", "--org", "orgof", "--agent", f"agent-{SECRET}", *scopes]).stdout
    page_key = refdesk(home, ["keys", "create", "--agent", "page", "--scope", "metrics:read"]).stdout
    [key], [reader] = re.findall(r"refdesk_[\w-]+", made), re.findall(r"refdesk_[\w-]+", page_key)
    with receiving() as address:
        feed = {"REFDESK_AZURE_UPDATES_URL": f"{address}/feed"}
        with serve(home, REFDESK_OTLP_ENDPOINT=address, **feed) as (server, url):
            note = anyio.run(call_everything, url, key)
            page = httpx2.get(f"{url}/metrics", headers={"authorization": f"Bearer {reader}"}).text
            stop(server)
        yield read_received(address), page, (SECRET, note, key, "orgof", TRACEPARENT)


def test_each_call_is_one_span_of_the_trace_that_its_caller_names(
    told: tuple[list[Received], str, tuple[str, ...]],
) -> None:
    spans = read_spans(told[0])
    [stored] = find(spans, "store_knowledge", transport="rest", toolset="knowledge", outcome="ok")
    assert (stored.trace, stored.parent, stored.kind) == (TRACE, PARENT, 2)
    [refused] = find(spans, "get_knowledge", outcome="INVALID_INPUT")
    assert refused.status == 0, "a caller's mistake is no failure of the server"
    [by_mcp] = find(spans, "search_knowledge", transport="mcp")
    assert (by_mcp.trace, by_mcp.parent) == (OTHER_TRACE, PARENT)
    [malformed] = find(spans, "search_everything") or find(spans, "search_skills")
    assert malformed.parent == ""
    assert len(find(spans, "search_knowledge", transport="rest")) == 2


def test_a_call_is_made_of_its_parts(told: tuple[list[Received], str, tuple[str, ...]]) -> None:
    spans = read_spans(told[0])
    [call] = find(spans, "search_knowledge", transport="mcp")
    below = [span for span in spans if span.parent == call.id]
    [search] = [span for span in below if span.name == "search"]
    parts = {span.name for span in spans if span.parent == search.id}
    assert {"embed", "store find"} <= parts
    [stored] = find(spans, "store_knowledge")
    assert "store transaction" in {span.name for span in spans if span.parent == stored.id}


def test_background_work_is_traced_and_its_trace_goes_on_at_the_feed(
    told: tuple[list[Received], str, tuple[str, ...]],
) -> None:
    spans = read_spans(told[0])
    [sync] = find(spans, "sync", toolset="azure-updates")
    assert sync.status == 2
    calls = [span for span in spans if span.name == "call feed" and span.trace == sync.trace]
    asked = [one.headers["traceparent"] for one in told[0] if one.path.startswith("/feed")]
    assert [header[:-3] for header in asked] == [f"00-{call.trace}-{call.id}" for call in calls]
    assert find(spans, "embed", of="passages")


def test_no_byte_that_is_sent_is_a_callers(told: tuple[list[Received], str, tuple[str, ...]]) -> None:
    received, page, secrets = told
    bodies = b"".join(one.body for one in received)
    assert len(read_spans(received)) > 20
    for secret in secrets:
        assert secret.encode() not in bodies
        assert secret not in page
    assert not any(SECRET in str(one.headers) for one in received)


def test_metrics_are_those_of_the_page(told: tuple[list[Received], str, tuple[str, ...]]) -> None:
    received, page, _ = told
    shown = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if re.match("refdesk_(?!.*(_bucket|_sum|_created)$)", sample.name)
    }
    sent = read_metrics(received)
    # What goes by ages may have changed since.
    assert {key: sent.get(key) for key in shown if "seconds" not in key[0] or "count" in key[0]} == {
        key: value for key, value in shown.items() if "seconds" not in key[0] or "count" in key[0]
    }
    assert {key for key in sent if key[0].startswith("refdesk_")} == shown.keys()
    assert ("process_open_fds", frozenset[tuple[str, str]]()) in sent


def test_a_receiver_that_is_silent_holds_up_neither_calls_nor_the_end(tmp_path: Path) -> None:
    with receiving() as address:
        # Longer than any test may take: what waited for it would be seen.
        slow = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{address}/silent", "OTEL_EXPORTER_OTLP_TIMEOUT": "3600"}
        with (
            serve(tmp_path, "--no-auth", OTEL_BSP_SCHEDULE_DELAY="1", **slow) as (server, url),
            httpx2.Client() as http,
        ):
            while not any(one.path == "/silent/v1/traces" for one in read_received(address)):
                assert http.post(f"{url}/knowledge/search", json={"query": "x"}).status_code == 200
            for _ in range(20):
                assert http.post(f"{url}/knowledge/search", json={"query": "x"}).status_code == 200
            stop(server)


def test_a_receiver_that_is_not_there_is_said_once_and_the_log_shows_no_more(tmp_path: Path) -> None:
    nowhere = {"REFDESK_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_SCHEDULE_DELAY": "1"}
    with serve(tmp_path, "--no-auth", **nowhere) as (server, url), httpx2.Client() as http:
        for _ in range(20):
            assert http.post(f"{url}/knowledge/search", json={"query": "x"}).status_code == 200
        assert stop(server).count("telemetry not sent") <= 1


def without_the_extra(tmp_path: Path) -> dict[str, str]:
    """An environment in which the extra's packages cannot be imported, as where they are not installed."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    return {"PYTHONPATH": str(tmp_path)}


def test_without_the_extra_a_receiver_is_an_error_that_names_the_command(tmp_path: Path) -> None:
    variables = {"REFDESK_OTLP_ENDPOINT": "http://127.0.0.1:9", **without_the_extra(tmp_path)}
    found = run(["serve", "--no-auth", "--port", "0"], tmp_path / "home", **variables)
    assert found.returncode != 0
    assert "REFDESK_OTLP_ENDPOINT names where traces go" in found.stderr
    assert "pip install 'refdesk[otel]'" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("off", [{"REFDESK_OTLP_ENDPOINT": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_it_can_be_switched_off_for_refdesk_alone(tmp_path: Path, off: dict[str, str]) -> None:
    ambient = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with serve(tmp_path / "home", "--no-auth", **ambient, **off, **without_the_extra(tmp_path)) as (server, url):
        assert httpx2.get(f"{url}/docs").status_code == 200
        stop(server)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "often"}, "milliseconds"),
        ({}, "pip install 'refdesk[otel]'"),
    ],
)
def test_what_standard_variables_want_and_there_is_not_stops_no_server(
    tmp_path: Path, asked: dict[str, str], reason: str
) -> None:
    ambient = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **asked, **without_the_extra(tmp_path)}
    arguments = ["-m", "refdesk", "serve", "--port", "0", "--no-auth"]
    with start(arguments, tmp_path / "home", REFDESK_EMBEDDER="hashing", **ambient) as server:
        assert reason in server.read_log("telemetry not sent")["reason"]
        server.read_log("listening")
        stop(server)
