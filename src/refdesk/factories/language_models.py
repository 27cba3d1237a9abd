"""Builds the language model that the settings select. A hosted one is loaded on first use."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.language_models.hosted.gemini import GeminiModel
    from refdesk.language_models.hosted.openai import OpenAIModel
    from refdesk.playbooks import Inducer, Refinement, SkillDraft, Turn
    from refdesk.protocols import LanguageModel
    from refdesk.settings import Settings

    AnyHosted: TypeAlias = GeminiModel | OpenAIModel
    OpenModel: TypeAlias = Callable[[], AbstractAsyncContextManager[AnyHosted]]

_API_VERSION = "/v1beta"
"""Google's SDK adds it by itself; the setting has it, because the embedder's addresses do."""


@dataclass(frozen=True, slots=True)
class HostedModel:
    """A model whose client lives for one conversation: it is made when it is asked and closed when it has answered.

    Attributes:
        name: As the model itself says it.
        open_model: Imports and makes the client; may take seconds, so it runs in a thread.
    """

    name: str
    open_model: OpenModel

    async def extract(self, conversation: Sequence[Turn]) -> SkillDraft:
        """Return what a conversation teaches. See `LanguageModel.extract`."""
        async with await anyio.to_thread.run_sync(self.open_model) as model:
            return await model.extract(conversation)

    async def refine(self, skill: SkillDraft, conversation: Sequence[Turn], feedback: str) -> Refinement:
        """Return a refined skill. See `LanguageModel.refine`."""
        async with await anyio.to_thread.run_sync(self.open_model) as model:
            return await model.refine(skill, conversation, feedback)


def choose_language_model(settings: Settings) -> LanguageModel | Inducer:
    """Return the language model that the settings name.

    Raises:
        ConfigurationError: It needs a setting that is missing.
        MissingDependencyError: It needs an extra that is not installed.
    """
    match settings.language_model:
        case "rules":
            from refdesk.language_models.rules import RulesModel

            return RulesModel()
        case "gemini":
            return _choose_gemini(settings)
        case "openai":
            return _choose_openai(settings)


def _choose_gemini(settings: Settings) -> LanguageModel:
    from importlib.util import find_spec

    secret = settings.gemini_api_key
    if secret is None:
        raise errors.ConfigurationError(
            "REFDESK_LANGUAGE_MODEL is gemini, which needs a key: set REFDESK_GEMINI_API_KEY."
        )
    if find_spec("google") is None or find_spec("google.genai") is None:
        raise errors.MissingDependencyError(
            "REFDESK_LANGUAGE_MODEL is gemini, which needs Google's SDK: pip install 'refdesk[gemini]'."
        )

    def open_model() -> GeminiModel:
        from refdesk.language_models.hosted.gemini import GeminiModel

        base_url = settings.gemini_base_url.rstrip("/").removesuffix(_API_VERSION)
        return GeminiModel(secret.get_secret_value(), model=settings.gemini_language_model, base_url=base_url)

    return HostedModel(settings.gemini_language_model, open_model)


def _choose_openai(settings: Settings) -> LanguageModel:
    secret = settings.openai_api_key

    def open_model() -> OpenAIModel:
        from refdesk.language_models.hosted.openai import OpenAIModel

        return OpenAIModel(
            secret.get_secret_value() if secret else None,
            model=settings.openai_language_model,
            base_url=settings.openai_base_url,
        )

    return HostedModel(f"openai-{settings.openai_language_model}", open_model)
