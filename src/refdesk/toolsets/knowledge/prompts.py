"""The prompt of knowledge: write down what a conversation taught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from refdesk.core.operations import Completions, Prompt, PromptArgument
from refdesk.toolsets.knowledge import models

if TYPE_CHECKING:
    from refdesk.core.context import Context

MOST_COMPLETIONS = 100
"""The protocol allows no more."""


def write_down(filled: Mapping[str, str]) -> str:
    """Return instructions for storing what was learned."""
    what = f"about {filled['topic']} " if "topic" in filled else ""
    tag = f' Tag each with "{filled["tag"]}".' if "tag" in filled else ""
    return (
        f"Write down what we learned {what}in this conversation, for agents and people who were not there.\n\n"
        "1. List the facts, decisions and ways of doing things that hold beyond today. Leave out what is private, "
        "secret, or anybody's guess.\n"
        "2. For each, call search_knowledge. If an entry says the same, leave it. If one is out of date, store the new "
        "text with store_knowledge, then call supersede_knowledge.\n"
        "3. Store the others with store_knowledge: one fact each, a title that says it, a body that says how we know "
        f"and from when it is, and a confidence.{tag}\n"
        "4. Tell me what you stored, superseded and left."
    )


async def complete_tag(context: Context, written: str) -> Completions:
    """Return the org's tags that begin with what was written, most frequent first."""
    from refdesk.core.search.retrieval import SearchRequest  # not at the start

    collection = models.get_collection(context.principal.org)
    found = await context.knowledge_base.search(SearchRequest(collection, limit=1, facets=("tags",)))
    tags = [count.value for count in found.facets["tags"] if count.value.startswith(written.strip().lower())]
    return Completions(tuple(tags[:MOST_COMPLETIONS]), len(tags) > MOST_COMPLETIONS)


WRITE_DOWN = Prompt(
    name="write_down_what_we_learned",
    title="Write down what we learned",
    description="Store what this conversation taught, and supersede what no longer holds.",
    tools=("search_knowledge", "store_knowledge", "supersede_knowledge"),
    writer=write_down,
    arguments=(
        PromptArgument("topic", "What it should be about; everything worth keeping if left out."),
        PromptArgument("tag", "A tag for the new entries.", completer=complete_tag),
    ),
)

PROMPTS = (WRITE_DOWN,)
