"""The console's addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.responses import RedirectResponse
from starlette.routing import Route

from refdesk import errors
from refdesk.server.console import (
    acting,
    browsing,
    feed,
    gaps,
    overseeing,
    reading,
    searching,
    sessions,
    start,
    watches,
)
from refdesk.server.console.live import Changes
from refdesk.server.console.tickets import Tickets
from refdesk.server.console.visits import Site, Visit
from refdesk.server.credentials import find_caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from refdesk.server.console.issuer_sign_in import IssuerSignIn

    Show = Callable[[Visit], Awaitable[Response]]

READ, WRITE = ["GET"], ["GET", "POST"]


@dataclass(frozen=True, slots=True)
class Console:
    """The pages of one server.

    Attributes:
        tickets: Those that sign in whoever may read the data folder.
        issuer: Signs people in with the issuer; `None` if there is none.
    """

    site: Site
    tickets: Tickets = field(default_factory=Tickets)
    issuer: IssuerSignIn | None = None
    changes: Changes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", Changes(self.site.desk))

    def build_routes(self) -> list[Route]:
        """Return the routes."""
        pages: list[tuple[str, Show, list[str]]] = [
            ("/console/browse", browsing.lead_on, READ),
            ("/console/browse/{toolset}", browsing.show_shelf, READ),
            ("/console/feed", feed.show_feed, READ),
            ("/console/gaps", gaps.show_gaps, READ),
            ("/console/watches", watches.show_watches, READ),
            ("/console/desk", overseeing.show_work, READ),
            ("/console/desk/keys", overseeing.show_keys, READ),
            ("/console/desk/audit", overseeing.show_audit, READ),
            ("/console/read/{operation}", reading.show_answer, READ),
            ("/console/show/{toolset}/{resource}", reading.show_resource, READ),
            ("/console/do/{operation}", acting.show_or_do, WRITE),
        ]
        return [
            Route("/", self._start),
            *(Route(path, self._guarded(show), methods=methods) for path, show, methods in pages),
            Route(sessions.EVENTS, self._guarded(self.changes.follow)),
            Route("/console/sign-in", self._sign_in, methods=WRITE),
            Route(f"{sessions.KEPT}{{operation}}", self._guarded(acting.keep), methods=["POST"]),
            Route(sessions.ARRIVED, self._arrive),
            Route("/console/sign-out", self._sign_out, methods=["POST"]),
            *(self.issuer.build_routes() if self.issuer is not None else ()),
            Route("/console/{path:path}", self._guarded(_find_nothing), methods=READ),
        ]

    async def _start(self, request: Request) -> Response:
        if not request.query_params.get("q", "").strip():
            return await self._guarded(start.show_start)(request)
        if find_caller(request) is None:
            return _redirect_to_sign_in(request)
        return await self._guarded(searching.show_results)(request)

    async def _sign_in(self, request: Request) -> Response:
        visit, then = Visit(self.site, request), sessions.read_next(request.query_params.get("next"))
        ticket = request.query_params.get("ticket")
        if request.method == "GET" and ticket and (key := self.tickets.redeem(ticket)):
            response = RedirectResponse(then, 303)
            sessions.keep_key(request, response, key)
            return response
        if request.method == "GET":
            if visit.query.get("problem") == "lost" and find_caller(request) is not None:
                # Going back in the browser's history leads to where the issuer sent it, once more.
                return RedirectResponse(then, 303)
            return self._show_sign_in(visit, then, refused="again" in request.query_params)
        form = await request.form(max_fields=4, max_files=0)
        key = str(form.get("key", "")).strip()
        if not sessions.is_key(key):
            return self._show_sign_in(visit, then, refused=True, status=400)
        await self._end_session(request)
        response = RedirectResponse(then, 303)
        sessions.keep_key(request, response, key)
        return response

    async def _arrive(self, request: Request) -> Response:
        """Show a page that leads on at once: the next request then comes from this site, with the cookies."""
        then = sessions.quote_address(sessions.read_next(request.query_params.get("next")))
        response = Visit(self.site, request).show("arrived.html", {"next": then})
        response.headers["refresh"] = f"0; url={then}"
        return response

    def _show_sign_in(self, visit: Visit, then: str, *, refused: bool, status: int = 200) -> Response:
        values: dict[str, object] = {"next": then, "refused": refused, "issuer": None, "problem": None}
        if self.issuer is not None:
            said = self.issuer.explain(visit.query.get("problem"))
            link = self.issuer.write_link(then)
            values |= {"issuer": self.issuer.name, "issuer_link": link, "problem": said}
        return visit.show("sign_in.html", values, status)

    async def _sign_out(self, request: Request) -> Response:
        await self._end_session(request)
        response = RedirectResponse("/", 303)
        sessions.forget_key(response)
        sessions.forget_session(response)
        return response

    async def _end_session(self, request: Request) -> None:
        session = sessions.read_cookie(request.headers, sessions.SESSION)
        if self.issuer is not None and session:
            await self.issuer.people.close(session)

    def _guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that shows a page or, if that fails, a page that says why."""

        async def shown(request: Request) -> Response:
            visit = Visit(self.site, request)
            try:
                return await show(visit)
            except errors.RefdeskError as error:
                return visit.refuse(error)

        return shown


async def _find_nothing(_: Visit) -> Response:
    raise errors.NotFoundError("There is no such page.")


def _redirect_to_sign_in(request: Request) -> Response:
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return RedirectResponse(f"/console/sign-in?{urlencode({'next': here})}", 303)
