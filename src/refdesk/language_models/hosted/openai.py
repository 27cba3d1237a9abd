"""Language models behind the OpenAI API `POST /chat/completions`, at OpenAI or any server that speaks it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any

import httpx2
from pydantic import BaseModel, ValidationError

from refdesk.core import retrying, tracing
from refdesk.core.fairness import outside
from refdesk.core.retrying import PassingError
from refdesk.errors import LanguageModelError
from refdesk.language_models.hosted import writing
from refdesk.language_models.hosted.prompting import Message
from refdesk.playbooks import Case, SkillDraft

BASE_URL = "https://api.openai.com/v1"
MODEL = "gpt-5-mini"
TIMEOUT_SECONDS = 120.0
CONNECT_SECONDS = 10.0
MAX_ATTEMPTS = 3
FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 20.0
_ADVICE = {401: "check the key", 403: "check the key", 404: "check the base URL and the model"}


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice]


class OpenAIModel:
    """A model behind the OpenAI API.

    Args:
        key: The API key; `None` for a server that asks for none.
        model: The model's name.
        base_url: Of the service, with the version.
        timeout_seconds: How long one answer may take.
        first_delay_seconds: The longest first pause before a failed request is repeated; it doubles each time.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        model: str = MODEL,
        base_url: str = BASE_URL,
        timeout_seconds: float = TIMEOUT_SECONDS,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        self._model = model
        self._policy = retrying.RetryPolicy(MAX_ATTEMPTS, first_delay_seconds, MAX_DELAY_SECONDS)
        self._http = httpx2.AsyncClient(
            base_url=base_url.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            follow_redirects=False,
        )

    @property
    def name(self) -> str:
        """Named after the API and the model."""
        return f"openai-{self._model}"

    async def __aenter__(self) -> OpenAIModel:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)

    async def write(self, draft: SkillDraft, cases: Sequence[Case]) -> SkillDraft:
        """Return an induced skill in better words. See `writing.write`."""
        return await writing.write(self._complete, draft, cases)

    async def _complete(self, instruction: str, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        roles = {"asking": "user", "answering": "assistant"}
        body = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": instruction},
                *({"role": roles[message.side], "content": message.text} for message in messages),
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "skill", "strict": True, "schema": schema},
            },
        }
        return _read(await self._post(body))

    async def _post(self, body: dict[str, Any]) -> httpx2.Response:
        try:
            async with outside():
                return await self._policy.call(lambda: self._post_once(body))
        except PassingError as error:
            raise LanguageModelError(str(error)) from error.__cause__

    async def _post_once(self, body: dict[str, Any]) -> httpx2.Response:
        try:
            with tracing.calling("language model") as headers:
                response = await self._http.post("chat/completions", json=body, headers=headers)
        except httpx2.TimeoutException as error:
            # The answer may still be on its way: asking again would pay for it twice.
            raise LanguageModelError("The language model did not answer in time; try again.") from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise PassingError(f"The language model cannot be reached ({type(error).__name__}).") from error
        if response.status_code == HTTPStatus.OK:
            return response
        if retrying.is_passing_status(response.status_code):
            asked = retrying.read_retry_after(response.headers)
            raise PassingError(_explain(response), asked)
        raise LanguageModelError(_explain(response))


def _read(response: httpx2.Response) -> str:
    """Return the answer's text.

    Raises:
        LanguageModelError: The model refused or was cut off, or the service's answer has an unknown form.
    """
    try:
        [choice, *_] = _Completion.model_validate_json(response.content).choices
    except (ValidationError, ValueError) as error:
        raise LanguageModelError(
            "The language model's service answered in an unknown form; check its address and its model."
        ) from error
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise LanguageModelError("The language model refused this conversation; learn from another one.")
    if choice.finish_reason == "length":
        raise LanguageModelError("The language model's answer was cut off; send a shorter conversation.")
    return choice.message.content or ""


def _explain(response: httpx2.Response) -> str:
    status = response.status_code
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "The language model's quota is used up for now; try again later."
    advice = f": {_ADVICE[status]}." if status in _ADVICE else "; try again later."
    return f"The language model's service answered with status {status}{advice}"
