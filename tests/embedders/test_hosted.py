from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from refdesk.embedders.hosted import client
from refdesk.embedders.hosted.gemini import GeminiEmbedder
from refdesk.embedders.hosted.openai import OpenAIEmbedder
from refdesk.errors import EmbedderError
from tests.embedders.service import Reply, Service, serve

KEY = "secret-key-123"


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.0, 2.0]


def answer_openai(path: str, body: dict[str, Any]) -> object:
    data = [{"index": index, "embedding": vector_of(text)} for index, text in enumerate(body["input"])]
    return {"data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}}


def answer_gemini(path: str, body: dict[str, Any]) -> object:
    if path.endswith(":embedContent"):
        return {"embedding": {"values": vector_of(body["content"]["parts"][0]["text"])}}
    texts = [request["content"]["parts"][0]["text"] for request in body["requests"]]
    return {"embeddings": [{"values": vector_of(text)} for text in texts]}


@pytest.fixture
def openai() -> Iterator[Service]:
    with serve(Service(answer_openai)) as service:
        yield service


@pytest.fixture
def gemini() -> Iterator[Service]:
    with serve(Service(answer_gemini)) as service:
        yield service


@asynccontextmanager
async def open_openai(service: Service, key: str | None = KEY) -> AsyncGenerator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(key, model="m", dimensions=4, base_url=service.url, first_delay_seconds=0.0)
    async with embedder:
        yield embedder


@asynccontextmanager
async def open_gemini(service: Service) -> AsyncGenerator[GeminiEmbedder]:
    async with GeminiEmbedder(KEY, model="m", dimensions=4, base_url=service.url, first_delay_seconds=0.0) as embedder:
        yield embedder


async def test_openai_passages_come_back_in_order_at_unit_length(openai: Service) -> None:
    texts = ["x" * length for length in range(1, 301)]
    async with open_openai(openai) as embedder:
        vectors = await embedder.embed_passages(texts)
    assert [len(asked.body["input"]) for asked in openai.asked] == [128, 128, 44]
    assert all(abs(np.linalg.norm(vector) - 1.0) < 1e-6 and vector.dtype == np.float32 for vector in vectors)
    assert all(shorter[0] < longer[0] for shorter, longer in pairwise(vectors))


async def test_openai_requests_have_the_documented_form(openai: Service) -> None:
    async with open_openai(openai) as embedder:
        await embedder.embed_query("a question")
    [asked] = openai.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "m", "input": ["a question"], "encoding_format": "float"}


async def test_openai_is_asked_for_a_width_only_when_told_to(openai: Service) -> None:
    async with OpenAIEmbedder(model="m", dimensions=4, is_cut=True, base_url=openai.url) as embedder:
        await embedder.embed_query("x")
    assert openai.asked[0].body["dimensions"] == 4
    assert "authorization" not in openai.asked[0].headers


