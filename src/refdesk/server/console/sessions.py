"""Signing in to the console: the browser keeps a key, or an access token, in a cookie that no script can read.

The cookie is sent only with requests from this server's own pages (`SameSite=Strict`), counts only on the console's
addresses, and is checked each time like any other caller's header: revoking a key signs its owner out. Along with an
access token that can be renewed, the browser keeps the name of the session that renews it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers

from refdesk.server.credentials import is_identified

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.server.oauth.sessions import SignInSessions

COOKIE = "refdesk_key"
SESSION = "refdesk_session"
FOLDER = "/console/"
SIGN_IN = f"{FOLDER}sign-in"
FORMS = f"{FOLDER}do/"
EVENTS = f"{FOLDER}events"
KEPT = f"{SIGN_IN}/kept/"
"""Where the form of a sender who is not let in goes: it is shown again with what was written."""

ARRIVED = f"{SIGN_IN}/arrived"
"""Where a person who follows a link on another site is sent: from there the browser asks again, with its cookies."""

START = "/"
_URL_CHARACTERS = ":/%#?=@[]!$&'()*+,;"
_FORGET = (b"set-cookie", f'{COOKIE}=""; HttpOnly; Max-Age=0; Path=/; SameSite=strict'.encode())
"""Makes the browser forget the key. The session stays: it may be renewed once the issuer answers again."""

_KEY = re.compile(r"[\x21-\x3a\x3c-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class CookieKey:
    """Puts the key from the cookie where other callers have theirs, on the console's addresses.

    People without a valid key are sent to the sign-in page; those who have sent a form are shown it again, as filled
    in. For a link on another site the browser sends no cookie, so the request is made once more, from here.

    Attributes:
        people: Who is signed in with an issuer; `None` if nobody can be.
    """

    app: ASGIApp
    people: SignInSessions | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or not is_console(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers, asked = Headers(scope=scope), scope
        if _is_link_from_elsewhere(scope, headers):
            query = urlencode({"next": _write_here(scope)}).encode()
            await self.app(
                {**scope, "path": ARRIVED, "raw_path": ARRIVED.encode(), "query_string": query}, receive, send
            )
            return
        # On the sign-in pages, what the browser keeps is ignored: an expired key must not stand in the way.
        counts = not scope["path"].startswith(f"{SIGN_IN}/")
        key, session = (read_key(headers), read_cookie(headers, SESSION)) if counts else (None, None)
        token = await self.people.find_token(session) if self.people is not None and session else None
        if (token or key) and "authorization" not in headers:
            # A new scope: another reader of this request must not mistake it for a header that was sent.
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {token or key}".encode())]}
        renewed = write_cookie(scope, token, is_secure=self._is_secure) if token and token != key else None
        is_form = scope["method"] == "POST" and scope["path"].startswith(FORMS) and "authorization" not in headers
        leading = _Leading(send, scope, (token or key) is not None, renewed, is_form=is_form)

        async def receive_noted() -> Message:
            leading.is_form = False  # what has been read cannot be shown again
            return await receive()

        await self.app(scope, receive_noted, leading)
        if leading.is_form_refused:
            path = KEPT + asked["path"].removeprefix(FORMS)
            await self.app({**asked, "path": path, "raw_path": quote(path).encode()}, receive, _Forgetting(send))

    @property
    def _is_secure(self) -> bool:
        return self.people is not None and self.people.is_secure


@dataclass(slots=True)
class _Leading:
    """Sends on the answer, but leads those not let in to the sign-in page; sends nothing if they have sent a form."""

    send: Send
    scope: Scope
    has_key: bool
    renewed: bytes | None = None
    is_form: bool = False
    is_form_refused: bool = False
    is_led: bool = False

    async def __call__(self, message: Message) -> None:
        is_refused = message["type"] == "http.response.start" and self._refuses(message["status"])
        if self.is_form and is_refused:
            self.is_form_refused = True
        if self.is_form_refused:
            return
        if is_refused:
            self.is_led = True
            asked = {"next": _write_here(self.scope), **({"again": "1"} if self.has_key else {})}
            address = f"{SIGN_IN}?{urlencode(asked)}"
            # A key that was not sent was not refused: the browser withholds it from requests of other sites.
            forgotten = [_FORGET] if self.has_key else []
            # A stream is not redirected: after a 204 the browser stops asking for it (HTML, section 9.2.3).
            is_stream = self.scope["path"] == EVENTS
            leading = [] if is_stream else [(b"location", address.encode()), (b"content-length", b"0")]
            status = 204 if is_stream else 303
            message = {"type": "http.response.start", "status": status, "headers": [*leading, *forgotten]}
        elif message["type"] == "http.response.start" and self.renewed is not None and not _sets_key(message):
            message = {**message, "headers": [*message["headers"], (b"set-cookie", self.renewed)]}
        elif self.is_led:
            message = {**message, "body": b""}
        await self.send(message)

    def _refuses(self, status: int) -> bool:
        """Return whether whoever asks is not let in, and not merely denied one thing."""
        return status == 401 or (status == 403 and self.has_key and not is_identified(self.scope))


@dataclass(frozen=True, slots=True)
class _Forgetting:
    """Sends on the answer, and makes the browser forget the key."""

    send: Send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], _FORGET]}
        await self.send(message)


def _sets_key(message: Message) -> bool:
    """Return whether an answer itself sets the key that the browser keeps, like the answer to signing out."""
    return any(name == b"set-cookie" and value.startswith(f"{COOKIE}=".encode()) for name, value in message["headers"])


def _is_link_from_elsewhere(scope: Scope, headers: Headers) -> bool:
    """Return whether a person followed a link on another site to a page, so that the browser withheld its cookies."""
    is_page = scope["method"] == "GET" and not scope["path"].startswith(SIGN_IN)
    is_followed = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") == "navigate"
    return is_page and is_followed and all(read_cookie(headers, name) is None for name in (COOKIE, SESSION))


def _write_here(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return scope["path"] + (f"?{query}" if query else "")


def is_console(path: str) -> bool:
    """Return whether an address is the console's."""
    return path == START or path.startswith(FOLDER)


