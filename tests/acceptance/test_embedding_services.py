"""A server whose embedding service is another process, which fails in every way that it can."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from refdesk.core.search.breaker import PROBE
from refdesk.core.search.semantics import MISSING_MEANING
from tests.acceptance.processes import WAIT_SECONDS, run, start
from tests.acceptance.test_http import SERVE
from tests.emulators import embeddings
from tests.emulators.embeddings import Service

CLIENTS = 64
KEYWORDS = MISSING_MEANING["unavailable"]
OPEN = "refdesk_embedding_breaker_open 1.0"


@pytest.fixture
def service() -> Generator[Service]:
    with embeddings.running() as running:
        yield running


@contextmanager
def serve(home: Path, service: Service, name: str) -> Generator[str]:
    with start([*SERVE, "--toolset", "knowledge"], home, **service.select(name)) as server:
        yield server.read_log("listening")["url"]


async def search(http: httpx2.AsyncClient, query: str) -> dict[str, Any]:
    answer = await http.post("/knowledge/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def search_at_once(http: httpx2.AsyncClient, questions: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def ask(question: str) -> None:
        found.append(await search(http, question))

    async with anyio.create_task_group() as group:
        for question in questions:
            group.start_soon(ask, question)
    return found


async def until_health(http: httpx2.AsyncClient, status: str) -> list[str]:
    """Return the problems once the server has that status."""
    with anyio.fail_after(WAIT_SECONDS):
        while (health := (await http.get("/health")).json())["status"] != status:  # noqa: ASYNC110 - asks a server
            await anyio.sleep(0.05)
    return health["problems"]


async def store_note(http: httpx2.AsyncClient, title: str) -> str:
    return (await http.post("/knowledge", json={"title": title, "body": "It jams when the air is humid."})).json()["id"]


async def until_embedded(http: httpx2.AsyncClient, id: str) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        while (await http.get(f"/knowledge/{id}")).json()["embeddingStatus"] != "ready":  # noqa: ASYNC110 - asks a server
            await anyio.sleep(0.05)


@pytest.mark.parametrize(("name", "behaviour"), [("openai", "hangs"), ("gemini", "key-rotated")])
async def test_many_searches_meet_a_service_that_does_not_answer(
    tmp_path: Path, service: Service, name: str, behaviour: str
) -> None:
    with serve(tmp_path, service, name) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as http:
            await until_embedded(http, await store_note(http, "Printer on the third floor"))
            assert "notice" not in await search(http, "humid printer")
            service.behave(behaviour)
            for answer in await search_at_once(http, [f"printer humid {n}" for n in range(CLIENTS)]):
                assert answer["notice"] == KEYWORDS
                assert answer["results"]
            [problem] = await until_health(http, "degraded")
            assert "Search goes by words" in problem
            assert OPEN in (await http.get("/metrics")).text
            later = [f"printer jams {n}" for n in range(CLIENTS)]
            assert all(answer["notice"] == KEYWORDS for answer in await search_at_once(http, later))
            assert not set(later) & set(service.list_texts())
            assert PROBE in service.list_texts()
            service.behave("fine")
            assert await until_health(http, "ok") == []
            assert "notice" not in await search(http, later[0])
            assert OPEN not in (await http.get("/metrics")).text


@pytest.mark.parametrize(
    ("name", "behaviour"),
    [
        ("openai", "drips"),
        ("openai", "truncated"),
        ("openai", "too-few"),
        ("gemini", "hangs"),
        ("gemini", "nan"),
        ("gemini", "quota-exhausted"),
    ],
)
def test_doctor_says_what_is_wrong_with_a_service(tmp_path: Path, service: Service, name: str, behaviour: str) -> None:
    service.behave(behaviour)
    done = run(["doctor"], tmp_path, **service.select(name))
    [line] = [line for line in done.stdout.splitlines() if line.startswith("fail")]
    assert line.split()[1] == "model"
    assert done.returncode == 1
    assert embeddings.KEY not in done.stdout + done.stderr
