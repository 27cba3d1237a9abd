"""Builds the language model that the settings select. A hosted one is loaded on first use."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread

from refdesk import errors
from refdesk.language_models.rules import RulesModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.language_models.hosted.gemini import GeminiModel
    from refdesk.language_models.hosted.openai import OpenAIModel
    from refdesk.playbooks import Case, EmbedTexts, Grouping, Inducer, SkillDraft
    from refdesk.settings import Settings

    AnyHosted: TypeAlias = GeminiModel | OpenAIModel
    OpenModel: TypeAlias = Callable[[], AbstractAsyncContextManager[AnyHosted]]

_API_VERSION = "/v1beta"
"""Google's SDK adds it itself; the setting contains it because the embedder's addresses do."""


@dataclass(frozen=True, slots=True)
class HostedModel:
    """A model that words what rules induce. Its client exists for one answer: it is made for a request, then closed.

    Attributes:
        name: The same as that of the model itself.
        open_model: Imports and makes the client; may take seconds, so it runs in a thread.
        inducer: Induces what the model then words; it alone decides which steps there are.
    """

    name: str
    open_model: OpenModel
    inducer: Inducer = field(default_factory=RulesModel)

    async def induce(self, cases: Sequence[Case], embed: EmbedTexts | None) -> SkillDraft:
        """Return what the cases teach, in the model's words. See `Inducer.induce`.

        Raises:
            LanguageModelError: Its service failed or refused, or answered twice in a form that cannot be used.
        """
        draft = await self.inducer.induce(cases, embed)
        async with await anyio.to_thread.run_sync(self.open_model) as model:
            return await model.write(draft, cases)

    async def preview(self, cases: Sequence[Case]) -> SkillDraft:
        """Return what the cases teach, in the rules' words. See `Inducer.preview`."""
        return await self.inducer.preview(cases)

    async def group(self, cases: Sequence[Case], embed: EmbedTexts | None) -> Grouping:
        """Return the cases grouped by problem, without asking any service. See `Inducer.group`."""
        return await self.inducer.group(cases, embed)


def choose_language_model(settings: Settings) -> Inducer:
    """Return the language model that the settings name.

    Raises:
        ConfigurationError: It needs a setting that is missing.
        MissingDependencyError: It needs an extra that is not installed.
    """
    match settings.language_model:
        case "rules":
            return RulesModel()
        case "gemini":
            return _choose_gemini(settings)
        case "openai":
            return _choose_openai(settings)


def _choose_gemini(settings: Settings) -> Inducer:
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


def _choose_openai(settings: Settings) -> Inducer:
    secret = settings.openai_api_key

    def open_model() -> OpenAIModel:
        from refdesk.language_models.hosted.openai import OpenAIModel

        return OpenAIModel(
            secret.get_secret_value() if secret else None,
            model=settings.openai_language_model,
            base_url=settings.openai_base_url,
        )

    return HostedModel(f"openai-{settings.openai_language_model}", open_model)
