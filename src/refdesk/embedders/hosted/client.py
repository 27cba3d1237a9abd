"""The HTTP client of embedding services: batches, timeouts, retries, and errors that reveal no secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import httpx2
import numpy as np

from refdesk.core import retrying, tracing
from refdesk.core.fairness import outside
from refdesk.core.retrying import PassingError
from refdesk.errors import EmbedderError
from refdesk.model import JsonObject, Vector

TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_ATTEMPTS = 5
FIRST_DELAY_SECONDS = 0.5
MAX_DELAY_SECONDS = 30.0
"""The longest pause: if a service asks for a longer one, the call has failed."""


class EmbeddingClient:
    """The client of one service, with kept-alive connections.

    Args:
        service: The service's name in messages.
        headers: Sent with each request; they hold the key and are never shown.
        dimensions: The width every vector must have.
        first_delay_seconds: The longest pause before the first retry; it doubles for each further one.
    """

    def __init__(
        self,
        service: str,
        base_url: str,
        headers: Mapping[str, str],
        dimensions: int,
        *,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        self._service = service
        self._dimensions = dimensions
        self._policy = retrying.RetryPolicy(MAX_ATTEMPTS, first_delay_seconds, MAX_DELAY_SECONDS)
        self._http = httpx2.AsyncClient(
            base_url=base_url.rstrip("/") + "/",
            headers=dict(headers),
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
            follow_redirects=False,
        )

    async def __aenter__(self) -> EmbeddingClient:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)

    async def embed(
        self, path: str, body: JsonObject, read: Callable[[bytes], Sequence[Sequence[float]]], count: int
    ) -> list[Vector]:
        """Return the `count` vectors with which the service answers a request, at unit length.

        Args:
            path: The path below the base URL.
            body: The request, as JSON.
            read: Extracts the vectors from the answer, in the order of the texts; raises `ValueError` if it cannot.
            count: How many texts were sent.

        Raises:
            EmbedderError: The service refused, was unavailable in every attempt, or returned an invalid response.
        """
        response = await self._post(path, body)
        try:
            vectors = np.array(read(response.content), dtype=np.float64)
        except ValueError as error:
            raise EmbedderError(
                f"{self._service} answered in an unknown form; check its address and its model."
            ) from error
        if vectors.shape != (count, self._dimensions):
            raise EmbedderError(
                f"{self._service} answered numbers in the shape {vectors.shape} instead of "
                f"{(count, self._dimensions)}: check the model and its dimensions."
            )
        with np.errstate(all="ignore"):
            units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        if not np.allclose(np.linalg.norm(units, axis=1), 1.0, atol=1e-3):
            raise EmbedderError(
                f"{self._service} answered a vector without a direction; try again, or choose another model."
            )
        return list(units)

    async def _post(self, path: str, body: JsonObject) -> httpx2.Response:
        try:
            async with outside():
                return await self._policy.call(lambda: self._post_once(path, body))
        except PassingError as error:
            raise EmbedderError(str(error)) from error.__cause__

    async def _post_once(self, path: str, body: JsonObject) -> httpx2.Response:
        try:
            with tracing.calling("embedding") as headers:
                response = await self._http.post(path, json=body, headers=headers)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise PassingError(f"{self._service} cannot be reached ({type(error).__name__}).") from error
        if response.status_code == 200:
            return response
        if retrying.is_passing_status(response.status_code):
            asked = retrying.read_retry_after(response.headers)
            raise PassingError(self._explain(response), asked)
        raise EmbedderError(self._explain(response))

    def _explain(self, response: httpx2.Response) -> str:
        status = response.status_code
        advice = {401: "check the key", 403: "check the key", 404: "check the base URL and the model"}
        return f"{self._service} answered with status {status}" + (f": {advice[status]}." if status in advice else ".")
