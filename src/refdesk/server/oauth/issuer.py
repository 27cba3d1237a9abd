"""Reads an issuer's metadata and keys over HTTP: the only module of this folder with I/O.

It trusts little of what it receives: redirects are refused, bodies are bounded, and a description that names another
issuer than it was asked for is not used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from refdesk import __version__, errors
from refdesk.server.oauth.configuration import may_be_asked
from refdesk.server.oauth.signing_keys import read_keys

if TYPE_CHECKING:
    from refdesk.server.oauth.signing_keys import SigningKey

USER_AGENT = f"refdesk/{__version__}"
MAX_BODY_BYTES = 512 * 1024
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s;])", re.IGNORECASE)


class _UnreadableError(Exception):
    """One address did not give what was asked of it; the text says why and shows nothing that was sent."""


@dataclass(frozen=True, slots=True)
class Published:
    """The keys of an issuer.

    Attributes:
        keys: Those that signatures can be checked with; one at least.
        source: Where they were.
        max_age: How long the issuer lets them be kept, if it says so.
    """

    keys: tuple[SigningKey, ...]
    source: str
    max_age: timedelta | None


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer.

    Attributes:
        name: As tokens name it (`iss`): an HTTPS URL, or plain HTTP on this machine.
        jwks_url: Where its keys are, if that is known.
        request_seconds: How long one request may take.
        total_seconds: How long reading the keys may take.
        max_body_bytes: How large an answer may be.
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
        try:
            with anyio.fail_after(self.total_seconds):
                async with await anyio.to_thread.run_sync(self._open) as client:
                    url = self.jwks_url or await self._find_jwks(client)
                    document, headers = await self._get(client, url)
                    return Published(_read_keys(document), url, _read_max_age(headers))
        except _UnreadableError as error:
            reason = str(error)
        except TimeoutError:
            reason = f"no answer within {self.total_seconds:g} seconds"
        raise errors.WorldError(f"The keys of {self.name} could not be read: {reason}.")

    def _open(self) -> httpx2.AsyncClient:
        is_local = urlsplit(self.jwks_url or self.name).scheme == "http"
        return httpx2.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=self.request_seconds,
            follow_redirects=False,
            # Plain HTTP on this machine needs neither a trust store nor a proxy.
            verify=not is_local,
            trust_env=not is_local,
        )

    async def _find_jwks(self, client: httpx2.AsyncClient) -> str:
        """Return where the issuer says its keys are (RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4)."""
        reasons: list[str] = []
        for url in describe_at(self.name):
            try:
                document, _ = await self._get(client, url)
                return self._read_jwks_url(document)
            except _UnreadableError as error:
                reasons.append(f"{url}: {error}")
        raise _UnreadableError("; ".join(reasons))

    def _read_jwks_url(self, document: dict[str, Any]) -> str:
        if document.get("issuer") != self.name:
            raise _UnreadableError("it describes another issuer; the name must be the same to the letter")
        url = document.get("jwks_uri")
        if not isinstance(url, str) or not may_be_asked(url) or urlsplit(url).scheme != urlsplit(self.name).scheme:
            raise _UnreadableError("it names no address of keys that may be asked")
        return url

    async def _get(self, client: httpx2.AsyncClient, url: str) -> tuple[dict[str, Any], httpx2.Headers]:
        try:
            with anyio.fail_after(self.request_seconds):
                async with client.stream("GET", url) as response:
                    if response.status_code != 200:
                        raise _UnreadableError(f"HTTP {response.status_code}")
                    return _parse(await self._read(response)), response.headers
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
    """Return where an issuer may describe itself, in the order of the MCP authorization specification."""
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


def _read_keys(document: dict[str, Any]) -> tuple[SigningKey, ...]:
    try:
        return read_keys(document)
    except ValueError as error:
        raise _UnreadableError(str(error)) from None


def _read_max_age(headers: httpx2.Headers) -> timedelta | None:
    found = _MAX_AGE.search(headers.get("Cache-Control", ""))
    return timedelta(seconds=int(found[1])) if found else None
