"""Whatever Salesforce does, a caller gets an answer or one of the eight codes, in time, after three tries at most."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from itertools import cycle
from typing import Any

import anyio
import pytest

from refdesk import errors
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.breaker import FAILURES
from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
from sample_world.salesforce.process import RunningEmulator
from tests.toolsets.salesforce_knowledge.samples import get_requests, open_source, version_id

REQUEST_SECONDS, CALL_SECONDS = 0.2, 1.0
LONGEST_SECONDS = 60.0
"""Far above what a call may take, so that a loaded machine fails no test: it ends a hanging one."""

CODES = {
    *("NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMIT_EXCEEDED", "INVALID_INPUT", "SF_API_ERROR", "AUTH_ERROR"),
    "KNOWLEDGE_DISABLED",
}
Fault = Mapping[str, Any]


def answer(body: object, status: int = 200) -> Fault:
    return {"fault": "answer", "status": status, "body": body}


def refusal(code: object, status: int = 400) -> Fault:
    return answer([{"errorCode": code, "message": "SELECT Id FROM Knowledge__kav"}], status)


def deep(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value]
    return value


NONE: list[object] = []
NO_RECORDS: dict[str, object] = {
    "records": [5, None, NONE],
    "searchRecords": [5, None, NONE],
    "name": "X",
    "fields": NONE,
}
NO_ERRORS: list[object] = [None, 5, "x", NONE]
FAULTS: dict[str, Fault] = {
    **{
        f"HTML {status}": {"fault": "status", "status": status}
        for status in (400, 401, 403, 404, 408, 410, 413, 429, 500, 502, 503, 504, 507)
    },
    "429, back in a second": {"fault": "status", "status": 429, "retry_after": 1},
    "429, back in an hour": {"fault": "status", "status": 429, "retry_after": 3600, "retry_after_form": "date"},
    "503, back in an hour": {"fault": "status", "status": 503, "retry_after": 3600},
    "429, back in no year": {"fault": "status", "status": 429, "retry_after": 1, "retry_after_form": "endless"},
    "503, back in no year": {"fault": "status", "status": 503, "retry_after": 1, "retry_after_form": "endless"},
    "redirect": {"fault": "redirect"},
    "redirect to nowhere": {"fault": "redirect", "location": "//hxn-- "},
    "redirect to no port": {"fault": "redirect", "location": "http://h:ab/"},
    "redirect to loopback": {"fault": "redirect", "location": "http://127.0.0.1:1/"},
    "reset": {"fault": "reset"},
    "truncated": {"fault": "truncate"},
    "hanging": {"fault": "hang"},
    "dripping": {"fault": "drip", "chunk_bytes": 1, "delay_seconds": 0.05},
    "huge": {"fault": "huge", "size_bytes": 20 * 2**20},
    "huge and packed": {"fault": "huge", "size_bytes": 20 * 2**20, "gzip": True},
    "packed": {"fault": "gzip"},
    "broken JSON": {"fault": "invalid_json"},
    "page of HTML": {"fault": "wrong_content_type"},
    **{
        name: {"fault": "refuse", "error": name}
        for name in (
            *("session_expired", "session_not_for_rest", "request_limit", "concurrent_limit", "api_disabled_for_org"),
            *("api_currently_disabled", "insufficient_access", "malformed_search", "query_timeout", "not_found"),
            *("unknown_exception", "server_unavailable"),
        )
    },
    "null": answer(None),
    "empty list": answer(NONE),
    "text": answer("ok"),
    "number": answer(5),
    "empty object": answer({}),
    "records of no kind": answer(NO_RECORDS),
    "records without ids": answer({"records": [{"Title": "x"}], "searchRecords": [{"Title": "x"}]}),
    "records that are none": answer({"records": "x", "searchRecords": {}}),
    "deep": answer(deep(300)),
    "odd error": answer([{"errorCode": {"a": 1}}], 400),
    "odd errors": answer(NO_ERRORS, 403),
    "unknown error": refusal("SOMETHING_NEW"),
    "field that is none": refusal("INVALID_FIELD"),
    "type that is none": refusal("INVALID_TYPE"),
    "malformed id": refusal("MALFORMED_ID"),
    "malformed query": refusal("MALFORMED_QUERY"),
    "teapot": refusal("TEAPOT", 418),
    "code that is a statement": refusal("SELECT Id FROM User"),
    "token error": answer({"error": "invalid_grant", "error_description": "expired"}, 400),
    "token of odd characters": answer({"access_token": "a\nb", "instance_url": "https://x.salesforce.com"}),
    "token elsewhere": answer({"access_token": "abc", "instance_url": "https://elsewhere.example"}),
}
PLACES = {
    "everywhere": "",
    "the token endpoint": "/oauth2/token",
    "search": "/parameterizedSearch",
    "queries": "/query",
    "descriptions": "/describe",
}


def test_there_are_forty_kinds_of_fault() -> None:
    assert len(FAULTS) >= 40


async def ask(source: SalesforceSource, tool: str) -> str:
    """The code of the error, or none where there is an answer; in time, and without anything that should not show."""
    try:
        with anyio.fail_after(LONGEST_SECONDS):
            if tool == "search":
                await source.search("password")
            else:
                await source.get_article(version_id(1))
    except errors.RefdeskError as error:
        told = f"{error.message} {error.details}"
        if error.code not in CODES or "SELECT" in told or "<" in told:
            raise AssertionError(f"a caller is told {error.code}: {told}") from error
        return error.code
    return ""


async def check(emulator: RunningEmulator, fault: str, place: str, tool: str, log: pytest.LogCaptureFixture) -> None:
    log.set_level(logging.DEBUG)
    await emulator.set_faults([{**FAULTS[fault], "path": PLACES[place]}])
    async with open_source(emulator, request_seconds=REQUEST_SECONDS, timeout_seconds=CALL_SECONDS) as source:
        code = await ask(source, tool)
    assert code or place != "everywhere"
    requests = await get_requests(emulator)
    tried = Counter(str(request["path"]) for request in requests)
    assert max(tried.values(), default=0) <= 3, tried
    assert sum(path.endswith(("/parameterizedSearch", "/search", "/query")) for path in tried.elements()) <= 3
    sent = [request["headers"].get("authorization", "").removeprefix("Bearer ") for request in requests]
    for secret in filter(None, (emulator.client_secret, *sent)):
        assert secret not in log.text


@pytest.mark.parametrize(("tool", "place"), [("search", "search"), ("get", "queries")])
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_of_an_answer_ends_in_time_with_a_known_code(
    lightning: RunningEmulator, fault: str, tool: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    await check(lightning, fault, place, tool, caplog)


@pytest.mark.parametrize(
    ("fault", "place"), list(zip(FAULTS, cycle(["everywhere", "the token endpoint", "descriptions"]), strict=False))
)
async def test_every_fault_elsewhere_ends_in_time_with_a_known_code(
    lightning: RunningEmulator, fault: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    await check(lightning, fault, place, "search", caplog)


@pytest.mark.soak
@pytest.mark.parametrize("tool", ["search", "get"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_in_every_place_ends_in_time_with_a_known_code(
    lightning: RunningEmulator, fault: str, place: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    await check(lightning, fault, place, tool, caplog)


@pytest.mark.parametrize("fault", ["HTML 503", "reset", "broken JSON", "concurrent_limit", "429, back in a second"])
async def test_what_passes_after_two_tries_is_not_noticed(lightning: RunningEmulator, fault: str) -> None:
    rules = [{**FAULTS[fault], "path": path, "at": [1, 2]} for path in ("/oauth2/token", "/describe")]
    await lightning.set_faults([*rules, {**FAULTS[fault], "path": "/parameterizedSearch", "at": [1]}])
    async with open_source(lightning) as source:
        answer = await source.search("password")
    assert (answer.total_count, answer.search_method) == (2, "sosl")


@pytest.mark.parametrize("path", ["/oauth2/token", "/parameterizedSearch"])
async def test_a_redirect_is_not_followed_with_a_secret(lightning: RunningEmulator, path: str) -> None:
    await lightning.set_faults([{"fault": "redirect", "location": f"{lightning.url}/elsewhere", "path": path}])
    async with open_source(lightning) as source:
        assert await ask(source, "search") in ("AUTH_ERROR", "SF_API_ERROR")
    assert not [request for request in await get_requests(lightning) if "elsewhere" in request["path"]]


async def test_an_endless_answer_is_not_read_to_its_end(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{**FAULTS["huge"], "path": "/parameterizedSearch"}])
    async with open_source(lightning) as source:
        with pytest.raises(errors.WorldError) as caught:
            await source.search("password")
    assert caught.value.details == {"status": 200, "salesforceErrorCodes": ["ANSWER_TOO_LARGE"]}


async def test_the_ways_of_searching_share_three_tries(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "status", "status": 503, "path": path} for path in ("/param", "/query")])
    async with open_source(lightning) as source:
        assert await ask(source, "search") == "SF_API_ERROR"
    tried = Counter(str(request["path"]).rpartition("/")[2] for request in await get_requests(lightning))
    assert (tried["parameterizedSearch"], tried["query"]) == (2, 1)


async def test_a_salesforce_that_is_down_is_left_alone_and_answers_come_at_once(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "status", "status": 503}])
    seconds = [1000.0]
    async with open_source(lightning, now=lambda: seconds[0]) as source:
        for _ in range(10):
            assert await ask(source, "search") == "SF_API_ERROR"
        assert len(await get_requests(lightning)) == FAILURES
        await lightning.set_faults([])
        assert await ask(source, "search") == "SF_API_ERROR"
        seconds[0] += 31
        assert await ask(source, "search") == ""
        assert source.problem is None


async def test_a_salesforce_that_asks_to_wait_a_day_is_asked_again_after_a_minute(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "status", "status": 429, "retry_after": 86_400}])
    seconds = [1000.0]
    async with open_source(lightning, now=lambda: seconds[0]) as source:
        for _ in range(2):
            with pytest.raises(errors.LimitExceededError) as caught:
                await source.search("password")
            assert caught.value.details == {"status": 429}
            assert caught.value.retry_after_seconds == 60
        assert len(await get_requests(lightning)) == 1
        await lightning.set_faults([])
        seconds[0] += 60
        assert await ask(source, "search") == ""


async def test_a_hanging_salesforce_is_given_up_after_the_calls_time(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "hang"}])
    async with open_source(lightning, request_seconds=5.0, timeout_seconds=0.3) as source:
        with pytest.raises(errors.WorldError, match=r"within 0.3 seconds") as caught:
            await source.search("password")
    assert caught.value.code == "SF_API_ERROR"


async def test_nobody_listening_is_told_as_such() -> None:
    # On port 1 of this machine nothing listens.
    settings = SalesforceSettings(instance_url="http://127.0.0.1:1", access_token="token")
    async with SalesforceSource(settings) as source:
        with pytest.raises(errors.WorldError, match="connection failed"):
            await source.search("password")


async def test_a_description_that_cannot_be_had_again_stays_in_use(lightning: RunningEmulator) -> None:
    seconds = [1000.0]
    async with open_source(lightning, now=lambda: seconds[0]) as source:
        await source.search("password")
        seconds[0] += 7200
        await lightning.forget_requests()
        assert await ask(source, "search") == ""
        [described] = [request for request in await get_requests(lightning) if "describe" in request["path"]]
        assert described["status"] == 304
        seconds[0] += 7200
        await lightning.set_faults([{"fault": "status", "status": 503, "path": "/describe"}])
        assert await ask(source, "search") == ""
