"""The release communications API over HTTP, with a control side that tests script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sample_world.azure_updates.faults import FaultRule, parse_rules
from sample_world.azure_updates.feed import DEFAULT_PAGE, Feed
from sample_world.azure_updates.queries import BadQueryError, FeedQuery, parse_query
from sample_world.azure_updates.world import Record, load_changes, load_roadmap, load_world
from sample_world.control import CONTROL_PATH, Control, refuse_control

FEED_PATH = "/releasecommunications/api/v2/azure"
ROADMAP_PATH = "/releasecommunications/api/v2/m365"
JSON_TYPE = "application/json; odata.metadata=minimal; odata.streaming=true; charset=utf-8"


class Emulator:
    """Two feeds with their faults and the log of what was asked. Control requests are neither counted nor logged."""

    def __init__(self, records: Sequence[Record], rules: Sequence[FaultRule] = ()) -> None:
        self._feed = Feed(records)
        self._feeds = {FEED_PATH: self._feed, ROADMAP_PATH: Feed(load_roadmap(), "M365")}
        self._control = Control(parse_rules, rules)

    def build_application(self) -> Starlette:
        """Return the application that serves these feeds."""
        return Starlette(
            routes=[
                *self._control.build_routes(),
                Route(f"{CONTROL_PATH}/world", self._set_world, methods=["POST"]),
                Route(f"{CONTROL_PATH}/roadmap", self._set_roadmap, methods=["POST"]),
                Route("/{path:path}", self._serve, methods=["GET"]),
            ]
        )

    async def _serve(self, request: Request) -> Response:
        fault = self._control.next_fault(request)
        return await self._control.finish(request, self._answer(request, fault), fault)

    def _answer(self, request: Request, fault: FaultRule | None) -> Response:
        try:
            found = self._read(request, fault)
        except BadQueryError as error:
            return _refuse(400, "BadRequest", str(error))
        if found is None:
            return _refuse(404, "NotFound", "No resource was found at this address.")
        return Response(_encode(found), headers={"Content-Type": JSON_TYPE})

    def _read(self, request: Request, fault: FaultRule | None) -> Record | None:
        path = request.url.path.removesuffix("/")
        if path in self._feeds:
            return self._read_page(self._feeds[path], parse_query(request.query_params.multi_items()), fault)
        parent, _, id = path.rpartition("/")
        return self._feeds[parent].get(id) if parent in self._feeds else None

    def _read_page(self, feed: Feed, query: FeedQuery, fault: FaultRule | None) -> Record:
        kind = fault.fault if fault else None
        if fault and kind == "page_shift":
            self._shift(fault)
        if kind == "duplicate_page":
            query = replace(query, skip=max(0, query.skip - (query.top or DEFAULT_PAGE)))
        page = feed.list_page(query)
        if kind == "empty_page":
            page["value"] = []
        if fault and kind == "wrong_count" and "@odata.count" in page:
            page["@odata.count"] = cast("int", page["@odata.count"]) + fault.count_error
        return page

    def _shift(self, fault: FaultRule) -> None:
        self._feed.withdraw(fault.withdraw)
        if isinstance(fault.publish, int):
            self._feed.publish(self._unpublished()[: fault.publish])
        elif fault.publish:
            self._feed.publish(fault.publish)

    def _unpublished(self) -> list[Record]:
        news = [change["set"] for change in load_changes() if change["kind"] == "published"]
        return [record for record in news if not self._feed.has(record["id"])]

    async def _set_world(self, request: Request) -> Response:
        return await self._replace(self._feed, request)

    async def _set_roadmap(self, request: Request) -> Response:
        return await self._replace(self._feeds[ROADMAP_PATH], request)

    async def _replace(self, feed: Feed, request: Request) -> Response:
        try:
            feed.replace(read_world(await request.json()))
        except ValueError as error:
            return refuse_control(error)
        return Response(status_code=204)


def read_world(value: object) -> list[Record]:
    """Return the records that a decoded JSON value names: a list of them, or `{"day": 1}` or `{"day": 2}`.

    The records need not be good ones: a feed of bad records is a thing to test.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, list):
        records = cast("list[object]", value)
        if all(isinstance(record, dict) for record in records):
            return cast("list[Record]", records)
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        if set(named) == {"day"} and isinstance(named["day"], int):
            return load_world(named["day"])
    raise ValueError('A world is a list of records, or {"day": 1} or {"day": 2}.')


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _refuse(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)
