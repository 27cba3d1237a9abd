"""The REST API over HTTP, with a control side that tests script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sample_world.control import CONTROL_PATH, Control, refuse_control
from sample_world.salesforce.articles import Article, load_articles, read_articles
from sample_world.salesforce.errors import ApiError
from sample_world.salesforce.faults import ERRORS, FaultRule, parse_rules
from sample_world.salesforce.org import Languages, Org, Usage, User, Versions
from sample_world.salesforce.resources import Answer, Call, Resources, describe_refusal
from sample_world.salesforce.schema import OrgKind
from sample_world.salesforce.tokens import Sessions, TokenError

OLDEST_KNOWN_VERSION = 21
LONGEST_ADDRESS = 16_384
_SEASONS = ("Spring", "Summer", "Winter")
_VERSION = re.compile(r"v(\d+)\.0")
_LOGGED_HEADERS = ("authorization", "content-type", "if-modified-since", "if-none-match", "sforce-query-options")
_NO_SESSION = (("WWW-Authenticate", "Token"),)


class Emulator:
    """One org behind the REST API, with its faults and the log of what was asked."""

    def __init__(
        self,
        kind: OrgKind,
        sessions: Sessions,
        *,
        articles: Sequence[Article] | None = None,
        article_object: str = "Knowledge__kav",
        rules: Sequence[FaultRule] = (),
    ) -> None:
        self._articles = load_articles() if articles is None else articles
        self._kind: OrgKind = kind
        self._article_object = article_object
        self._sessions = sessions
        self._control = Control(parse_rules, rules, _LOGGED_HEADERS)
        self._reset()

    def _reset(self) -> None:
        self._org = Org(self._kind, self._articles, self._article_object)
        self._resources = Resources(self._org)
        self._sessions.restore()
        self._users: dict[str, User] = {}

    def build_application(self) -> Starlette:
        """Return the application that serves this org."""
        return Starlette(
            routes=[
                *self._control.build_routes(),
                Route(f"{CONTROL_PATH}/org/{{what}}", self._change, methods=["POST"]),
                Route("/{path:path}", self._serve, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
            ]
        )

    async def _serve(self, request: Request) -> Response:
        fault = self._control.next_fault(request)
        if fault and fault.fault == "answer":
            response = _encode(fault.body, fault.status)
        elif request.url.path.rstrip("/") == "/services/oauth2/token":
            response = await self._grant(request, fault)
        else:
            response = await self._answer(request, fault)
        return await self._control.finish(request, response, fault)

    async def _grant(self, request: Request, fault: FaultRule | None) -> Response:
        if fault and fault.fault == "refuse":
            return _refuse(ERRORS[fault.error])
        if request.method != "POST":
            return _refuse_token(TokenError("invalid_request", "must use HTTP POST"))
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        try:
            granted = self._sessions.grant(form, request.headers.get("authorization", ""))
        except TokenError as error:
            return _refuse_token(error)
        return _encode(granted, headers=(("Cache-Control", "no-cache, no-store"),))

    async def _answer(self, request: Request, fault: FaultRule | None) -> Response:
        try:
            _check_length(request)
            if fault and fault.fault == "refuse":
                raise ERRORS[fault.error]
            parts = [part for part in request.url.path.split("/") if part]
            if parts[:2] != ["services", "data"]:
                raise ERRORS["not_found"]
            if len(parts) == 2:
                return _encode(list_versions(self._org.versions))
            return await self._answer_resource(request, parts[2], parts[3:])
        except ApiError as error:
            return _refuse(error)

    async def _answer_resource(self, request: Request, version: str, rest: Sequence[str]) -> Response:
        check_version(version, self._org.versions)
        authorization = request.headers.get("authorization", "")
        user = self._users.get(authorization.removeprefix("Bearer "))
        if user is None and not self._sessions.is_good(authorization):
            return _refuse(ERRORS["session_expired"], _NO_SESSION)
        try:
            self._count()
            call = Call(
                request.method,
                version[1:],
                tuple(rest),
                request.query_params.multi_items(),
                dict(request.headers),
                await request.body(),
            )
            answer = self._answer_as(user, call)
        except ApiError as error:
            return _refuse(error, self._limit_header())
        return _send(Answer(answer.value, answer.status, (*answer.headers, *self._limit_header())))

    def _answer_as(self, user: User | None, call: Call) -> Answer:
        """Return the answer to another user than the one that the org's app runs as, or to that one."""
        own = self._org.user
        self._org.user = user or own
        try:
            return self._resources.answer(call)
        finally:
            self._org.user = own

    def _count(self) -> None:
        if not self._org.user.api_enabled:
            raise ERRORS["api_disabled_for_org"]
        if self._org.usage.used >= self._org.usage.limit:
            raise ERRORS["request_limit"]
        self._org.usage.used += 1

    def _limit_header(self) -> tuple[tuple[str, str], ...]:
        return (("Sforce-Limit-Info", self._org.usage.to_header()),)

    async def _change(self, request: Request) -> Response:
        try:
            self._apply(request.path_params["what"], json.loads(await request.body() or b"null"))
        except ValueError as error:
            return refuse_control(error)
        return Response(status_code=204)

    def _apply(self, what: str, value: object) -> None:
        if what == "reset":
            self._reset()
        elif what == "expire":
            self._sessions.expire()
        elif what == "user":
            self._org.set_user(User.model_validate(value))
        elif what == "usage":
            self._org.usage = Usage.model_validate(value)
        elif what == "articles":
            self._org.set_articles(read_articles(value))
        elif what == "versions":
            self._org.versions = Versions.model_validate(value)
        elif what == "languages":
            self._org.languages = Languages.model_validate(value)
        elif what == "users" and isinstance(value, dict):
            users = cast("dict[str, object]", value)
            self._users = {token: User.model_validate(rights) for token, rights in users.items()}
        elif what == "page-size" and isinstance(value, int) and value > 0:
            self._org.page_size = value
        else:
            raise ValueError(f"The org has no {what} that could be {value!r}.")


