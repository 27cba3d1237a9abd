"""Signing in to the console with the issuer that the settings name; imported only if they name one.

The browser comes back from another site, and then withholds cookies meant for this one alone (`SameSite=Strict`). So
whoever has signed in is shown a page that goes on by itself: the next request then comes from this site.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from starlette.responses import RedirectResponse
from starlette.routing import Route

from refdesk.server.console import sessions
from refdesk.server.console.visits import Visit
from refdesk.server.limits.attempts import Attempts
from refdesk.server.oauth.code_flow import RETURN, SignInError, read_begun

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from refdesk.server.console.visits import Site
    from refdesk.server.oauth.code_flow import Begun, CodeFlow, Problem
    from refdesk.server.oauth.sessions import SignInSessions

logger = logging.getLogger(__name__)

BEGIN = f"{sessions.SIGN_IN}/issuer"
COOKIE = "refdesk_sign_in_"
"""How the names of cookies begin; the rest is the beginning of the state. So tabs that sign in at the same time do not
take each other's."""

MOST_BEGUN = 4
"""Most sign-ins that a browser has begun and not ended; of more, the oldest is forgotten."""

KEPT_SECONDS = 600
"""How long a person may take at the issuer."""

MOST_RETURNS = 120
"""Most returns from one address in a minute; each makes the server ask the issuer."""

MOST_THEN = 2000
"""Most characters of an address that is kept; if it is longer, signing in leads to the start page."""

PROBLEMS: Mapping[Problem, str] = {
    "denied": "You were not signed in: access was denied where you sign in.",
    "failed": "You were not signed in: the page where you sign in sent you back with an error.",
    "large": "You were not signed in: your access token is too large for a browser to keep. Whoever runs the issuer "
    "can make it smaller, with fewer groups or roles in it; until then, sign in with a key.",
    "lost": "You were not signed in: this was not begun in this browser, took longer than ten minutes, or was used "
    "already. Sign in again.",
    "often": "You were not signed in: there were too many attempts from where you are. Wait a minute.",
    "orgless": "You were not signed in: you belong to no org of this server. Ask whoever manages your account where "
    "you sign in to add you to one, or sign in with a key.",
    "orgs": "You were not signed in: you belong to several orgs, and the console shows one. Choose one where you sign "
    "in, or sign in with a key.",
    "other": "You were not signed in: you were sent back by another issuer than the one of this server.",
    "refused": "You were not signed in: the access token is refused here, or none was made. Whoever runs this server "
    "finds the reason in its log.",
    "unreachable": "You were not signed in: the place where you sign in does not answer now. Try again in a minute, or "
    "sign in with a key.",
}


@dataclass(frozen=True, slots=True)
class IssuerSignIn:
    """The addresses from which a person is sent to the issuer and to which the person returns.

    Attributes:
        people: Who is signed in.
        find_client: Returns where a request comes from.
        returns: How often browsers came back from the issuer lately.
    """

    site: Site
    people: SignInSessions
    find_client: Callable[[Scope], str]
    returns: Attempts = field(default_factory=Attempts)

    @property
    def flow(self) -> CodeFlow:
        """The flow by which people get a token."""
        return self.people.flow

    @property
    def name(self) -> str:
        """The issuer by its host, as people know it."""
        return urlsplit(self.flow.issuer).netloc

    def write_link(self, then: str) -> str:
        """Return where signing in begins, on the host that the issuer sends back to, however the server was reached."""
        return f"{self.flow.client.base}{BEGIN}?{urlencode({'next': then})}"

    def explain(self, problem: str | None) -> str | None:
        """Return what to say about a problem; `None` if it is not a known one."""
        return next((text for name, text in PROBLEMS.items() if name == problem), None)

    def build_routes(self) -> list[Route]:
        """Return the routes."""
        return [Route(BEGIN, self._begin, methods=["GET"]), Route(RETURN, self._finish, methods=["GET"])]

    async def _begin(self, request: Request) -> Response:
        then = sessions.quote_address(sessions.read_next(request.query_params.get("next")))
        try:
            address, begun = await self.flow.begin(then if len(then) <= MOST_THEN else sessions.START)
        except SignInError as error:
            return self._lead_back(error, then)
        response = _keep_to_itself(RedirectResponse(address, 303))
        self._set_cookie(response, begun.state, begun.to_text(), KEPT_SECONDS)
        for name in sessions.list_cookies(request.headers, COOKIE)[: 1 - MOST_BEGUN]:
            self._set_cookie(response, name.removeprefix(COOKIE), "", 0)
        return response

    async def _finish(self, request: Request) -> Response:
        query = request.query_params
        state = query.get("state", "")
        begun = read_begun(sessions.read_cookie(request.headers, _name_cookie(state)), state)
        if begun is None:
            return self._lead_back(SignInError("lost", "The state is not the one that the browser keeps."))
        then = sessions.read_next(begun.then)
        try:
            response = await self._let_in(request, begun, then)
        except SignInError as error:
            logger.warning("sign-in failed", extra={"problem": error.problem, "reason": error.reason})
            response = self._lead_back(error, then)
        self._set_cookie(response, state, "", 0)
        return response

    async def _let_in(self, request: Request, begun: Begun, then: str) -> Response:
        if self.returns.count(self.find_client(request.scope), self.site.clock.now()) > MOST_RETURNS:
            raise SignInError("often", "There were too many attempts from one address.")
        person = await self.flow.finish(begun, request.query_params)
        values = {"next": then, "wants_keys": False}
        response = _keep_to_itself(Visit(self.site, request).show("signed_in.html", values))
        response.headers["refresh"] = f"0; url={sessions.quote_address(then)}"
        sessions.keep_key(request, response, person.grant.access, self.people.open(person), is_secure=self._is_secure)
        return response

    def _lead_back(self, error: SignInError, then: str = sessions.START) -> Response:
        """Return a redirect to the sign-in page; its address contains nothing that the issuer sent back."""
        query = urlencode({"next": then, "problem": error.problem})
        return _keep_to_itself(RedirectResponse(f"{sessions.SIGN_IN}?{query}", 303))

    @property
    def _is_secure(self) -> bool:
        return self.people.is_secure

    def _set_cookie(self, response: Response, state: str, text: str, seconds: int) -> None:
        # Lax: so that the browser sends the cookie when it returns from the issuer.
        name, path = _name_cookie(state), sessions.SIGN_IN
        response.set_cookie(name, text, seconds, path=path, secure=self._is_secure, httponly=True, samesite="lax")


def _name_cookie(state: str) -> str:
    return COOKIE + state[:8]


def _keep_to_itself(response: Response) -> Response:
    """Prevent caches from keeping an answer, and the next page from learning its address."""
    response.headers["cache-control"] = "no-store"
    response.headers["referrer-policy"] = "no-referrer"
    return response
