"""Reads an issuer's metadata, keys and tokens over HTTP: the only module of this folder with I/O.

It trusts little of what it receives: redirects are refused, bodies are bounded, and metadata that name an issuer other
than the configured one are not used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from refdesk import __version__, errors
from refdesk.server.oauth.configuration import may_be_asked
from refdesk.server.oauth.signing_keys import read_keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from refdesk.server.oauth.signing_keys import SigningKey

Read = TypeVar("Read")
USER_AGENT = f"refdesk/{__version__}"
MAX_BODY_BYTES = 512 * 1024
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s;])", re.IGNORECASE)


_S256 = "S256"
_REFUSALS = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"),
        *("invalid_scope", "invalid_target"),
    }
)
"""Error codes of a token endpoint (RFC 6749, section 5.2; RFC 8707, section 2); nothing else it says is repeated."""


class _UnreadableError(Exception):
    """An address did not return what was asked for; the text says why and shows nothing that was sent."""


@dataclass(frozen=True, slots=True)
class Published:
    """The keys of an issuer.

    Attributes:
        keys: Those with which signatures can be checked; at least one.
        source: Where they were found.
        max_age: How long the issuer allows them to be kept, if it says so.
    """

    keys: tuple[SigningKey, ...]
    source: str
    max_age: timedelta | None


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints at which people sign in with an issuer.

    Attributes:
        authorization: Where browsers are sent.
        token: Where the code that they bring back is exchanged for a token.
        names_itself: Whether the issuer identifies itself in what browsers bring back (RFC 9207).
        revocation: Where a token is revoked (RFC 7009); `None` if the issuer names no such endpoint.
    """

    authorization: str
    token: str
    names_itself: bool
    revocation: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """The tokens that an issuer gives.

    Attributes:
        access: The access token.
        refresh: The refresh token, which gets the next one (RFC 6749, section 6); `None` if the issuer gave none.
    """

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer.

    Attributes:
        name: As tokens name it (`iss`): an HTTPS URL, or plain HTTP on this machine.
        jwks_url: The URL of its keys, if known.
        request_seconds: How long one request may take.
        total_seconds: How long reading the keys may take.
        max_body_bytes: The largest body that is accepted as an answer.
    """

    name: str
    jwks_url: str | None = None
    request_seconds: float = 5.0
    total_seconds: float = 12.0
    max_body_bytes: int = MAX_BODY_BYTES

    async def fetch(self) -> Published:
        """Return the keys that the issuer publishes now.

        Raises:
            WorldError: They could not be fetched; the message says why.
        """

        async def read(client: httpx2.AsyncClient) -> Published:
            url = self.jwks_url or await self._describe(client, self._read_jwks_url)
            document, headers = await self._get(client, url)
            return Published(_read_keys(document), url, _read_max_age(headers))

        return await self._ask("keys", self.jwks_url or self.name, read)

    async def find_endpoints(self) -> Endpoints:
        """Return the endpoints that the issuer names now; errors as in `fetch`."""

        async def read(client: httpx2.AsyncClient) -> Endpoints:
            return await self._describe(client, self._read_endpoints)

        return await self._ask("description", self.name, read)

    async def exchange(self, url: str, form: Mapping[str, str], credential: str | None) -> Grant:
        """Return what the issuer gives for a code or a refresh token.

        Args:
            url: The token endpoint.
            form: The form to send.
            credential: The `Authorization` header of a client that has a secret.

        Raises:
            UnauthenticatedError: The issuer gives no token for it; the message says why.
            WorldError: It does not answer, or not properly; the message says why and shows nothing that was sent.
        """
        options = _write_form(form, credential)

        async def read(client: httpx2.AsyncClient) -> Grant:
            status, body, _ = await self._send(client, "POST", url, (200, 400, 401), options)
            answer = _parse(body)
            if status != 200:
                said = answer.get("error")
                reason = said if isinstance(said, str) and said in _REFUSALS else f"HTTP {status}"
                raise errors.UnauthenticatedError(f"The issuer made no token: {reason}.")
            return _read_grant(answer)

        return await self._ask("token", url, read)

    async def revoke(self, url: str, form: Mapping[str, str], credential: str | None) -> None:
        """Revoke a token (RFC 7009); one that is no longer valid counts as revoked. Arguments as in `exchange`.

        Raises:
            WorldError: The issuer does not confirm the revocation; the message says why without anything that was sent.
        """
        options = _write_form(form, credential)

        async def read(client: httpx2.AsyncClient) -> None:
            await self._send(client, "POST", url, (200, 204), options)

        await self._ask("confirmation", url, read)

    async def _ask(self, what: str, url: str, read: Callable[[httpx2.AsyncClient], Awaitable[Read]]) -> Read:
        try:
            with anyio.fail_after(self.total_seconds):
                async with await anyio.to_thread.run_sync(self._open, url) as client:
                    return await read(client)
        except _UnreadableError as error:
            reason = str(error)
        except TimeoutError:
            reason = f"no answer within {self.total_seconds:g} seconds"
        raise errors.WorldError(f"The {what} of {self.name} could not be read: {reason}.")

    def _open(self, url: str) -> httpx2.AsyncClient:
        is_local = urlsplit(url).scheme == "http"
        return httpx2.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=self.request_seconds,
            follow_redirects=False,
            # Plain HTTP on this machine needs neither a trust store nor a proxy.
            verify=not is_local,
            trust_env=not is_local,
        )

    async def _describe(self, client: httpx2.AsyncClient, read: Callable[[dict[str, Any]], Read]) -> Read:
        """Return what `read` makes of the metadata (RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4)."""
        reasons: list[str] = []
        for url in describe_at(self.name):
            try:
                document, _ = await self._get(client, url)
                self._check_name(document)
                return read(document)
            except _UnreadableError as error:
                reasons.append(f"{url}: {error}")
        raise _UnreadableError("; ".join(reasons))

    def _check_name(self, document: dict[str, Any]) -> None:
        if document.get("issuer") != self.name:
            raise _UnreadableError("it describes another issuer; the name must be the same to the letter")

    def _read_jwks_url(self, document: dict[str, Any]) -> str:
        return self._read_address(document, "jwks_uri", "of keys")

    def _read_endpoints(self, document: dict[str, Any]) -> Endpoints:
        methods: object = document.get("code_challenge_methods_supported")
        # If the list is missing (Entra ID), the method may be supported nevertheless.
        if isinstance(methods, list) and _S256 not in methods:
            raise _UnreadableError(f"it does not take code challenges by {_S256}")
        return Endpoints(
            self._read_address(document, "authorization_endpoint", "to sign in"),
            self._read_address(document, "token_endpoint", "of tokens"),
            document.get("authorization_response_iss_parameter_supported") is True,
            self._find_address(document, "revocation_endpoint"),
        )

    def _read_address(self, document: dict[str, Any], name: str, what: str) -> str:
        url = self._find_address(document, name)
        if url is None:
            raise _UnreadableError(f"it names no address {what} that may be asked")
        return url

    def _find_address(self, document: dict[str, Any], name: str) -> str | None:
        url = document.get(name)
        is_right = isinstance(url, str) and may_be_asked(url) and urlsplit(url).scheme == urlsplit(self.name).scheme
        return url if is_right else None

    async def _get(self, client: httpx2.AsyncClient, url: str) -> tuple[dict[str, Any], httpx2.Headers]:
        _, body, headers = await self._send(client, "GET", url, (200,), {})
        return _parse(body), headers

    async def _send(
        self,
        client: httpx2.AsyncClient,
        method: str,
        url: str,
        statuses: Collection[int],
        options: Mapping[str, Any],
    ) -> tuple[int, bytes, httpx2.Headers]:
        """Send a request and return the answer, whose status is one of `statuses`."""
        try:
            with anyio.fail_after(self.request_seconds):
                async with client.stream(method, url, **options) as response:
                    if response.status_code not in statuses:
                        raise _UnreadableError(f"HTTP {response.status_code}")
                    return response.status_code, await self._read(response), response.headers
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _UnreadableError(f"no answer ({type(error).__name__})") from None
        except TimeoutError:
            raise _UnreadableError(f"no answer within {self.request_seconds:g} seconds") from None

    async def _read(self, response: httpx2.Response) -> bytes:
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise _UnreadableError("the answer is packed, which was not asked for")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self.max_body_bytes:
                raise _UnreadableError(f"the answer is larger than {self.max_body_bytes // 1024} KiB")
        return bytes(body)


def describe_at(issuer: str) -> list[str]:
    """Return where an issuer may publish its metadata, in the order of the MCP authorization specification."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*inserted, f"{origin}{path}/.well-known/openid-configuration"] if path else inserted


def _parse(body: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        raise _UnreadableError("the answer is no JSON") from None
    if not isinstance(value, dict):
        raise _UnreadableError("the answer is no JSON object")
    return cast("dict[str, Any]", value)


def _write_form(form: Mapping[str, str], credential: str | None) -> Mapping[str, Any]:
    return {"data": dict(form), "headers": {} if credential is None else {"Authorization": credential}}


def _read_grant(answer: Mapping[str, Any]) -> Grant:
    token, kind, refresh = (answer.get(name) for name in ("access_token", "token_type", "refresh_token"))
    if not isinstance(token, str) or not isinstance(kind, str) or kind.lower() != "bearer":
        raise _UnreadableError("the answer has no bearer token")
    return Grant(token, refresh if isinstance(refresh, str) and refresh else None)


def _read_keys(document: dict[str, Any]) -> tuple[SigningKey, ...]:
    try:
        return read_keys(document)
    except ValueError as error:
        raise _UnreadableError(str(error)) from None


def _read_max_age(headers: httpx2.Headers) -> timedelta | None:
    found = _MAX_AGE.search(headers.get("Cache-Control", ""))
    return timedelta(seconds=int(found[1])) if found else None
