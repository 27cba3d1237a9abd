"""The HTTP transport to Salesforce: sends a request once and classifies the outcome as reply, refusal or unreachable.

Nothing in an answer is followed: no redirects, no links. Compression is not requested, so that the limit on what is
read also limits what is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import anyio
import httpx2

from refdesk import __version__
from refdesk.core import retrying, tracing
from refdesk.core.fairness import outside
from refdesk.kit.addresses import is_loopback
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError, read_codes

if TYPE_CHECKING:
    from types import TracebackType

MAX_BODY_BYTES = 16 * 2**20
"""The largest answer. The list of an org's objects, the largest answer that is read, has one to three megabytes."""

CONNECT_SECONDS = 4.0
MAX_CONNECTIONS = 10
"""Salesforce lets 25 long requests of an org run at once, and others need some of them."""

SHORT_WAIT = 2.0
"""Seconds; if Salesforce asks for a longer pause, it is not asked again in the same call."""

WARNING_RATIO = 0.8
MAX_RETRY_AFTER = 86_400.0
"""Seconds; limits are counted over 24 hours, so a longer pause must be a mistake."""

_USAGE = re.compile(r"api-usage=(\d{1,12})/(\d{1,12})")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, below the address of the org. `form` is sent as a form, `body` as JSON."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, object] | None = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A usable answer. `data` is its JSON, `None` for 304 and without a body; `headers` are those a cache needs."""

    status: int
    data: object
    etag: str | None = None
    modified: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of an API request allowance is used, as Salesforce reported with its last reply; approximate."""

    used: int
    limit: int

    @property
    def is_high(self) -> bool:
        """Whether it is time to warn."""
        return self.used >= WARNING_RATIO * self.limit


class Transport:
    """Connections to Salesforce, opened when first needed and closed on leaving.

    Args:
        origin: The configured address; decides whether plain HTTP and proxies are in play.
        request_seconds: How long one request may take, answer included.
    """

    def __init__(self, origin: str, request_seconds: float) -> None:
        self._is_local = is_loopback(httpx2.URL(origin).host)
        self._request_seconds = request_seconds
        self._http: httpx2.AsyncClient | None = None
        self.usage: Usage | None = None

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def send(self, origin: str, request: Request, token: str | None = None) -> Reply:
        """Return the answer.

        Raises:
            RefusedError: It is a refusal.
            UnreachableError: There is none in time, or none that can be used.
        """
        headers = dict(request.headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with outside():
                with anyio.fail_after(self._request_seconds):
                    return await self._send(f"{origin}{request.path}", request, headers)
        except TimeoutError:
            raise UnreachableError(f"no answer within {self._request_seconds:g} seconds", is_answered=True) from None
        except httpx2.TimeoutException as error:
            is_connected = not isinstance(error, httpx2.ConnectTimeout)
            raise UnreachableError("no answer in time", is_answered=is_connected) from None
        except ValueError:  # the client reads the location of a redirect also where it does not follow it
            raise UnreachableError("it redirects to an address that is none", is_answered=True) from None
        except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
            raise UnreachableError(f"the connection failed ({type(error).__name__})") from None

    async def _send(self, url: str, request: Request, headers: Mapping[str, str]) -> Reply:
        with tracing.calling("salesforce") as carried:
            return await self._exchange(url, request, {**headers, **carried})

    async def _exchange(self, url: str, request: Request, headers: Mapping[str, str]) -> Reply:
        async with self._open().stream(
            request.method, url, params=request.query, json=request.body, data=request.form, headers=headers
        ) as response:
            self._note_usage(response.headers.get("Sforce-Limit-Info"))
            if response.status_code == 304:
                return Reply(304, None)
            body = await _read_body(response)
            if not response.is_success:
                _refuse(response, body)
            return Reply(
                response.status_code,
                _parse(body),
                etag=response.headers.get("ETag"),
                modified=response.headers.get("Last-Modified"),
            )

    def _open(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                headers={
                    "User-Agent": f"refdesk/{__version__}",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                },
                timeout=httpx2.Timeout(self._request_seconds, connect=min(CONNECT_SECONDS, self._request_seconds)),
                limits=httpx2.Limits(max_connections=MAX_CONNECTIONS),
                follow_redirects=False,
                # Plain HTTP on this machine needs neither a trust store nor a proxy.
                verify=not self._is_local,
                trust_env=not self._is_local,
            )
        return self._http

    def _note_usage(self, header: str | None) -> None:
        usage = parse_usage(header)
        if usage is not None:
            self.usage = usage


def parse_usage(header: str | None) -> Usage | None:
    """Return the allowance that `Sforce-Limit-Info` says is used most, the org's or the app's; `None` without one.

    The header reads `api-usage=18/5000`, at times followed by `; per-app-api-usage=17/250(appName=x)`.
    """
    found = [Usage(int(used), int(limit)) for used, limit in _USAGE.findall(header or "") if int(limit) > 0]
    return max(found, key=lambda usage: usage.used / usage.limit, default=None)


async def _read_body(response: httpx2.Response) -> bytes:
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnreachableError("the answer is compressed, which was not asked for", is_answered=True)
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise RefusedError(response.status_code, ("ANSWER_TOO_LARGE",))
    return bytes(body)


def _parse(body: bytes) -> object:
    if not body:
        return None
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreachableError("the answer is not JSON", is_answered=True) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse(response: httpx2.Response, body: bytes) -> NoReturn:
    status, retry_after = response.status_code, read_retry_after(response.headers)
    if status != 429 and retrying.is_passing_status(status):
        raise UnreachableError(f"HTTP {status}", is_answered=True, retry_after=retry_after)
    try:
        codes = read_codes(_parse(body))
    except UnreachableError:
        codes = ()
    is_short = status == 429 and retry_after is not None and retry_after <= SHORT_WAIT
    raise RefusedError(
        status,
        codes,
        is_passing=is_short or b"ConcurrentRequests" in body or b"ConcurrentPerOrg" in body,
        is_final=b"not valid for use with the REST API" in body,
        retry_after=retry_after,
    )


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` asks to wait, at most a day; `None` when it asks for nothing sensible."""
    seconds = retrying.read_retry_after(headers)
    return seconds if seconds is not None and seconds <= MAX_RETRY_AFTER else None
