from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.model import Principal
from refdesk.server import strict_json
from refdesk.server.gate import SECURITY_HEADERS
from tests.server.conftest import URL, open_http
from tests.server.echo import READER, SECRET

JSON = {"content-type": "application/json"}


async def test_a_post_answers_in_compact_json(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/search", json={"query": "ä", "limit": 1})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.text == '{"results":[{"id":"0","title":"ä 0","sortName":"first"}],"total":5,"hasMore":true}'


async def test_a_get_takes_its_arguments_from_path_and_query(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/echo/items/abc", params={"loud": "true"})
    assert response.json() == {"said": "ABC", "by": "tester"}


async def test_a_post_takes_nothing_from_its_query(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/search?limit=1", json={"query": "hi"})
    assert response.status_code == 400
    assert "body" in response.json()["error"]["message"]


async def test_a_query_parameter_given_twice_is_refused(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/echo/items/abc?loud=true&loud=false")
    assert response.status_code == 400


async def test_a_resource_says_how_long_it_keeps(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/echo/guide")
    assert response.json() == {"said": "guide", "by": "local"}
    assert response.headers["cache-control"] == "private, max-age=90"


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("invalid", 400),
        ("unauthenticated", 401),
        ("denied", 403),
        ("missing", 404),
        ("conflict", 409),
        ("large", 413),
        ("limit", 429),
        ("world", 500),
        ("operator", 500),
        ("bug", 500),
    ],
)
async def test_each_error_has_its_status(rest: httpx2.AsyncClient, how: str, status: int) -> None:
    response = await rest.post("/echo/fail", json={"how": how})
    assert response.status_code == status
    assert response.json()["error"]["message"]


async def test_a_limit_says_in_whole_seconds_when_to_try_again(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/fail", json={"how": "limit"})
    assert response.headers["retry-after"] == "2"


async def test_a_missing_credential_says_which_kind_is_wanted(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/fail", json={"how": "unauthenticated"})
    assert response.headers["www-authenticate"] == 'Bearer realm="refdesk"'


async def test_a_flat_toolset_keeps_its_form(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/flat/fail", json={"how": "missing"})
    assert (response.status_code, response.json()) == (404, {"error": "NOT_FOUND", "detail": "No such thing."})


async def test_a_bug_shows_nothing_of_itself(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/fail", json={"how": "bug"})
    assert response.json()["error"]["code"] == "INTERNAL_ERROR"
    assert SECRET not in response.text


async def test_a_scope_that_is_missing_is_403(desk: Desk) -> None:
    async with open_http(desk, Principal("local", "x", frozenset())) as rest:
        assert (await rest.get("/echo/guide")).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"null",
        b'{"limit": NaN}',
        b'{"limit": 1e400}',
        b'{"query": "\\ud800"}',
        b'{"query": "\\u0000"}',
        b'{"query": "a", "query": "b"}',
        b'\xef\xbb\xbf{"query": "a"}',
        '{"query": "a"}'.encode("utf-16"),
        b'{"query": "\xff"}',
        b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"limit": ' + b"9" * 5000 + b"}",
        b'{"limit": "many"}',
        b'{"quer": "x"}',
        b'{"filters": 3}',
    ],
)
async def test_a_bad_body_is_400_with_a_reason(rest: httpx2.AsyncClient, body: bytes) -> None:
    response = await rest.post("/echo/search", content=body, headers=JSON)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "INVALID_INPUT"
    assert error["message"].endswith((".", "!", "?"))
    assert (await rest.get("/health")).status_code == 200


async def test_an_empty_body_is_told_what_to_send(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/search", content=b"", headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert "one JSON object, {} where none is left" in response.json()["error"]["message"]


async def test_a_body_that_is_not_said_to_be_json_is_refused(rest: httpx2.AsyncClient) -> None:
    response = await rest.post("/echo/search", content=b"{}", headers={"content-type": "text/plain"})
    assert response.status_code == 400
    assert "Content-Type: application/json" in response.json()["error"]["message"]


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 400), ("identity", 200)])
async def test_a_packed_body_is_refused_by_name(rest: httpx2.AsyncClient, encoding: str, status: int) -> None:
    body = b'{"query": "x"}' if encoding == "identity" else gzip.compress(b'{"query": "x"}')
    response = await rest.post("/echo/search", content=body, headers=JSON | {"content-encoding": encoding})
    assert response.status_code == status, response.text
    assert ("without Content-Encoding" in response.text) == (status == 400)


async def test_a_body_over_the_limit_is_413_whether_or_not_its_length_is_said(rest: httpx2.AsyncClient) -> None:
    body = b'{"query": "' + b"x" * strict_json.MAX_BYTES + b'"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    said = await rest.post("/echo/search", content=body, headers=JSON)
    unsaid = await rest.post("/echo/search", content=pieces(), headers=JSON)
    assert (said.status_code, unsaid.status_code) == (413, 413)
    assert said.json()["error"]["code"] == unsaid.json()["error"]["code"] == "TOO_LARGE"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:80:80", "a@localhost", "", "x/"])
async def test_another_host_name_is_misdirected(rest: httpx2.AsyncClient, host: str) -> None:
    response = await rest.get("/health", headers={"host": host})
    assert response.status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8350", "LOCALHOST:9"])
async def test_every_name_of_this_machine_is_answered(rest: httpx2.AsyncClient, host: str) -> None:
    assert (await rest.get("/health", headers={"host": host})).status_code == 200


async def test_a_host_name_from_the_settings_is_answered(desk: Desk) -> None:
    desk.settings = desk.settings.model_copy(update={"allowed_hosts": ("Desk.Example",)})
    async with open_http(desk) as rest:
        assert (await rest.get("/health", headers={"host": "desk.example:443"})).status_code == 200


async def test_two_hosts_are_refused(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/health", headers=[("host", "localhost"), ("host", "localhost")])
    assert response.status_code == 400


async def test_a_foreign_page_may_not_call(rest: httpx2.AsyncClient, desk: Desk) -> None:
    for path in ("/health", "/mcp"):
        assert (await rest.get(path, headers={"origin": "http://evil.example"})).status_code == 403
    assert (await rest.get("/health", headers={"origin": "null"})).status_code == 403
    assert (await rest.get("/health", headers={"origin": URL})).status_code == 200


async def test_a_page_from_the_settings_may_call(desk: Desk) -> None:
    desk.settings = desk.settings.model_copy(update={"allowed_origins": ("https://pages.example",)})
    async with open_http(desk) as rest:
        assert (await rest.get("/health", headers={"origin": "https://pages.example"})).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        *("authorization", "content-type", "if-none-match", "last-event-id", "mcp-method", "mcp-name"),
        *("mcp-protocol-version", "mcp-session-id", "refdesk-org", "traceparent", "x-salesforce-token"),
    ],
)
async def test_a_page_from_the_settings_may_send_whatever_is_read(desk: Desk, header: str) -> None:
    desk.settings = desk.settings.model_copy(update={"allowed_origins": ("https://pages.example",)})
    asked = {"access-control-request-method": "POST", "access-control-request-headers": header}
    async with open_http(desk) as rest:
        answer = await rest.options("/mcp", headers={"origin": "https://pages.example", **asked})
    assert answer.status_code == 200


async def test_every_reply_carries_the_security_headers(rest: httpx2.AsyncClient) -> None:
    for path in ("/", "/docs", "/health", "/nowhere", "/assets/page.css"):
        response = await rest.get(path)
        assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


async def test_an_unknown_address_and_a_wrong_method_are_json_too(rest: httpx2.AsyncClient) -> None:
    missing, wrong = await rest.get("/nowhere"), await rest.get("/echo/search")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "INVALID_INPUT")
    probe = await rest.post("/health")
    assert (probe.headers["allow"], probe.json()["error"]["message"]) == (
        "GET, HEAD",
        "That address takes GET, HEAD; see /docs.",
    )


async def test_health_says_what_is_served(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/health")
    assert response.json() == {
        "status": "ok",
        "problems": [],
        "toolsets": {"echo": {"documents": 0, "asOf": None}, "flat": {"documents": 0, "asOf": None}},
        "pendingEmbeddings": 0,
        "failedEmbeddings": 0,
        "oldestUnembeddedSeconds": None,
    }


async def test_health_is_503_when_background_work_has_broken(rest: httpx2.AsyncClient, desk: Desk) -> None:
    desk.broken.add("sync")
    response = await rest.get("/health")
    assert response.status_code == 503
    assert "sync" in response.json()["problems"][0]


async def test_the_description_has_every_operation_with_its_schema(rest: httpx2.AsyncClient) -> None:
    description = (await rest.get("/openapi.json")).json()
    assert description["openapi"] == "3.1.0"
    search = description["paths"]["/echo/search"]["post"]
    content = search["requestBody"]["content"]["application/json"]
    assert content["schema"]["properties"]["limit"]["maximum"] == 10
    assert content["examples"]["example 1"]["value"] == {"query": "hi", "limit": 2}
    parameters = description["paths"]["/echo/items/{id}"]["get"]["parameters"]
    assert [(p["name"], p["in"], p["required"]) for p in parameters] == [("id", "path", True), ("loud", "query", False)]
    responses = description["paths"]["/echo/fail"]["post"]["responses"]
    assert "NOT_FOUND: there is no such thing." in responses["404"]["description"]
    assert "LIMIT_EXCEEDED" in responses["429"]["description"]
    assert "$ref" not in json.dumps(description)


async def test_the_pages_need_nothing_from_elsewhere(rest: httpx2.AsyncClient) -> None:
    for path in ("/", "/docs"):
        text = (await rest.get(path)).text
        sources = [part.split('"')[0] for part in text.split('src="')[1:] + text.split('href="')[1:]]
        assert sources
        assert all(source.startswith(("/", "#", URL)) for source in sources)
        for source in sources:
            if source.startswith("/"):
                assert (await rest.get(source.split("#")[0])).status_code == 200


async def test_the_operations_page_shows_arguments_examples_and_errors(rest: httpx2.AsyncClient) -> None:
    text = (await rest.get("/docs")).text
    for words in ("filters.since", "list of string", "integer, from 1, to 10", "LIMIT_EXCEEDED", "Use get_echo next."):
        assert words in text


async def test_commands_to_copy_have_the_values_of_the_path_in_their_place(rest: httpx2.AsyncClient) -> None:
    text = (await rest.get("/docs")).text
    assert f"curl {URL}/echo/items/abc<" in text
    assert "resource template <code>echo://items/{id}</code>" in text


async def test_a_key_is_asked_for_only_where_one_is_wanted(desk: Desk) -> None:
    for principal in (READER, None):
        async with open_http(desk, principal) as rest:
            assert ("API key" in (await rest.get("/docs")).text) is (principal is None)
            assert ("Authorization: Bearer KEY" in (await rest.get("/")).text) is (principal is None)


async def test_the_description_says_that_a_key_is_wanted(rest: httpx2.AsyncClient) -> None:
    description = (await rest.get("/openapi.json")).json()
    [scheme] = description["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert description["paths"]["/health"]["get"]["security"] == []
    assert {"401", "403"} <= description["paths"]["/echo/search"]["post"]["responses"].keys()


async def test_the_start_page_names_the_retired_transport_only_where_it_is_served(desk: Desk) -> None:
    for sse in (False, True):
        async with open_http(desk, sse=sse) as rest:
            assert ("/sse" in (await rest.get("/")).text) is sse
