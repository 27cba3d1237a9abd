"""The Atom feed of an agent's news, for feed readers: it needs the agent's key, like everything else.

Source: RFC 4287. An entry's id never changes, so that readers show each entry once.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from starlette.responses import Response
from starlette.routing import Route

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server.calls import Caller
from refdesk.server.credentials import get_caller
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from refdesk.app import Desk
    from refdesk.core.operations import Operation

PATH = "/watches/news.atom"
ATOM = "http://www.w3.org/2005/Atom"
MOST_ENTRIES = 100
NAMED = ("watch",)
"""Query parameters that the address takes: it may ask for the news of one watch only."""

_NEVER = "1970-01-01T00:00:00Z"
_SAID = {
    "dated": "other days",
    "superseded": "superseded by {other}",
    "impacted": "announcement {other} changes what it relies on",
    "contradicted": "contradicted by {other}",
    "merged": "merged into {other}",
    "outcome": "an outcome was reported",
}


def build_routes(desk: Desk, find_base: Callable[[Request], str]) -> list[Route]:
    """Return the route of the feed, if news can be listed at all.

    Args:
        desk: The desk.
        find_base: Returns the URL by which a client reaches the server.
    """
    found = [each for toolset in desk.toolsets for each in toolset.operations if each.name == "list_news"]
    if not found:
        return []

    async def serve(request: Request) -> Response:
        return await _serve(desk, found[0], request, find_base(request))

    return [Route(PATH, serve, methods=["GET"])]


async def _serve(desk: Desk, operation: Operation, request: Request, base: str) -> Response:
    asked: dict[str, object] = {"limit": MOST_ENTRIES}
    try:
        for name, value in request.query_params.multi_items():
            if name not in NAMED or name in asked:
                raise errors.InvalidInputError("The feed takes `watch`, once: the id of the watch whose news it has.")
            asked[name] = value
        principal = get_caller(request)
        caller = Caller(desk, principal, "rest", request.headers.get("traceparent"))
        answer = await caller.run(operation, asked)
        # The news of one watch is listed from the oldest on; the feed shows the newest.
        while answer.value["hasMore"]:
            following = await caller.run(operation, {**asked, "after": answer.value["cursor"]})
            following.value["news"] = [*answer.value["news"], *following.value["news"]][-MOST_ENTRIES:]
            answer = following
    except errors.RefdeskError as error:
        return reply_error(error, NESTED)
    body = render(answer.value["news"], f"{principal.org}/{principal.agent}", base + PATH)
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/atom+xml; charset=utf-8", headers=headers)


def render(news: list[Mapping[str, Any]], whose: str, address: str) -> bytes:
    """Return news, given oldest first, as a feed with the newest first.

    Args:
        news: As `list_news` lists them.
        whose: Identifies the feed: whose news it has.
        address: The URL of the feed.
    """
    feed = Element("feed", xmlns=ATOM)
    _add(feed, "title", "refdesk: what is new")
    _add(feed, "id", f"urn:refdesk:news:{hashlib.sha256(whose.encode()).hexdigest()[:32]}")
    _add(feed, "updated", max((str(each["at"]) for each in news), default=_NEVER))
    SubElement(feed, "link", rel="self", type="application/atom+xml", href=address)
    author = SubElement(feed, "author")
    _add(author, "name", "refdesk")
    for each in reversed(news):
        _add_entry(feed, each)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(feed, encoding="unicode").encode()


def _add_entry(feed: Element, news: Mapping[str, Any]) -> None:
    entry = SubElement(feed, "entry")
    said = _SAID.get(str(news["what"]), str(news["what"])).format(other=news.get("other", ""))
    if news["what"] == "dated":
        said = f"{said}: {', '.join(news['daysNow']) or 'none'} instead of {', '.join(news['daysBefore']) or 'none'}"
    _add(entry, "id", f"urn:refdesk:news:{news['watch']}:{news['number']}")
    _add(entry, "title", _clean(f"{news.get('title', news['id'])}: {said}"))
    _add(entry, "updated", str(news["at"]))
    _add(entry, "summary", _clean(f"{news['toolset']} {news['id']}: {said}"))
    SubElement(entry, "category", term=news["what"])
    if "label" in news:
        SubElement(entry, "category", term=_clean(news["label"]), scheme="urn:refdesk:label")


def _add(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = text


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(
        each
        for each in text
        if each in "\t\n\r" or (each >= " " and not "\ud800" <= each <= "\udfff" and each not in "\ufffe\uffff")
    )
