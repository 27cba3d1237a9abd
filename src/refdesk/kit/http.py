"""Reads one address over HTTP: within limits, with retries, and without trusting what the server says.

Redirects are refused, the size of bodies is limited during decompression too, and plain HTTP is for this machine only.
Transient failures are retried under the one policy of `core.retrying`.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio
import httpx2

from refdesk import __version__, errors
from refdesk.core import retrying, tracing
from refdesk.core.clock import SystemClock
from refdesk.core.retrying import PassingError
from refdesk.kit.addresses import is_loopback
from refdesk.kit.bodies import BodyTooLargeError, BrokenBodyError, read_body

if TYPE_CHECKING:
    from refdesk.protocols import Clock

USER_AGENT = f"refdesk/{__version__}"
MAX_TRIES = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReader:
    """Reads what is at an address.

    Attributes:
        url: HTTPS, or plain HTTP on this machine.
        variable: The setting that holds the URL, for messages.
        subject: What is at the address, as the beginning of a sentence.
        accept: The media types to ask for.
        request_seconds: How long one request may take, including its answer.
        max_body_bytes: Largest size of an answer after decompression.
        first_wait: Upper bound of the wait before the second try, in seconds; it doubles from try to try.
        max_wait: The longest wait between tries, even if the server asks for more.
        sleep: Waits for a number of seconds.
        chance: The source of the jitter.

    Raises:
        ConfigurationError: The URL is not allowed; see `check_url`.
    """

    url: str
    variable: str
    subject: str = "The feed"
    accept: str = "application/json"
    connect_seconds: float = 10.0
    request_seconds: float = 60.0
    max_body_bytes: int = 32 * 2**20
    first_wait: float = 1.0
    max_wait: float = 60.0
    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        check_url(self.url, self.variable)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[httpx2.AsyncClient]:
        """Yield a client for any number of requests."""
        is_local = httpx2.URL(self.url).scheme == "http"
        async with httpx2.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": self.accept, "Accept-Encoding": "gzip, deflate"},
            timeout=httpx2.Timeout(self.request_seconds, connect=self.connect_seconds),
            follow_redirects=False,
            # Plain HTTP needs no trust store, and loading one takes a tenth of a second.
            verify=not is_local,
            trust_env=not is_local,
        ) as client:
            yield client

    async def get(
        self,
        client: httpx2.AsyncClient,
        parse: Callable[[bytes], T],
        parameters: Mapping[str, str] | None = None,
        *,
        deadline: float | None = None,
    ) -> T:
        """Return what `parse` makes of the answer; retry if that may help.

        Args:
            client: From `open`.
            parse: Takes the decompressed body; raises a `PassingError` if it is broken, so that the request is retried.
            parameters: The parameters of the query.
            deadline: No retry begins after this instant of `time.monotonic`.

        Raises:
            SourceError: There was no usable answer.
        """
        budget = retrying.Budget(MAX_TRIES)
        policy = retrying.RetryPolicy(
            attempts=MAX_TRIES,
            first_wait=self.first_wait,
            max_wait=self.max_wait,
            shortens_retry_after=True,
            sleep=self.sleep,
            chance=self.chance,
        )
        try:
            return await policy.call(
                lambda: self._ask_in_time(client, parse, parameters), deadline=deadline, budget=budget
            )
        except PassingError as error:
            tries = MAX_TRIES - budget.left
            raise errors.SourceError(
                f"{self.subject} could not be read in {tries} tries, last because of: {error}. Try again later."
            ) from error

    async def read(self, parse: Callable[[bytes], T]) -> T:
        """Return what `parse` makes of the answer, with a client of its own; see `get`."""
        async with self.open() as client:
            return await self.get(client, parse)

    async def _ask_in_time(
        self, client: httpx2.AsyncClient, parse: Callable[[bytes], T], parameters: Mapping[str, str] | None
    ) -> T:
        try:
            with anyio.fail_after(self.request_seconds):
                return parse(await self._ask(client, parameters))
        except (httpx2.TransportError, TimeoutError) as error:
            raise PassingError(str(error) or "no answer in time") from error

    async def _ask(self, client: httpx2.AsyncClient, parameters: Mapping[str, str] | None) -> bytes:
        try:
            with tracing.calling(self.subject.lower().removeprefix("the ")) as headers:
                async with client.stream("GET", self.url, params=parameters, headers=headers) as response:
                    if response.status_code != 200:
                        self._refuse(response)
                    return await self._read_body(response)
        except ValueError:  # the client parses the location of a redirect even if it does not follow it
            raise self._explain_redirect("") from None

    async def _read_body(self, response: httpx2.Response) -> bytes:
        try:
            return await read_body(response, self.max_body_bytes)
        except BodyTooLargeError:
            most = f"{self.max_body_bytes // 2**20} MiB"
            raise errors.SourceError(
                f"{self.subject} sent more than {most} in one answer, which is not read: check its address."
            ) from None
        except BrokenBodyError as error:
            raise PassingError(str(error)) from error

    def _refuse(self, response: httpx2.Response) -> NoReturn:
        status = response.status_code
        if retrying.is_passing_status(status):
            asked = retrying.read_retry_after(response.headers, self.clock.now())
            raise PassingError(f"HTTP {status}", asked)
        if 300 <= status < 400:
            raise self._explain_redirect(self._find_host(response.headers.get("Location", "")))
        raise errors.SourceError(f"{self.subject} refused the request with HTTP {status}: check its address.")

    def _explain_redirect(self, host: str) -> errors.SourceError:
        return errors.SourceError(
            f"{self.subject} redirects to {host or 'elsewhere'}, which is not followed: set that address."
        )

    def _find_host(self, location: str) -> str:
        """Return the host that a redirect leads to; empty if its location is invalid."""
        try:
            return httpx2.URL(self.url).join(location).host
        except (httpx2.InvalidURL, ValueError):  # names that IDNA does not allow raise the latter
            return ""


def check_url(url: str, variable: str) -> None:
    """Check that a URL may be read from: HTTPS, or plain HTTP on this machine, and without a user.

    Raises:
        ConfigurationError: It is not; the message names the setting and does not show its value.
    """
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError):
        raise errors.ConfigurationError(f"{variable} is not a URL: write it as https://host/path.") from None
    if parsed.userinfo or not parsed.host:
        raise errors.ConfigurationError(f"{variable} needs a host and takes no user name or password.")
    if parsed.scheme != "https" and not (parsed.scheme == "http" and is_loopback(parsed.host)):
        raise errors.ConfigurationError(f"{variable} must begin with https:// unless it is on this machine.")
