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


def sees_products(record: Record, visible: Sequence[str] | None) -> bool:
    """Return whether a user sees a record to whom these products, and what is below them, are visible; `None`: all."""
    filed = cast("Mapping[str, Sequence[str]]", record["DataCategories"]).get("Products__c", ())
    if visible is None or not filed:
        return True
    tree = TREES["Products__c"]
    return any({name, *_climb(tree, name)} & set(visible) for name in filed)


def show_groups() -> Record:
    """Return the trees as `support/dataCategoryGroups` gives them, names without `__c`."""
    return {"categoryGroups": [_show_group(name, tree) for name, tree in TREES.items()]}


def strip_children(groups: Record) -> Record:
    """Return the groups with their top categories alone, which is what is given unless all are asked for."""
    stripped = [
        {**group, "topCategories": [{**top, "childCategories": None} for top in group["topCategories"]]}
        for group in cast("list[dict[str, list[Record]]]", groups["categoryGroups"])
    ]
    return {"categoryGroups": stripped}


def _show_group(name: str, tree: Mapping[str, str | None]) -> Record:
    bare = name.removesuffix("__c")
    tops = [_show_category(bare, tree, top) for top, parent in tree.items() if parent is None]
    return {"label": bare, "name": bare, "objectUsage": "KnowledgeArticleVersion", "topCategories": tops}


def _show_category(group: str, tree: Mapping[str, str | None], name: str) -> Record:
    bare = name.removesuffix("__c")
    below = [_show_category(group, tree, child) for child, parent in tree.items() if parent == name]
    url = f"/services/data/v68.0/support/dataCategoryGroups/{group}/dataCategories/{bare}"
    return {"childCategories": below, "label": bare, "name": bare, "url": f"{url}?sObjectName=KnowledgeArticleVersion"}


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