def read_key(headers: Headers) -> str | None:
    """Return the key that a browser keeps, or `None`."""
    found = read_cookie(headers, COOKIE)
    return found if found is not None and _KEY.fullmatch(found) else None


def read_cookie(headers: Headers, name: str) -> str | None:
    """Return what a browser keeps under a name, or `None`."""
    try:
        found = SimpleCookie(_part_cookies(headers).get(name, "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None


def list_cookies(headers: Headers, beginning: str) -> list[str]:
    """Return the names of cookies that begin so, in the order in which they were sent: the oldest first (RFC 6265)."""
    return [name for name in _part_cookies(headers) if name.startswith(beginning)]


def _part_cookies(headers: Headers) -> dict[str, str]:
    """Return each cookie as it was sent, by its name.

    Another server, on the same host under a shorter path, may have one of the same name: browsers send that later
    (RFC 6265, section 5.4).
    """
    parts = dict[str, str]()
    for each in headers.get("cookie", "").split(";"):
        parts.setdefault(each.partition("=")[0].strip(), each)
    return parts


def read_next(address: str | None) -> str:
    """Return where to go after signing in: an address of this console, never another site or a sign-in page."""
    found = address or START
    path = found.partition("?")[0]
    return found if is_console(path) and not path.startswith(SIGN_IN) and "\\" not in found else START


def quote_address(address: str) -> str:
    """Return an address in the form that is allowed in a header."""
    return quote(address, safe=_URL_CHARACTERS)


def keep_key(
    request: Request, response: Response, key: str, session: str | None = None, *, is_secure: bool = False
) -> None:
    """Make the browser keep a key until it is closed, and the session that renews it, in place of any other.

    If they are secure, it sends them over TLS only.
    """
    is_secure = is_secure or request.url.scheme == "https"
    response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=is_secure)
    if session is not None:
        response.set_cookie(SESSION, session, httponly=True, samesite="strict", secure=is_secure)
    else:
        # Even if none was sent: a request from another site brings no cookie, but the browser may have one.
        forget_session(response, is_secure=is_secure)


def write_cookie(scope: Scope, key: str, *, is_secure: bool) -> bytes:
    """Return the value of a header that makes the browser keep a key as `keep_key` does."""
    secure = "; Secure" if is_secure or scope["scheme"] == "https" else ""
    return f"{COOKIE}={key}; HttpOnly; Path=/; SameSite=strict{secure}".encode()


def forget_key(response: Response) -> None:
    """Make the browser forget the key."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def forget_session(response: Response, *, is_secure: bool = False) -> None:
    """Make the browser forget the session that renews the key."""
    response.delete_cookie(SESSION, httponly=True, samesite="strict", secure=is_secure)


def is_key(text: str) -> bool:
    """Return whether a text may be kept as a key."""
    return _KEY.fullmatch(text) is not None
