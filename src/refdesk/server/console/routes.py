"""The console's addresses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from refdesk import errors
from refdesk.server import answers, calls, json_types
from refdesk.server.calls import Caller
from refdesk.server.console import searching, sessions
from refdesk.server.console.arranging import arrange
from refdesk.server.console.tickets import Tickets
from refdesk.server.credentials import find_caller, get_caller
from refdesk.server.replies import status_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from refdesk.app import Desk
    from refdesk.core.background.health import Health
    from refdesk.core.operations import Operation, Resource, Toolset
    from refdesk.model import Principal

TRANSPORT = "console"
STATUS_WORDS = {
    "ok": "Everything works",
    "degraded": "It works, but not all of it",
    "failing": "It does not work",
}


@dataclass(frozen=True, slots=True)
class Console:
    """The pages of one server.

    Attributes:
        anonymous: Who callers without a key are; `None` for nobody.
        get_health: Returns what a caller may see of the server's health.
        find_base: Returns the server's own address, as a caller has it.
        tickets: What signs in who may read the data folder.
    """

    desk: Desk
    anonymous: Principal | None
    get_health: Callable[[Request], Awaitable[Health]]
    find_base: Callable[[Request], str]
    sse: bool = False
    tickets: Tickets = field(default_factory=Tickets)

    def build_routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", self._start),
            Route("/console/read/{operation}", self._guarded(self._read)),
            Route("/console/show/{toolset}/{resource}", self._guarded(self._show)),
            Route("/console/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route("/console/sign-out", self._sign_out, methods=["POST"]),
        ]

    async def _start(self, request: Request) -> Response:
        question = request.query_params.get("q", "").strip()
        if not question:
            return await self._show_start(request)
        if find_caller(request) is None:
            return _redirect_to_sign_in(request)
        return await self._guarded(self._search)(request)

    async def _show_start(self, request: Request) -> Response:
        health = await self.get_health(request)
        base = self.find_base(request)
        addresses = [("MCP", f"{base}/mcp", "streamable HTTP, for any MCP client")]
        addresses += [("MCP (SSE)", f"{base}/sse", "for clients that know nothing newer")] if self.sse else []
        addresses += [
            ("REST", f"{base}/docs", "every operation, with a form to try it"),
            ("OpenAPI", f"{base}/openapi.json", "the same for machines"),
            ("Health", f"{base}/health", "200 while it works, 503 when not"),
        ]
        return self._render(
            request,
            "start.html",
            {
                "health": health,
                "status": STATUS_WORDS[health.status],
                "toolsets": [(toolset, health.toolsets.get(toolset.name)) for toolset in self.desk.toolsets],
                "addresses": addresses,
                "url": base,
            },
        )

    async def _search(self, request: Request) -> Response:
        question = request.query_params["q"].strip()
        chosen = [name for name in request.query_params.getlist("in") if name in self._searchable]
        toolset, operation = searching.choose_search(self.desk.toolsets)
        arguments = searching.make_arguments(operation, question, chosen)
        answer = (await self._call(request, operation, arguments)).value
        values = {
            "question": question,
            "chosen": chosen,
            "notice": answer.get("notice", ""),
            "results": searching.list_results(toolset, operation, answer),
            "coverage": answer.get("coverage", []),
        }
        return self._render(request, "search.html", values)

    async def _read(self, request: Request) -> Response:
        operation = self._find_operation(request.path_params["operation"])
        if not operation.effects.read_only:
            raise errors.NotFoundError("Only what reads has a page here.")
        given = json_types.read_texts(dict(request.query_params), calls.get_schema(operation.input))
        answer = await self._call(request, operation, given)
        values = {
            "toolset": self.desk.find_toolset(operation),
            "operation": operation,
            "thing": arrange(answer.value, operation.title),
            "warnings": answers.get_warnings(answer.meta),
            "raw": json.dumps(answer.value, indent=2, ensure_ascii=False),
        }
        return self._render(request, "read.html", values)

    async def _show(self, request: Request) -> Response:
        resource = self._find_resource(request.path_params["toolset"], request.path_params["resource"])
        answer = await Caller(self.desk, get_caller(request), TRANSPORT).read(resource)
        values: dict[str, object] = {
            "toolset": request.path_params["toolset"],
            "operation": resource,
            "thing": arrange(answer, resource.name),
            "warnings": (),
            "raw": json.dumps(answer, indent=2, ensure_ascii=False),
        }
        return self._render(request, "read.html", values)

    async def _sign_in(self, request: Request) -> Response:
        then = _read_next(request.query_params.get("next"))
        ticket = request.query_params.get("ticket")
        if request.method == "GET" and ticket and (key := self.tickets.redeem(ticket)):
            response = RedirectResponse(then, 303)
            sessions.keep_key(request, response, key)
            return response
        if request.method == "GET":
            refused = "again" in request.query_params
            response = self._render(request, "sign_in.html", {"next": then, "refused": refused})
            if refused:
                sessions.forget_key(response)
            return response
        form = await request.form(max_fields=4, max_files=0)
        key = str(form.get("key", "")).strip()
        if not sessions.is_key(key):
            return self._render(request, "sign_in.html", {"next": then, "refused": True}, 400)
        response = RedirectResponse(then, 303)
        sessions.keep_key(request, response, key)
        return response

    async def _sign_out(self, _: Request) -> Response:
        response = RedirectResponse("/", 303)
        sessions.forget_key(response)
        return response

    async def _call(self, request: Request, operation: Operation, arguments: Mapping[str, object]) -> calls.Answered:
        return await Caller(self.desk, get_caller(request), TRANSPORT).run(operation, dict(arguments))

    def _guarded(self, show: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return what shows a page, or says on one why there is none."""

        async def shown(request: Request) -> Response:
            try:
                return await show(request)
            except errors.RefdeskError as error:
                return self._render(request, "refused.html", {"error": error}, status_of(error))

        return shown

    def _render(self, request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        caller = find_caller(request)
        common = {
            "caller": caller,
            "is_signed_in": caller is not None and caller is not self.anonymous,
            "wants_keys": self.anonymous is None,
            "searchable": self._searchable,
            "pages": self._list_pages(),
            "path": request.url.path,
            "question": "",
            "chosen": [],
        }
        from refdesk.server.console.rendering import render

        return render(template, {**common, **values}, status)

    @property
    def _searchable(self) -> list[str]:
        return [toolset.name for toolset in self.desk.toolsets if toolset.provider is not None]

    def _list_pages(self) -> list[tuple[str, str]]:
        """Return the resources that have a page: name and address."""
        return [
            (resource.name, f"/console/show/{toolset.name}/{_name(resource)}")
            for toolset in self.desk.toolsets
            for resource in toolset.resources
        ]

    def _find_operation(self, name: str) -> Operation:
        for toolset in self.desk.toolsets:
            for operation in toolset.operations:
                if operation.name == name:
                    return operation
        raise errors.NotFoundError("This server has no such operation.")

    def _find_resource(self, toolset: str, name: str) -> Resource:
        for each in self._find_toolset(toolset).resources:
            if _name(each) == name:
                return each
        raise errors.NotFoundError("This server has no such page.")

    def _find_toolset(self, name: str) -> Toolset:
        for toolset in self.desk.toolsets:
            if toolset.name == name:
                return toolset
        raise errors.NotFoundError("This server has no such toolset.")


def _name(resource: Resource) -> str:
    return resource.route.path.rpartition("/")[2]


def _read_next(address: str | None) -> str:
    """Return where to go after signing in: an address of this console, never elsewhere."""
    found = address or sessions.START
    return found if sessions.is_console(found.partition("?")[0]) and "\\" not in found else sessions.START


def _redirect_to_sign_in(request: Request) -> Response:
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return RedirectResponse(f"/console/sign-in?{urlencode({'next': here})}", 303)
