"""The feed itself: records in memory, answered as the release communications API answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import cast
from urllib.parse import quote, urlencode

from sample_world.azure_updates.instants import to_ticks
from sample_world.azure_updates.queries import FeedQuery
from sample_world.azure_updates.world import Record

# The service names a front-end host in its links that is not the host it is asked at; a client must not follow it.
FRONT_END = "https://relcomms-sample.edge.example/api/v2"
DEFAULT_PAGE = 100
LARGEST_PAGE = 1000
MOST = 2**63


class Feed:
    """The announcements in force, in the service's own order: `modified`, newest first, then as given.

    Args:
        records: In the wire format.
        kind: What the service calls the type of its records; in lower case, the path that it serves them at.
    """

    def __init__(self, records: Iterable[Record], kind: str = "Azure") -> None:
        self._kind = kind
        self.replace(records)

    def replace(self, records: Iterable[Record]) -> None:
        """Let the feed hold exactly these records from now on."""
        self._records = sorted(records, key=_modified, reverse=True)

    def publish(self, records: Iterable[Record]) -> None:
        """Add records; one that has the id of a record in force takes its place."""
        new = list(records)
        ids = {record.get("id") for record in new}
        self.replace([*new, *(record for record in self._records if record.get("id") not in ids)])

    def withdraw(self, ids: Sequence[str]) -> None:
        """Take the records with these ids out; ids that are absent change nothing."""
        self._records = [record for record in self._records if record.get("id") not in ids]

    def get(self, id: str) -> Record | None:
        """Return the record with this id under its own context annotation, or `None`."""
        for record in self._records:
            if str(record.get("id")) == id:
                return {"@odata.context": f"{FRONT_END}/$metadata#{self._kind}/$entity", **record}
        return None

    def has(self, id: object) -> bool:
        """Say whether a record with this id is in force."""
        return any(record.get("id") == id for record in self._records)

    def list_page(self, query: FeedQuery) -> Record:
        """Return one page in the service's envelope.

        Without `top` a page has 100 records and a link to the next one while there are more. With `top` up to 1,000 the
        answer is complete; a larger one is answered in pages of 1,000. The count and the facets are of all that match,
        on every page. Equal sort keys keep the feed's own order.
        """
        found = self._find(query)
        size = min(DEFAULT_PAGE if query.top is None else query.top, LARGEST_PAGE)
        end = query.skip + size
        page: Record = {"@odata.context": f"{FRONT_END}/$metadata#{self._kind}"}
        if query.count:
            page["@odata.count"] = len(found)
        if end < len(found) and (query.top is None or query.top > size):
            left = None if query.top is None else query.top - size
            page["@odata.nextLink"] = _next_link(self._kind.lower(), query, end, left)
        page["value"] = [_select(record, query.select) for record in found[query.skip : end]]
        if query.facets:
            page["facets"] = count_facets(found)
        return page

    def _find(self, query: FeedQuery) -> list[Record]:
        found = [record for record in self._records if query.matches is None or query.matches(record)]
        if query.search:
            found = [record for record in found if _has_words(record, query.search)]
        for name, descending in reversed(query.order):
            found.sort(key=_sort_key(name), reverse=descending)
        return found


def count_facets(records: Sequence[Record]) -> list[Record]:
    """Return the facet tree: categories (each with the products of its records), tags, products, statuses; by name."""
    categories = [
        {
            **entry,
            "subFacets": [{"name": "Product", "values": _count(_in_category(records, entry["value"]), "products")}],
        }
        for entry in _count(records, "productCategories")
    ]
    return [
        {"name": "ProductCategory", "values": categories},
        {"name": "Tags", "values": _count(records, "tags")},
        {"name": "Product", "values": _count(records, "products")},
        {"name": "Status", "values": _count(records, "status")},
    ]


def _values(record: Record, field: str) -> list[str]:
    value = record.get(field)
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    return [item for item in listed if isinstance(item, str)]


def _count(records: Iterable[Record], field: str) -> list[Record]:
    counts = Counter(value for record in records for value in dict.fromkeys(_values(record, field)))
    return [{"value": value, "count": counts[value]} for value in sorted(counts)]


def _in_category(records: Iterable[Record], category: object) -> list[Record]:
    return [record for record in records if category in _values(record, "productCategories")]


def _modified(record: Record) -> int:
    return to_ticks(record.get("modified")) or 0


def _sort_key(name: str) -> Callable[[Record], int | str | tuple[int, str]]:
    if name in ("created", "modified"):
        return lambda record: to_ticks(record.get(name)) or 0
    return lambda record: _rank(record.get(name), _values(record, name))


def _rank(value: object, texts: Sequence[str]) -> tuple[int, str]:
    """Return the place of a value: a number by its size, a text, or the first of several, behind all numbers."""
    return (value, "") if isinstance(value, int) else (MOST, next(iter(texts), ""))


def _has_words(record: Record, words: Sequence[str]) -> bool:
    title = " ".join(_values(record, "title")).casefold()
    return all(word in title for word in words)


def _select(record: Record, names: Sequence[str] | None) -> Record:
    return record if names is None else {name: record.get(name) for name in names}


def _next_link(path: str, query: FeedQuery, skip: int, top: int | None) -> str:
    paging = [("$skip", str(skip))] if top is None else [("$top", str(top)), ("$skip", str(skip))]
    return f"{FRONT_END}/{path}?{urlencode([*query.options, *paging], quote_via=quote, safe='$')}"
