"""One request of a person: who it is, what they may do, what the operations answer, and the page that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.core.clock import SystemClock
from refdesk.core.operations import find_operation
from refdesk.server.calls import Caller
from refdesk.server.console.notices import find_notice
from refdesk.server.credentials import find_caller, get_caller, is_keyless
from refdesk.server.replies import status_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from refdesk.app import Desk
    from refdesk.core.background.health import Health
    from refdesk.core.operations import Operation, Resource, Toolset
    from refdesk.model import Principal
    from refdesk.protocols import Clock
    from refdesk.server.calls import Answered

TRANSPORT = "console"
LISTED = ("list_knowledge", "list_skills", "search_azure_updates")
"""Operations that list what a toolset holds."""


@dataclass(frozen=True, slots=True)
class Site:
    """The console of one server.

    Attributes:
        anonymous: Who callers without a key are; `None` if they are not let in.
        get_health: Returns what a caller may see of the server's health.
        find_base: Returns the server's own address, as the caller knows it.
        sse: Whether the retired SSE transport is served too.
        prefix: The path under which a proxy shows the server.
    """

    desk: Desk
    anonymous: Principal | None
    get_health: Callable[[Request], Awaitable[Health]]
    find_base: Callable[[Request], str]
    sse: bool = False
    prefix: str = ""
    clock: Clock = field(default_factory=SystemClock)

    @property
    def searchable(self) -> list[str]:
        """The toolsets that the search over everything asks."""
        return [toolset.name for toolset in self.desk.toolsets if toolset.provider is not None]

    def find_operation(self, name: str) -> Operation | None:
        """Return a served operation; `None` if there is none of that name."""
        return find_operation(self.desk.toolsets, name)

    def find_resource(self, uri: str) -> Resource | None:
        """Return a served resource; `None` if there is none at that address."""
        found = (each for toolset in self.desk.toolsets for each in toolset.resources if each.uri == uri)
        return next(found, None)

    def find_toolset(self, name: str) -> Toolset | None:
        """Return a served toolset; `None` if there is none of that name."""
        return next((toolset for toolset in self.desk.toolsets if toolset.name == name), None)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, answered by one page."""

    site: Site
    request: Request

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the address; of one given twice, the last."""
        return self.request.query_params

    @property
    def caller(self) -> Caller:
        """Who asks.

        Raises:
            UnauthenticatedError: The request does not say.
        """
        return Caller(self.site.desk, get_caller(self.request), TRANSPORT, keeps_markup=True)

    def may(self, name: str) -> bool:
        """Return whether the visitor may run an operation here."""
        operation = self.site.find_operation(name)
        who = find_caller(self.request)
        return operation is not None and who is not None and Caller(self.site.desk, who, TRANSPORT).may_run(operation)

    async def ask(self, name: str, arguments: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Return an operation's answer; errors as in `Caller.run`.

        Raises:
            NotFoundError: It is not served.
        """
        return (await self.call(name, arguments)).value

    async def call(self, name: str, arguments: Mapping[str, object] | None = None) -> Answered:
        """Return an operation's answer with what accompanies it; errors as in `ask`."""
        operation = self.site.find_operation(name)
        if operation is None:
            raise errors.NotFoundError("This server has no such operation.")
        return await self.caller.run(operation, dict(arguments or {}))

    async def read(self, uri: str) -> dict[str, Any]:
        """Return a resource; errors as in `ask`."""
        resource = self.site.find_resource(uri)
        if resource is None:
            raise errors.NotFoundError("This server has no such page.")
        return await self.caller.read(resource)

    def show(self, template: str, values: Mapping[str, Any] | None = None, status: int = 200) -> Response:
        """Return a page."""
        from refdesk.server.console.rendering import render

        who = find_caller(self.request)
        common: dict[str, Any] = {
            "caller": who,
            "may": self.may,
            "is_signed_in": who is not None and not is_keyless(self.request.scope),
            "wants_keys": self.site.anonymous is None,
            "searchable": self.site.searchable,
            "pages": self._list_pages(),
            "path": self.request.url.path,
            "here": _write_here(self.request),
            "now": self.site.clock.now(),
            "is_live": who is not None and status == 200 and not self.site.desk.settings.audit_reads,
            "did": find_notice(self.query, self.may),
            "question": "",
            "chosen": [],
        }
        return render(template, {**common, **(values or {})}, status, self.site.prefix)

    def refuse(self, error: errors.RefdeskError) -> Response:
        """Return a page that says why there is none."""
        return self.show("refused.html", {"error": error, "remedy": None}, status_of(error))

    def _list_pages(self) -> list[tuple[str, str]]:
        """Return the pages that every page links to: name and address."""
        browse = [("Browse", "/console/browse")] if any(self.site.find_operation(name) for name in LISTED) else []
        feed = [("Feed", "/console/feed")] if self.site.find_operation("search_azure_updates") is not None else []
        gaps = [("Gaps", "/console/gaps")] if self.may("list_gaps") else []
        watches = [("Watches", "/console/watches")] if self.may("list_watches") else []
        desk = [("Desk", "/console/desk")] if self.site.find_operation("show_syncs") is not None else []
        return [*browse, *feed, *gaps, *watches, *desk]


def _write_here(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
