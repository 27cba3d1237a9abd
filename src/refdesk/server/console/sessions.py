"""Signing in to the console: the browser keeps a key, or an access token, in a cookie that no script can read.

It is sent with requests of this server's own pages alone (`SameSite=Strict`), counts on the console's addresses alone,
and is checked each time like the header of any other caller: a key that is revoked is signed out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "refdesk_key"
FOLDER = "/console/"
SIGN_IN = f"{FOLDER}sign-in"
START = "/"
_KEY = re.compile(r"[\x21-\x3a\x3c-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class CookieKey:
    """Puts the key of the cookie where other callers have theirs, on the console's addresses.

    Who has none that counts is led to where one signs in.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or not is_console(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # Where one signs in, what was kept before counts for nothing: what has expired must not stand in the way.
        key = None if scope["path"].startswith(f"{SIGN_IN}/") else read_key(headers)
        if key and "authorization" not in headers:
            # Not in place: another reader of this request must not take it for a header that was sent.
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {key}".encode())]}
        await self.app(scope, receive, _Leading(send, scope, key is not None))


@dataclass(slots=True)
class _Leading:
    """Sends what is answered, but leads on who is not let in."""

    send: Send
    scope: Scope
    has_key: bool
    is_led: bool = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 401:
            self.is_led = True
            query = self.scope["query_string"].decode("latin-1")
            here = self.scope["path"] + (f"?{query}" if query else "")
            asked = {"next": here, **({"again": "1"} if self.has_key else {})}
            address = f"{SIGN_IN}?{urlencode(asked)}"
            cookie = f'{COOKIE}=""; HttpOnly; Max-Age=0; Path=/; SameSite=strict'
            headers = [(b"location", address.encode()), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
            message = {"type": "http.response.start", "status": 303, "headers": headers}
        elif self.is_led:
            message = {**message, "body": b""}
        await self.send(message)


def is_console(path: str) -> bool:
    """Return whether an address is the console's."""
    return path == START or path.startswith(FOLDER)


def read_key(headers: Headers) -> str | None:
    """Return the key that a browser keeps, if it keeps one."""
    found = read_cookie(headers, COOKIE)
    return found if found is not None and _KEY.fullmatch(found) else None


def read_cookie(headers: Headers, name: str) -> str | None:
    """Return what a browser keeps under a name, if it keeps something."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None


def read_next(address: str | None) -> str:
    """Return where to go after signing in: an address of this console, never elsewhere, nor where one signs in."""
    found = address or START
    path = found.partition("?")[0]
    return found if is_console(path) and not path.startswith(SIGN_IN) and "\\" not in found else START


def keep_key(request: Request, response: Response, key: str, *, is_secure: bool = False) -> None:
    """Let the browser keep a key until it is closed; one that is secure it sends over TLS alone."""
    is_secure = is_secure or request.url.scheme == "https"
    response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=is_secure)


def forget_key(response: Response) -> None:
    """Let the browser forget the key."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def is_key(text: str) -> bool:
    """Return whether a text may be kept as a key."""
    return _KEY.fullmatch(text) is not None
