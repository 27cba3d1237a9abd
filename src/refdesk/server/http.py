"""The ASGI application: MCP, REST, health and pages, behind one gate."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from uuid import uuid4

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Match, Mount, Route

from refdesk import errors
from refdesk.core.clock import SystemClock
from refdesk.core.operations import NESTED
from refdesk.server import answers, cors, mcp, news_feed, openapi, pages, rest, streams
from refdesk.server.console.routes import Console
from refdesk.server.console.sessions import CookieKey, is_console
from refdesk.server.console.tickets import Tickets
from refdesk.server.console.visits import Site, Visit
from refdesk.server.credentials import KeyCheck, find_caller_of, get_caller, get_holder, is_keyless
from refdesk.server.gate import Gate
from refdesk.server.limits.proxies import read_proxies
from refdesk.server.limits.rates import RateLimit
from refdesk.server.limits.sessions import SessionLimit, Sessions
from refdesk.server.messages import Messages, get_header_session, get_wanted_version
from refdesk.server.oauth.configuration import MCP, read_oauth
from refdesk.server.prefix import check_prefix, read_prefix
from refdesk.server.probes import HealthCheck, Probes
from refdesk.server.replies import reply_error, reply_text
from refdesk.server.revocation import Revocation
from refdesk.server.step_up import StepUp
from refdesk.server.streaming import build_streamable
from refdesk.server.telemetry import sending_metrics
from refdesk.server.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Scope

    from refdesk.app import Desk
    from refdesk.core.operations import ErrorFormat
    from refdesk.model import Principal
    from refdesk.protocols import Clock
    from refdesk.server.console.issuer_sign_in import IssuerSignIn
    from refdesk.server.limits.proxies import TrustedProxies
    from refdesk.server.mcp import RequestContext
    from refdesk.server.oauth.configuration import OAuth
    from refdesk.server.oauth.sign_in import SignIn
    from refdesk.server.streaming import Streamable
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)


def build_app(
    desk: Desk,
    anonymous: Principal | None,
    *,
    sse: bool = False,
    clock: Clock | None = None,
    takes_addresses: bool = False,
    make_adapter: Callable[[Desk, mcp.Identify], mcp.Adapter] = mcp.Adapter,
    tickets: Tickets | None = None,
) -> Gate:
    """Return the application.

    Its lifespan runs the MCP sessions and ends them with itself. The caller opens and closes the desk.

    Args:
        desk: The desk.
        anonymous: Who callers without a key act as; `None` if every caller needs a key.
        sse: Whether to serve the retired SSE transport too.
        clock: Used to check whether access tokens have expired; the machine's clock if none is given.
        takes_addresses: Whether requests may name the server by any IP address.
        make_adapter: Makes the adapter that serves the desk over MCP; one that serves more may be given.
        tickets: The tickets that the console accepts.

    Raises:
        ConfigurationError: The settings for signing in are incomplete or contradict each other, or no proxy can show
            the server under the path of its public URL.
    """
    oauth, prefix = _read_addresses(desk)
    sign_in = _choose_sign_in(oauth, desk, clock or SystemClock())
    adapter = make_adapter(desk, _identify)
    server = adapter.build_server()
    sessions = Sessions(desk.settings.max_sessions)
    revocation = Revocation(sessions, desk.settings.key_check_seconds)
    streamable = build_streamable(server, mcp.MESSAGE_BYTES, adapter.may_ask)
    probes = Probes(HealthCheck(desk))
    desk.listeners.append(probes.metrics.count)

    site = _make_site(desk, anonymous, probes, prefix, sse=sse)
    routes: list[BaseRoute] = [
        Route(MCP, _guard_sessions(streamable, sessions, adapter)),
        *probes.build_routes(),
        *_own_routes(site, sign_in, tickets or Tickets()),
        *rest.routes(desk),
        *(sign_in.resource.build_routes() if sign_in else ()),
        *(streams.build_routes(server, desk.settings.stdio_era, mcp.MESSAGE_BYTES, sessions, prefix) if sse else ()),
    ]
    get_error_format = partial(_get_error_format, rest.routes_by_format(desk))
    hosts, origins = _lowered(desk.settings.allowed_hosts), _lowered(desk.settings.allowed_origins)
    checks = _build_checks(desk, anonymous, get_error_format, sign_in, revocation, partial(_name_address, routes))
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Uploads), *cors.allow_pages(origins), *checks],
        lifespan=partial(_live, desk, probes, streamable, revocation),
        exception_handlers={
            HTTPException: partial(_refuse, site, get_error_format),
            Exception: partial(_break, site, get_error_format, partial(_name_address, routes)),
        },
    )
    most_bytes = {**rest.find_most_bytes(desk.toolsets), MCP: mcp.MESSAGE_BYTES, streams.MESSAGES: mcp.MESSAGE_BYTES}
    find_scheme = _scheme_finder(desk.settings)
    return Gate(app, hosts, origins, takes_addresses, most_bytes, get_error_format, find_scheme, prefix)


@asynccontextmanager
async def _live(
    desk: Desk, probes: Probes, streamable: Streamable, revocation: Revocation, _: Starlette
) -> AsyncGenerator[None]:
    sending = sending_metrics(desk.telemetry, probes.metrics, probes.check.measure)
    async with probes.check.run(), sending, streamable.run(), anyio.create_task_group() as group:
        group.start_soon(revocation.run)
        yield
        group.cancel_scope.cancel()


def _read_addresses(desk: Desk) -> tuple[OAuth | None, str]:
    """Return how callers sign in, and the path under which a proxy shows the server."""
    oauth = read_oauth(desk.settings)
    prefix = read_prefix(desk.settings, oauth)
    check_prefix(prefix, desk.toolsets)
    return oauth, prefix


def _scheme_finder(settings: Settings) -> Callable[[Scope], str]:
    """Return a function that finds the scheme a client uses: that of the public URL if the request names the server by
    it."""
    proxies, public = read_proxies(settings.trusted_proxies), urlsplit(settings.public_url or "")

    def find_scheme(scope: Scope) -> str:
        is_public = public.netloc.lower() == Headers(scope=scope).get("host", "").lower() != ""
        return public.scheme if is_public else proxies.find_scheme(scope)

    return find_scheme


def _choose_sign_in(oauth: OAuth | None, desk: Desk, clock: Clock) -> SignIn | None:
    if oauth is None:
        return None
    from refdesk.server.oauth.sign_in import build_sign_in

    return build_sign_in(oauth, desk.toolsets, clock)


def _build_checks(
    desk: Desk,
    anonymous: Principal | None,
    get_error_format: Callable[[Scope], ErrorFormat],
    sign_in: SignIn | None,
    revocation: Revocation,
    name_address: Callable[[Scope], str],
) -> list[Middleware]:
    proxies = read_proxies(desk.settings.trusted_proxies)
    tokens = sign_in.tokens if sign_in is not None else None
    checks = [
        Middleware(CookieKey, sign_in.sessions if sign_in is not None else None),
        Middleware(
            KeyCheck,
            desk,
            anonymous,
            get_error_format,
            tokens,
            proxies,
            name_address=name_address,
            revocation=revocation,
        ),
        Middleware(RateLimit, desk, _find_keyed, _carries_message, get_error_format),
    ]
    if sign_in is None:
        return checks
    from refdesk.server.oauth.protected_resource import Invite

    return [Middleware(Invite, sign_in.resource), *checks]


def _find_keyed(scope: Scope) -> Principal | None:
    """Return the owner of the key or token that a request carries."""
    return None if is_keyless(scope) else find_caller_of(scope)


def _carries_message(scope: Scope) -> bool:
    return scope["path"] == MCP or scope["path"].startswith(streams.MESSAGES)


def _identify(context: RequestContext) -> Principal:
    """Return the sender of the current message, whoever opened its session."""
    request = cast("Request", context.request)
    caller = get_caller(request)
    return mcp.identify_local(caller, is_agent_known=False)(context) if is_keyless(request.scope) else caller


def _get_error_format(routes: Sequence[tuple[Route, ErrorFormat]], scope: Scope) -> ErrorFormat:
    """Return the error format of the route that matches; else that of the routes beside it, else of all routes, if they
    agree."""
    for route, form in routes:
        if route.matches(scope)[0] is not Match.NONE:
            return form
    first = str(scope["path"]).split("/")[1:2]
    beside = [form for route, form in routes if route.path.split("/")[1:2] == first]
    others = beside or [form for _, form in routes]
    return others[0] if others and all(form == others[0] for form in others) else NESTED


def _name_address(routes: Sequence[BaseRoute], scope: Scope) -> str:
    """Return the route's path for a request, with the names of its parameters in place of their values; empty if there
    is none."""
    known = (route for route in routes if isinstance(route, Route | Mount))
    return next((route.path for route in known if route.matches(scope)[0] is not Match.NONE), "")


def _make_site(desk: Desk, anonymous: Principal | None, probes: Probes, prefix: str, *, sse: bool) -> Site:
    public = desk.settings.public_url

    def find_base(request: Request) -> str:
        return public.rstrip("/") if public is not None else str(request.base_url).rstrip("/") + prefix

    return Site(desk, anonymous, probes.get_shown, find_base, sse, prefix)


def _own_routes(site: Site, sign_in: SignIn | None, tickets: Tickets) -> list[Route]:
    desk, proxies = site.desk, read_proxies(site.desk.settings.trusted_proxies)
    description = openapi.describe(desk.toolsets, desk.settings.oauth_issuer, desk.settings.public_url)

    docs = pages.Docs(desk.toolsets, site.prefix, wants_keys=site.anonymous is None)
    write_description = cache(lambda: answers.to_text(description))

    async def described(_: Request) -> Response:
        return reply_text(write_description())

    async def show_docs(request: Request) -> Response:
        return docs.show(site.find_base(request))

    return [
        Route("/openapi.json", described),
        *Console(site, tickets, _choose_issuer_sign_in(site, sign_in, proxies)).build_routes(),
        *news_feed.build_routes(desk, site.find_base),
        Route("/docs", show_docs),
        Route("/assets/{name}", pages.asset),
    ]


def _choose_issuer_sign_in(site: Site, sign_in: SignIn | None, proxies: TrustedProxies) -> IssuerSignIn | None:
    if sign_in is None or sign_in.sessions is None:
        return None
    from refdesk.server.console.issuer_sign_in import IssuerSignIn

    return IssuerSignIn(site, sign_in.sessions, proxies.find_client)


def _guard_sessions(app: ASGIApp, sessions: Sessions, adapter: mcp.Adapter) -> Messages:
    limited = SessionLimit(app, sessions, get_holder, get_wanted_version)
    return Messages(StepUp(limited, adapter), mcp.MESSAGE_BYTES, sessions.find_version, get_header_session)


def _wants_page(request: Request) -> bool:
    """Return whether a person is looking, who has followed a link or typed an address."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def _refuse(
    site: Site, get_error_format: Callable[[Scope], ErrorFormat], request: Request, error: Exception
) -> Response:
    status, form = error.status_code if isinstance(error, HTTPException) else 500, get_error_format(request.scope)
    if status == 404:
        absence = errors.NotFoundError("No such address; see /docs for those there are.")
        return Visit(site, request).refuse(absence) if _wants_page(request) else reply_error(absence, form)
    if status == 405:
        headers = error.headers or {} if isinstance(error, HTTPException) else {}
        # The router joins a set, whose order differs from process to process.
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        refusal = errors.InvalidInputError(f"That address takes {allowed or 'another method'}; see /docs.")
        response = reply_error(refusal, form, 405)
        response.headers["allow"] = allowed
        return response
    return reply_error(errors.InvalidInputError("The request cannot be answered."), form, status)


async def _break(
    site: Site,
    get_error_format: Callable[[Scope], ErrorFormat],
    name_address: Callable[[Scope], str],
    request: Request,
    error: Exception,
) -> Response:
    incident = uuid4().hex[:8]
    logger.error("request broke", extra={"path": name_address(request.scope), "incident": incident}, exc_info=error)
    failure = errors.RefdeskError(f"Internal error; see incident {incident} in the server's log.")
    if is_console(request.url.path):
        return Visit(site, request).refuse(failure)
    return reply_error(failure, get_error_format(request.scope))


def _lowered(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
