"""Says in federated search which of the requested tags do not exist, and which were probably meant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from refdesk.core.search.federation import spell
from refdesk.core.search.providers import LeftOut, ProviderAnswer, Question
from refdesk.kit.nearest import find_nearest
from refdesk.model import facet_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from refdesk.core.context import Context

    Find: TypeAlias = Callable[[Context, Question], Awaitable[ProviderAnswer | LeftOut]]
    ListTags: TypeAlias = Callable[[Context], Awaitable[Sequence[str]]]


def explaining(find: Find, list_tags: ListTags) -> Find:
    """Return a provider's `find` that, if it finds nothing, says which of the tags asked for nothing has.

    Args:
        find: The `find` of a `SearchProvider`.
        list_tags: Returns the tags of the documents that the caller can find.
    """

    async def find_and_explain(context: Context, question: Question) -> ProviderAnswer | LeftOut:
        found = await find(context, question)
        if isinstance(found, LeftOut) or found.hits or not question.tags:
            return found
        said = describe_unknown(question.tags, await list_tags(context))
        return replace(found, note=" ".join(filter(None, (*said, found.note))))

    return find_and_explain


def describe_unknown(tags: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return a sentence on each tag that is not known in any spelling, with the nearest known ones."""
    keys = {facet_key(tag): tag for tag in known}
    unknown = [tag for tag in tags if not keys.keys() & {facet_key(each) for each in spell(tag)}]
    return [_describe(tag, [keys[key] for key in find_nearest(facet_key(tag), keys)]) for tag in unknown]


def _describe(tag: str, meant: Sequence[str]) -> str:
    names = " or ".join(f"“{each}”" for each in meant)
    return f"Nothing here has the tag “{tag}”" + (f": did you mean {names}?" if names else ": leave it out.")
