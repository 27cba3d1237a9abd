"""The data categories of an org, for callers who named one that it does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from refdesk.errors import InvalidInputError
from refdesk.kit.nearest import find_nearest
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.rows import get_field, get_items
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.client import SalesforceClient
    from refdesk.toolsets.salesforce_knowledge.statements import CategoryFilter

MOST_NAMED = 20
_QUERY = {"sObjectName": "KnowledgeArticleVersion", "topCategoriesOnly": "false"}


async def explain(client: SalesforceClient, filters: Sequence[CategoryFilter]) -> InvalidInputError | None:
    """Return the error for filters that name categories the org does not have; `None` if it has all of them."""
    groups = await _read_groups(client)
    if groups is None:
        return None
    for each in filters:
        group = _bare(each.group)
        if group not in groups:
            return _make_error(each.group, "data category group", [known for known, _ in groups.values()])
        name, categories = groups[group]
        for category in each.categories:
            if _bare(category) not in categories:
                return _make_error(category, f"data category in {name}", list(categories.values()))
    return None


async def _read_groups(client: SalesforceClient) -> Mapping[str, tuple[str, Mapping[str, str]]] | None:
    """Return each group's name and categories, keyed by folded names; `None` if the org does not say."""
    try:
        reply = await client.ask(Request("GET", "support/dataCategoryGroups", query=_QUERY))
    except (RefusedError, UnreachableError):
        return None
    groups: dict[str, tuple[str, Mapping[str, str]]] = {}
    for group in get_items(get_field(reply.data, "categoryGroups")):
        name = get_field(group, "name")
        if isinstance(name, str):
            names = _list_names(get_items(get_field(group, "topCategories")))
            groups[_bare(name)] = name, {_bare(each): each for each in names}
    return groups


def _list_names(categories: Sequence[object]) -> Iterator[str]:
    left = list(categories)
    while left:
        category = left.pop(0)
        name = get_field(category, "name")
        if isinstance(name, str):
            yield name
        left += get_items(get_field(category, "childCategories"))


def _bare(name: str) -> str:
    return name.casefold().removesuffix("__c")


def _make_error(asked: str, kind: str, known: Sequence[str]) -> InvalidInputError:
    near = find_nearest(_bare(asked), [name.casefold() for name in known])
    named = [name for name in known if name.casefold() in near] or list(known[:MOST_NAMED])
    bare = asked.removesuffix("__c")
    return InvalidInputError(
        f"The org has no {kind} {bare!r}: use one of {', '.join(named)}.", details={"value": bare, "didYouMean": named}
    )