async def test_gemini_passages_and_questions_have_the_documented_form(gemini: Service) -> None:
    async with open_gemini(gemini) as embedder:
        vectors = await embedder.embed_passages(["x" * length for length in range(1, 151)])
        await embedder.embed_query("a question")
    one, two, query = gemini.asked
    assert (len(one.body["requests"]), len(two.body["requests"])) == (100, 50)
    assert all(shorter[0] < longer[0] for shorter, longer in pairwise(vectors))
    assert one.path == "/v1/models/m:batchEmbedContents"
    assert one.body["requests"][0] == {
        "model": "models/m",
        "content": {"parts": [{"text": "x"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 4,
    }
    assert query.path == "/v1/models/m:embedContent"
    assert query.body["taskType"] == "RETRIEVAL_QUERY"
    assert query.headers["x-goog-api-key"] == KEY
    assert KEY not in query.path


async def test_services_that_refuse_empty_texts_are_sent_none(openai: Service, gemini: Service) -> None:
    async with open_openai(openai) as one, open_gemini(gemini) as other:
        await one.embed_passages(["", " \n"])
        await other.embed_passages([""])
        assert await one.embed_passages([]) == []
    assert openai.asked[0].body["input"] == ["-", "-"]
    assert gemini.asked[0].body["requests"][0]["content"]["parts"][0]["text"] == "-"


async def test_models_are_told_apart_by_service_name_and_width() -> None:
    one, other = OpenAIEmbedder(KEY, model="m", dimensions=4), GeminiEmbedder(KEY, model="m", dimensions=4)
    async with one, other:
        wider = OpenAIEmbedder(KEY, model="m", dimensions=8)
        async with wider:
            assert len({one.model.name, other.model.name, wider.model.name}) == 3
        assert one.is_ready
        assert other.is_ready


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, None])
async def test_passing_failures_are_tried_again(openai: Service, status: int | None) -> None:
    openai.replies = [Reply(status), Reply(status)]
    async with open_openai(openai) as embedder:
        await embedder.embed_query("x")
    assert len(openai.asked) == 3


@pytest.mark.parametrize(
    ("status", "advice"), [(400, "400"), (401, "key"), (403, "key"), (404, "base URL"), (302, "302")]
)
async def test_a_refusal_is_final_and_tells_no_secret(openai: Service, status: int, advice: str) -> None:
    openai.replies = [Reply(status, {"error": {"message": f"bad key {KEY}"}}, {"Location": "http://other.invalid"})]
    async with open_openai(openai) as embedder:
        with pytest.raises(EmbedderError, match=advice) as caught:
            await embedder.embed_query("x")
    assert len(openai.asked) == 1
    assert KEY not in repr(caught.value)


async def test_a_service_that_stays_down_fails_after_the_last_attempt(openai: Service) -> None:
    openai.replies = [Reply(503)] * 20
    async with open_openai(openai) as embedder:
        with pytest.raises(EmbedderError, match="503"):
            await embedder.embed_query("x")
    assert len(openai.asked) == client.MAX_ATTEMPTS


async def test_nobody_listening_is_an_error_of_the_embedder() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with OpenAIEmbedder(KEY, base_url=url, first_delay_seconds=0.0) as embedder:
            with pytest.raises(EmbedderError, match="cannot be reached"):
                await embedder.embed_query("x")


IN_AN_HOUR = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


@pytest.mark.parametrize("pause", ["3600", "1e9", pytest.param(IN_AN_HOUR, id="a date")])
async def test_a_service_that_asks_for_a_long_pause_has_failed(openai: Service, pause: str) -> None:
    openai.replies = [Reply(429, headers={"Retry-After": pause})]
    async with open_openai(openai) as embedder:
        with pytest.raises(EmbedderError, match="429"):
            await embedder.embed_query("x")
    assert len(openai.asked) == 1


@pytest.mark.parametrize("pause", ["0", "0.01", "soon", "", "-5", "Thu, 01 Jan 2015 00:00:00 GMT", "nan"])
async def test_a_short_or_meaningless_pause_is_followed_by_another_attempt(openai: Service, pause: str) -> None:
    openai.replies = [Reply(429, headers={"Retry-After": pause})]
    async with open_openai(openai) as embedder:
        await embedder.embed_query("x")
    assert len(openai.asked) == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply(content=b"<html>"),
        Reply(body={}),
        Reply(body={"data": []}),
        Reply(body={"data": [{"index": 0, "embedding": [1.0, 2.0]}]}),
        Reply(body={"data": [{"index": 0, "embedding": [0.0, 0.0, 0.0, 0.0]}]}),
        Reply(body={"data": [{"index": 0, "embedding": [1e300, 1.0, 1.0, 1.0]}]}),
        Reply(body={"data": [{"index": 0, "embedding": "text"}]}),
        Reply(body={"data": [{"index": n, "embedding": [1.0, 1.0, 1.0, 1.0]} for n in range(2)]}),
        Reply(body={"data": [{"index": n, "embedding": [1.0, 1.0]} for n in range(2)]}),
        Reply(body={"data": [{"index": 0, "embedding": [1.0] * 4}, {"index": 1, "embedding": [1.0] * 3}]}),
        Reply(content=b'{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}]}'),
    ],
)
async def test_nonsense_is_an_error_and_no_vector(openai: Service, reply: Reply) -> None:
    openai.replies = [reply]
    async with open_openai(openai) as embedder:
        with pytest.raises(EmbedderError):
            await embedder.embed_query("x")


async def test_a_long_text_is_cut_before_it_is_sent(openai: Service, gemini: Service) -> None:
    async with open_openai(openai) as one, open_gemini(gemini) as other:
        await one.embed_query("x" * 100_000)
        await other.embed_query("x" * 100_000)
    assert len(openai.asked[0].body["input"][0]) == 8192
    assert len(gemini.asked[0].body["content"]["parts"][0]["text"]) == 8192
