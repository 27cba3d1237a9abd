"""The embedder of a model whose vectors are kept, by the settings there are now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from refdesk.embedders.hosted.gemini import GeminiEmbedder
from refdesk.embedders.hosted.openai import OpenAIEmbedder
from refdesk.factories.embedders import choose_embedder, find_embedder
from refdesk.model import EmbeddingModel
from tests.embedders.service import Asked, Service, serve
from tests.server.echo import make_settings

KEYS: Mapping[str, object] = {"openai_api_key": "sk-1", "gemini_api_key": "g-1"}


@pytest.mark.parametrize(
    "model",
    [
        EmbeddingModel("openai-nomic-embed-text-768", 768),
        EmbeddingModel("openai-org/with-dashes-1-512", 512),
        EmbeddingModel("gemini-gemini-embedding-001-1536", 1536),
        EmbeddingModel("gemini-text-embedding-004-768", 768),
    ],
)
def test_a_former_model_of_a_service_is_had_by_its_name(tmp_path: Path, model: EmbeddingModel) -> None:
    found = find_embedder(make_settings(tmp_path, **KEYS), model)
    assert found is not None
    assert found.model == model
    assert isinstance(found, OpenAIEmbedder if model.name.startswith("openai") else GeminiEmbedder)


@pytest.mark.parametrize(
    "model",
    [
        EmbeddingModel("openai-m-768", 512),
        EmbeddingModel("other-m-768", 768),
        EmbeddingModel("gemini-m-768", 768),
        EmbeddingModel("openai-m-768", 768),
        EmbeddingModel("mine@0123456789ab", 384),
    ],
)
def test_what_the_settings_have_no_service_for_is_not_had(tmp_path: Path, model: EmbeddingModel) -> None:
    settings = make_settings(tmp_path, **KEYS) if model.dimensions == 512 else make_settings(tmp_path)
    assert find_embedder(settings, model) is None


async def test_questions_go_to_the_former_model_of_the_same_service_at_its_width(tmp_path: Path) -> None:
    def answer(_path: str, body: dict[str, object]) -> object:
        width = body.get("dimensions", 6)
        return {"data": [{"index": 0, "embedding": [1.0] * int(str(width))}]}

    with serve(Service(answer)) as service:
        settings = make_settings(
            tmp_path, openai_base_url=service.url, openai_embedding_model="new", openai_embedding_dimensions=6
        )
        wanted = choose_embedder(settings, "openai")
        former, cut = EmbeddingModel("openai-old-6", 6), EmbeddingModel("openai-new-3", 3)
        for model in (wanted.model, former, cut):
            embedder = find_embedder(settings, model)
            assert embedder is not None
            async with embedder:
                assert len(await embedder.embed_query("x")) == model.dimensions
    assert [_describe(asked) for asked in service.asked] == [("new", None), ("old", None), ("new", 3)]


def _describe(asked: Asked) -> tuple[object, object]:
    return asked.body["model"], asked.body.get("dimensions")
