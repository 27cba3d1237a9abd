"""Shelves: what a toolset holds, listed without a query, page by page, narrowed by tag, author, age and the like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from refdesk import errors

if TYPE_CHECKING:
    from starlette.responses import Response

    from refdesk.server.console.visits import Visit

Answer: TypeAlias = Mapping[str, Any]

PAGE = 25
MOST_CHOICES = 12
"""Most values of a filter that are offered; the address takes any."""

FARTHEST_PAGE = 10_000_000
AGES = {"7d": "last 7 days", "30d": "last 30 days", "90d": "last 90 days", "365d": "last year"}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing of a list.

    Attributes:
        at: When it was written, or changed last.
        facts: Short texts.
        marks: What sets it apart from others, such as being superseded.
    """

    title: str
    address: str
    text: str = ""
    author: str = ""
    at: str = ""
    tags: Sequence[str] = ()
    facts: Sequence[str] = ()
    marks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a filter, with how many things have it, if that is known, and where choosing it leads."""

    value: str
    words: str
    count: int | None
    is_chosen: bool
    address: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list, and what it can be narrowed by: each filter's name with its values and their counts.

    Attributes:
        cursor: Where the next page begins; empty on the last one.
    """

    rows: Sequence[Row]
    total: int
    filters: Mapping[str, Sequence[tuple[str, int | None]]]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The list of what a toolset holds.

    Attributes:
        operation: Whoever may run it sees the shelf.
        read: Returns a page: called with the visit, the filters in the address, and where the page begins.
        nothing: What to say if there is nothing yet.
        act: The act that adds something to it, and the words for that; empty if there is no form for it.
    """

    toolset: str
    name: str
    operation: str
    filters: tuple[str, ...]
    read: Callable[[Visit, Mapping[str, str], Answer], Awaitable[Listing]]
    nothing: str
    act: tuple[str, str] = ("", "")


async def lead_on(visit: Visit) -> Response:
    """Lead to the first shelf."""
    return RedirectResponse(f"/console/browse/{_find_shelf(visit, None).toolset}", 303)


async def show_shelf(visit: Visit) -> Response:
    """Show a page of a shelf."""
    shelf = _find_shelf(visit, visit.request.path_params["toolset"])
    chosen = {name: value for name in shelf.filters if (value := visit.query.get(name, "").strip())}
    number = _read_page(visit.query.get("page", ""))
    cursor = visit.query.get("cursor", "")
    begin = {"limit": PAGE, **({"cursor": cursor} if cursor else {"offset": (number - 1) * PAGE})}
    listing = await shelf.read(visit, chosen, begin)
    here = f"/console/browse/{shelf.toolset}"
    pages = max(number if listing.rows else 1, -(-listing.total // PAGE))
    values = {
        "shelf": shelf,
        "shelves": list_shelves(visit),
        "listing": listing,
        "chosen_filters": [(name, _name(name, value), _narrow(here, chosen, name)) for name, value in chosen.items()],
        "choices": {name: _list_choices(here, chosen, name, found) for name, found in listing.filters.items()},
        "number": number,
        "last": pages,
        "newer": _turn(here, chosen, number - 1) if number > 1 else "",
        "older": _turn(here, chosen, number + 1, listing.cursor) if listing.cursor else "",
    }
    return visit.show("browse.html", values)


def list_shelves(visit: Visit) -> list[Shelf]:
    """Return the shelves that the visitor may see."""
    return [shelf for shelf in SHELVES if visit.may(shelf.operation)]


def _find_shelf(visit: Visit, toolset: str | None) -> Shelf:
    known = [shelf for shelf in SHELVES if visit.site.find_operation(shelf.operation) is not None]
    seen = [shelf for shelf in known if visit.may(shelf.operation)] or known
    found = next((shelf for shelf in seen if toolset in (None, shelf.toolset)), None)
    if found is None:
        raise errors.NotFoundError("This server has nothing of that kind to list.")
    return found


def _read_page(text: str) -> int:
    return min(FARTHEST_PAGE, int(text)) if text.isdecimal() and len(text) < 10 and int(text) > 0 else 1


def _name(filter: str, value: str) -> str:
    return AGES.get(value, value) if filter == "age" else value


def _list_choices(
    here: str, chosen: Mapping[str, str], name: str, found: Sequence[tuple[str, int | None]]
) -> list[Choice]:
    return [
        Choice(
            value, _name(name, value), count, chosen.get(name) == value, _turn(here, {**chosen, name: value}, number=1)
        )
        for value, count in found[:MOST_CHOICES]
    ]


def _narrow(here: str, chosen: Mapping[str, str], without: str) -> str:
    return _turn(here, {name: value for name, value in chosen.items() if name != without}, number=1)


def _turn(here: str, chosen: Mapping[str, str], number: int, cursor: str = "") -> str:
    page = {"page": number} if number > 1 else {}
    query = urlencode({**chosen, **page, **({"cursor": cursor} if cursor else {})})
    return f"{here}?{query}" if query else here


async def _list_notes(visit: Visit, chosen: Mapping[str, str], begin: Answer) -> Listing:
    ages = {"since": _begin(visit, chosen["age"])} if chosen.get("age") in AGES else {}
    shown = {"includeSuperseded": True, "includeExpired": True} if chosen.get("also") == "past" else {}
    author = {"author": chosen["author"]} if "author" in chosen else {}
    tags = {"tags": [chosen["tag"]]} if "tag" in chosen else {}
    asked = {**ages, **shown, **author, **tags, **begin}
    found = await visit.ask("list_knowledge", asked)
    known = await visit.ask("list_tags", {"limit": MOST_CHOICES})
    authors = await visit.ask("list_authors", {"limit": MOST_CHOICES})
    return Listing(
        [_to_note(visit, each) for each in found["entries"]],
        found["total"],
        {
            "tag": [(each["tag"], each["entries"]) for each in known["tags"]],
            "author": [(each["author"], each["entries"]) for each in authors["authors"]],
            "age": [(age, None) for age in AGES],
            "also": [("past", None)],
        },
        found.get("nextCursor", ""),
    )


def _begin(visit: Visit, age: str) -> str:
    return (visit.site.clock.now() - timedelta(days=int(age[:-1]))).isoformat()


def _to_note(visit: Visit, entry: Answer) -> Row:
    is_over = entry.get("expiresAt", "9999") <= visit.site.clock.now().isoformat()
    return Row(
        title=entry["title"],
        address=f"/console/read/get_knowledge?{urlencode({'id': entry['id']})}",
        author=entry["author"],
        at=entry["createdAt"],
        tags=entry["tags"],
        marks=[*(["superseded"] if entry["isSuperseded"] else []), *(["expired"] if is_over else [])],
    )


async def _list_skills(visit: Visit, chosen: Mapping[str, str], begin: Answer) -> Listing:
    names = {"area": "product_area", "type": "issue_type"}
    asked = {names[name]: value for name, value in chosen.items()}
    found = await visit.ask("list_skills", {**asked, **begin})
    return Listing(
        [_to_skill(each) for each in found["skills"]],
        found["total"],
        {
            "area": [(each["value"], each["skills"]) for each in found["product_areas"]],
            "type": [(each["value"], each["skills"]) for each in found["issue_types"]],
        },
        found.get("next_cursor", ""),
    )


def _to_skill(skill: Answer) -> Row:
    return Row(
        title=skill["title"],
        address=f"/console/read/get_skill?{urlencode({'skill_id': skill['skill_id']})}",
        text=skill["problem"],
        author=skill["author"],
        at=skill["updated_at"],
        facts=[
            f"version {skill['version']}",
            f"confidence {skill['confidence']:.0%}",
            f"used {skill['times_used']} times",
        ],
    )


async def _list_updates(visit: Visit, chosen: Mapping[str, str], begin: Answer) -> Listing:
    names = {"tag": "tags", "category": "productCategories"}
    filters: dict[str, object] = {names[name]: [value] for name, value in chosen.items() if name in names}
    rings = {"availabilityRing": chosen["ring"]} if "ring" in chosen else {}
    asked = {
        "filters": {**filters, **rings},
        **begin,
        "includeDescription": False,
        "facets": ["tags", "productCategories", "availabilityRing"],
    }
    found = await visit.ask("search_azure_updates", asked)
    facets = found["facets"]
    return Listing(
        [_to_update(each) for each in found["results"]],
        found["total"],
        {
            name: [(each["value"], each["count"]) for each in facets.get(facet, ())]
            for name, facet in (("ring", "availabilityRing"), ("tag", "tags"), ("category", "productCategories"))
        },
        found.get("nextCursor", ""),
    )


def _to_update(update: Answer) -> Row:
    return Row(
        title=update["title"],
        address=f"/console/read/search_azure_updates?{urlencode({'id': update['id']})}",
        at=update["modified"],
        tags=update["tags"],
        facts=[each for each in (update.get("status") or "", ", ".join(update["products"][:3])) if each],
    )


SHELVES = (
    Shelf(
        "knowledge",
        "Notes",
        "list_knowledge",
        ("tag", "author", "age", "also"),
        _list_notes,
        "Nothing yet. Agents store what they learn with store_knowledge.",
        ("store_knowledge", "New entry"),
    ),
    Shelf(
        "skills",
        "Skills",
        "list_skills",
        ("area", "type"),
        _list_skills,
        "Nothing yet. Skills are learned from support conversations.",
        ("create_skill", "Learn from a conversation"),
    ),
    Shelf(
        "azure-updates",
        "Announcements",
        "search_azure_updates",
        ("ring", "tag", "category"),
        _list_updates,
        "Nothing yet. The page Feed shows how the syncs went.",
    ),
)