def list_versions(versions: Versions) -> list[dict[str, str]]:
    """Return what the service says of its versions, oldest first."""
    return [
        {"label": _name_release(number), "url": f"/services/data/v{number}.0", "version": f"{number}.0"}
        for number in range(versions.oldest, versions.newest + 1)
    ]


def check_version(text: str, versions: Versions) -> None:
    """Fail unless this version of the API is served.

    Raises:
        ApiError: it is retired (410) or none (404).
    """
    match = _VERSION.fullmatch(text)
    number = int(match[1]) if match else 0
    if OLDEST_KNOWN_VERSION <= number < versions.oldest:
        raise ApiError(410, "GONE", f"The API version {text} is retired and no longer available.")
    if not versions.oldest <= number <= versions.newest:
        raise ERRORS["not_found"]


def _name_release(number: int) -> str:
    # Three releases a year; 66 is Spring '26, and Winter carries the number of the year that it leads into.
    year = 26 + (number - 66) // 3 + (1 if number % 3 == 2 else 0)
    return f"{_SEASONS[number % 3]} '{year}"


def _check_length(request: Request) -> None:
    address = len(request.url.path) + len(request.url.query) + 1
    if address > LONGEST_ADDRESS:
        raise ApiError(414, "URI_TOO_LONG", "The length of the URI exceeds the 16,384-byte limit.")
    headers = sum(len(name) + len(value) for name, value in request.headers.raw)
    if address + headers > LONGEST_ADDRESS:
        raise ApiError(431, "REQUEST_HEADER_FIELDS_TOO_LARGE", "The URI and headers exceed the 16,384-byte limit.")


def _encode(value: object, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, {"Content-Type": "application/json;charset=UTF-8", **dict(headers)})


def _refuse(error: ApiError, headers: Sequence[tuple[str, str]] = ()) -> Response:
    return _encode(describe_refusal(error), error.status, headers)


def _refuse_token(error: TokenError) -> Response:
    return _encode({"error": error.error, "error_description": error.description}, 400)


def _send(answer: Answer) -> Response:
    if answer.value is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    return _encode(answer.value, answer.status, answer.headers)
