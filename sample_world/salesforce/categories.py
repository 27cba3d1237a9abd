"""Data categories: the trees that articles are filed in, and what a WITH DATA CATEGORY clause lets through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from sample_world.salesforce.articles import Record
from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.statements import CategoryFilter

# Each category with its parent, by group.
TREES: Mapping[str, Mapping[str, str | None]] = {
    "Products__c": {
        "All__c": None,
        "Hub__c": "All__c",
        "Climate__c": "All__c",
        "Thermo__c": "Climate__c",
        "Radiator__c": "Climate__c",
        "Safety__c": "All__c",
        "Leak__c": "Safety__c",
        "Door__c": "Safety__c",
        "Power__c": "All__c",
        "App__c": "All__c",
        "Account__c": "All__c",
        "Billing__c": "Account__c",
        "Developer__c": "All__c",
    },
    "Regions__c": {
        "World__c": None,
        "Europe__c": "World__c",
        "Germany__c": "Europe__c",
        "America__c": "World__c",
        "Japan__c": "World__c",
    },
}


def compile_categories(filters: Sequence[CategoryFilter], code: str) -> Callable[[Record], bool]:
    """Return the predicate that the filters state together; an article is let through that is filed in a category of
    each group.

    Raises:
        StatementError: with `code`, when a group or category is unknown or a group is named twice.
    """
    groups = [filter.group.lower() for filter in filters]
    for filter in filters:
        if groups.count(filter.group.lower()) > 1:
            raise StatementError(code, f"Data category group {filter.group} is used twice", filter.position)
    wanted = [_resolve(filter, code) for filter in filters]

    def matches(record: Record) -> bool:
        filed = cast("Mapping[str, Sequence[str]]", record["DataCategories"])
        return all(not names.isdisjoint(filed.get(group, ())) for group, names in wanted)

    return matches


def _resolve(filter: CategoryFilter, code: str) -> tuple[str, frozenset[str]]:
    group = _find(TREES, filter.group, filter, code)
    tree = TREES[group]
    named = [_find(tree, category, filter, code) for category in filter.categories]
    names = set(named)
    if filter.selector in ("ABOVE", "ABOVE_OR_BELOW"):
        names |= {above for name in named for above in _climb(tree, name)}
    if filter.selector in ("BELOW", "ABOVE_OR_BELOW"):
        names |= {name for name in tree if not set(_climb(tree, name)).isdisjoint(named)}
    return group, frozenset(names)


def _find(known: Mapping[str, object], name: str, filter: CategoryFilter, code: str) -> str:
    for candidate in known:
        if candidate.lower() == name.lower():
            return candidate
    raise StatementError(code, f"Data category or data category group {name} is unknown", filter.position)


def _climb(tree: Mapping[str, str | None], name: str) -> Iterator[str]:
    parent = tree[name]
    while parent is not None:
        yield parent
        parent = tree[parent]
