"""Each hosted model against the emulated services: the same tests for both."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from refdesk.language_models.hosted.openai import OpenAIModel
from tests.emulators.language_models import KEY, emulate

if TYPE_CHECKING:
    from refdesk.language_models.hosted.gemini import GeminiModel

Writer: TypeAlias = "GeminiModel | OpenAIModel"
OpenedModel: TypeAlias = AbstractAsyncContextManager[Writer]
OpenModel: TypeAlias = Callable[..., OpenedModel]

PATIENCE_SECONDS = 10.0


@pytest.fixture(scope="session")
def services() -> Generator[str]:
    with emulate() as address:
        yield address


@pytest.fixture(params=["gemini", "openai"])
def open_model(request: pytest.FixtureRequest, services: str) -> OpenModel:
    """Opens the model of a behaviour at the emulated service."""
    if request.param == "gemini" and find_spec("google") is None:
        reason = "google-genai is not installed: install the extra gemini"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)

    def open_one(behaviour: str, *, key: str = KEY, timeout_seconds: float = PATIENCE_SECONDS) -> OpenedModel:
        settings: dict[str, Any] = {"model": behaviour, "timeout_seconds": timeout_seconds, "first_delay_seconds": 0.01}
        if request.param == "openai":
            return OpenAIModel(key, base_url=f"{services}/v1", **settings)
        from refdesk.language_models.hosted.gemini import GeminiModel

        return GeminiModel(key, base_url=services, **settings)

    return open_one
