"""What machines ask of a server: health, readiness and metrics, whatever the storage engine does meanwhile."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import anyio
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from refdesk.app import Desk
from refdesk.core.background.health import Health
from refdesk.factories.bases import Base
from refdesk.server.probes import COUNTING, SILENT, HealthCheck
from tests.server.conftest import open_http
from tests.server.echo import READER

ALLOWED = replace(READER, scopes=READER.scopes | {"metrics:read"})


def read_samples(text: str, name: str) -> dict[frozenset[str], float]:
    return {
        frozenset(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


@asynccontextmanager
async def never_open() -> AsyncGenerator[Base]:
    """A store behind which nobody answers."""
    await anyio.sleep_forever()
    yield  # pyright: ignore[reportReturnType] - never reached


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer refdesk_x"}])
@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_a_store_that_never_answers_holds_up_no_probe(desk: Desk, path: str, headers: dict[str, str]) -> None:
    silent = Desk(desk.settings, desk.toolsets, never_open)
    async with open_http(silent, None) as rest, anyio.create_task_group() as group:
        group.start_soon(silent.run)
        response = await rest.get(path, headers=headers)
        assert response.status_code == 503
        assert "has not answered" in response.json()["problems"][0]
        group.cancel_scope.cancel()


class Counting(Desk):
    """A desk that counts what its store holds only once it may."""

    may_count: anyio.Event

    async def get_health(self, note_answer: Callable[[], None] = lambda: None) -> Health:
        note_answer()
        await self.may_count.wait()
        return await super().get_health(note_answer)


@asynccontextmanager
async def opened_counting(desk: Desk) -> AsyncGenerator[tuple[Counting, HealthCheck]]:
    counting = Counting(desk.settings, desk.toolsets, desk.open_base)
    counting.may_count = anyio.Event()
    counting.may_count.set()
    check = HealthCheck(counting, counting_seconds=0.05)
    async with anyio.create_task_group() as group, check.run():
        group.start_soon(counting.run)
        await counting.get_health()
        yield counting, check
        group.cancel_scope.cancel()


async def test_a_store_that_answers_is_healthy_however_long_it_counts(desk: Desk) -> None:
    async with opened_counting(desk) as (counting, check):
        counting.may_count = anyio.Event()
        first = await check.measure()
        assert (first.status, first.problems) == ("degraded", (COUNTING,))
        counting.may_count.set()
        check.counting_seconds = 60
        counted = await check.measure()
        assert counted.backlog is not None
        check.counting_seconds = 0.05
        counting.may_count = anyio.Event()
        assert await check.measure() == counted
        counting.broken.add("embedding")
        counting.may_count.set()
        check.counting_seconds = 60
        assert (await check.measure()).status == "failing"
        check.counting_seconds = 0.05
        counting.may_count = anyio.Event()
        assert (await check.measure()).status == "failing"
        counting.may_count.set()


async def test_a_store_that_counts_for_too_long_does_not_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened_counting(desk) as (counting, check):
        counting.may_count = anyio.Event()
        await check.measure()
        monkeypatch.setattr("refdesk.server.probes.LONGEST_COUNTING_SECONDS", 0.0)
        assert (await check.measure()).problems == (SILENT,)
        counting.may_count.set()


async def test_a_bug_in_the_check_is_told_and_ends_nothing_else(desk: Desk) -> None:
    broken = Desk(desk.settings, desk.toolsets, never_open)
    broken._base = cast("Base", object())  # pyright: ignore[reportPrivateUsage] - no other way to plant it
    async with open_http(broken, None) as rest:
        for _ in range(2):
            response = await rest.get("/health")
            assert response.status_code == 503
            assert "by a bug" in response.json()["problems"][0]
        assert (await rest.get("/openapi.json")).status_code == 200


async def test_a_server_that_works_is_ready(rest: httpx2.AsyncClient) -> None:
    response = await rest.get("/ready")
    assert (response.status_code, response.json()) == (200, {"ready": True, "problems": []})


async def test_calls_are_counted_by_what_was_called_and_how_it_ended(desk: Desk) -> None:
    async with open_http(desk, ALLOWED) as rest:
        for body in ({"query": "secret"}, {"query": "secret"}, {"nonsense": "secret"}):
            await rest.post("/echo/search", json=body)
        page = await rest.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    calls = read_samples(page.text, "refdesk_calls_total")
    assert calls[frozenset({"search_echo", "rest", "ok"})] == 2
    assert calls[frozenset({"search_echo", "rest", "INVALID_INPUT"})] == 1
    assert read_samples(page.text, "refdesk_call_seconds_count")[frozenset({"search_echo", "rest"})] == 3
    assert read_samples(page.text, "refdesk_health")[frozenset({"ok"})] == 1.0
    assert not re.search("secret|nonsense|tester", page.text)


async def test_metrics_need_a_scope_where_keys_are_needed(desk: Desk) -> None:
    async with open_http(desk, None) as rest:
        assert (await rest.get("/metrics")).status_code == 401
        assert (await rest.get("/ready")).status_code == 200
        assert (await rest.get("/health")).status_code == 200
