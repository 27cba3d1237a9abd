"""The side of an emulator that tests script: its fault rules and the log of what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sample_world.delivery import is_silent, spoil
from sample_world.faults import FaultPlan, Rule

CONTROL_PATH = "/_emulator"


class Control(Generic[Rule]):
    """The faults in force and the log. Control requests are neither counted nor logged."""

    def __init__(
        self, parse: Callable[[object], list[Rule]], rules: Iterable[Rule] = (), headers: Collection[str] = ()
    ) -> None:
        self._parse = parse
        self._plan = FaultPlan(rules)
        self._headers = {"accept", "accept-encoding", "host", "user-agent", *headers}
        self._log: list[dict[str, object]] = []

    def build_routes(self) -> list[Route]:
        """Return the routes of the control side."""
        return [
            Route(f"{CONTROL_PATH}/faults", self._set_faults, methods=["POST"]),
            Route(f"{CONTROL_PATH}/requests", self._list_requests, methods=["GET"]),
            Route(f"{CONTROL_PATH}/requests", self._forget_requests, methods=["DELETE"]),
        ]

    def next_fault(self, request: Request) -> Rule | None:
        """Count this request and return the fault that hits it, or `None`."""
        return self._plan.next(request.url.path)

    async def finish(self, request: Request, response: Response, fault: Rule | None) -> Response:
        """Log how the request is answered, and return the answer as the fault lets it go out."""
        spoiled = spoil(response, fault)
        self._log.append(
            {
                "number": len(self._log) + 1,
                "method": request.method,
                "path": request.url.path,
                "query": request.url.query,
                "options": dict(request.query_params.multi_items()),
                "headers": {name: value for name, value in request.headers.items() if name in self._headers},
                "body": (await request.body()).decode(errors="replace"),
                "status": None if is_silent(fault) else spoiled.status_code,
                "fault": fault.fault if fault else None,
            }
        )
        return spoiled

    async def _set_faults(self, request: Request) -> Response:
        try:
            self._plan = FaultPlan(self._parse(await request.json()))
        except ValueError as error:
            return refuse_control(error)
        return Response(status_code=204)

    async def _list_requests(self, _request: Request) -> Response:
        return JSONResponse(self._log)

    async def _forget_requests(self, _request: Request) -> Response:
        self._log.clear()
        return Response(status_code=204)


def refuse_control(error: ValueError) -> Response:
    """Return the answer to a control request that is wrong."""
    return JSONResponse({"error": {"code": "BadRequest", "message": str(error)}}, 400)
