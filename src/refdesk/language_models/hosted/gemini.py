"""Google's Gemini models, through Google's own SDK (`google-genai`), with structured output."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors as sdk_errors
from google.genai import types

from refdesk.core import retrying, tracing
from refdesk.core.fairness import outside
from refdesk.core.retrying import PassingError
from refdesk.errors import LanguageModelError
from refdesk.language_models.hosted import writing
from refdesk.language_models.hosted.prompting import Message
from refdesk.playbooks import Case, SkillDraft

BASE_URL = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
"""The same as the embedder's; stated here because the environment may change the SDK's own default."""

MODEL = "gemini-pro-latest"
"""Google's own name for the newest Pro model, so that a retired version does not stop the product."""

TIMEOUT_SECONDS = 120.0
MAX_ATTEMPTS = 3
FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 20.0
TEMPERATURE = 0.2
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"})
_ADVICE = {
    "RESOURCE_EXHAUSTED": "its quota is used up for now; try again later",
    "UNAUTHENTICATED": "check the key",
    "PERMISSION_DENIED": "check the key",
    "NOT_FOUND": "check the model's name",
    "INVALID_ARGUMENT": "check the key and the model's name",
    "DEADLINE_EXCEEDED": "try again, or send a shorter conversation",
}


class GeminiModel:
    """A Gemini model.

    Args:
        key: The API key.
        model: The model's name without `models/`.
        base_url: Of the service, without the version.
        timeout_seconds: How long one answer may take.
        first_delay_seconds: The longest first pause before a failed request is repeated; it doubles each time.
    """

    def __init__(
        self,
        key: str,
        *,
        model: str = MODEL,
        base_url: str = BASE_URL,
        timeout_seconds: float = TIMEOUT_SECONDS,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        self._model = model
        self._policy = retrying.RetryPolicy(MAX_ATTEMPTS, first_delay_seconds, MAX_DELAY_SECONDS)
        self._client = genai.Client(
            api_key=key,
            # Stated explicitly, so that no environment variable sends conversations elsewhere.
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=base_url,
                api_version=API_VERSION,
                timeout=int(timeout_seconds * 1000),
                # The SDK knows neither `Retry-After` nor the caller's deadline.
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    @property
    def name(self) -> str:
        """The name by which the service knows the model."""
        return self._model

    async def __aenter__(self) -> GeminiModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aio.aclose()
        self._client.close()

    async def write(self, draft: SkillDraft, cases: Sequence[Case]) -> SkillDraft:
        """Return an induced skill in better words. See `writing.write`."""
        return await writing.write(self._complete, draft, cases)

    async def _complete(self, instruction: str, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        roles = {"asking": "user", "answering": "model"}
        contents: list[Any] = [
            types.Content(role=roles[message.side], parts=[types.Part(text=message.text)]) for message in messages
        ]
        config = types.GenerateContentConfig(
            system_instruction=instruction,
            temperature=TEMPERATURE,
            response_mime_type="application/json",
            response_json_schema=schema,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        try:
            async with outside():
                return _read(await self._policy.call(lambda: self._generate(contents, config)))
        except PassingError as error:
            raise LanguageModelError(str(error)) from error.__cause__

    async def _generate(
        self, contents: list[Any], config: types.GenerateContentConfig
    ) -> types.GenerateContentResponse:
        try:
            # The SDK's type of `contents` names classes of packages that are not installed with it.
            with tracing.calling("language model") as headers:
                carried = config.model_copy(update={"http_options": types.HttpOptions(headers=headers)})
                return await self._client.aio.models.generate_content(  # pyright: ignore[reportUnknownMemberType]
                    model=self._model, contents=contents, config=carried if headers else config
                )
        except sdk_errors.APIError as error:
            if retrying.is_passing_status(error.code):
                raise PassingError(_explain(error), _get_retry_after(error)) from error
            raise LanguageModelError(_explain(error)) from error
        except httpx2.TimeoutException as error:
            # The answer may still be on its way: asking again would pay for it twice.
            raise LanguageModelError("Gemini did not answer in time; try again.") from error
        except httpx2.TransportError as error:
            raise PassingError(_explain_silence(error)) from error
        except (httpx2.HTTPError, sdk_errors.UnknownApiResponseError, ValueError) as error:
            raise LanguageModelError(_explain_silence(error)) from error


def _read(response: types.GenerateContentResponse) -> str:
    """Return the answer's text; empty if there is none, so that the model is asked again.

    Raises:
        LanguageModelError: The service blocked the conversation or the answer, or the answer was cut off.
    """
    feedback = response.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        raise LanguageModelError(
            f"Gemini refused this conversation ({feedback.block_reason.name}); learn from another."
        )
    candidate = response.candidates[0] if response.candidates else None
    reason = candidate.finish_reason.name if candidate is not None and candidate.finish_reason is not None else ""
    if reason in _REFUSALS:
        raise LanguageModelError(f"Gemini refused to answer ({reason}); learn from another conversation.")
    if reason == "MAX_TOKENS":
        raise LanguageModelError("Gemini's answer was cut off; send a shorter conversation.")
    parts = candidate.content.parts if candidate is not None and candidate.content is not None else None
    return "".join(part.text or "" for part in parts or () if not part.thought)


def _explain(error: sdk_errors.APIError) -> str:
    advice = _ADVICE.get(error.status or "", "try again later")
    return f"Gemini answered with status {error.code}: {advice}."


def _explain_silence(error: Exception) -> str:
    return f"Gemini cannot be reached, or answered in an unknown form ({type(error).__name__})."


def _get_retry_after(error: sdk_errors.APIError) -> float | None:
    response = cast("object", error.response)  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(response, httpx2.Response):
        return None
    return retrying.read_retry_after(response.headers)
