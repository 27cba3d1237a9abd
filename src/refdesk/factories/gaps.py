"""Builds what keeps the questions without an answer, according to the settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.discovery import find_descriptor
from refdesk.gaps.missed import Bounds, Waiting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from refdesk.core.context import Context
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.operations import Toolset
    from refdesk.gaps.keeping import Keeper
    from refdesk.gaps.missed import Missed
    from refdesk.model import Principal
    from refdesk.settings import Settings

    GetContext = Callable[[Principal, str], Awaitable[Context]]

PARTS = (
    *(f"refdesk.{name}" for name in ("kit.mask_patterns", "kit.personal_names", "playbooks", "kit.masking")),
    "refdesk.gaps.keeping",
)
"""The modules that it needs, which are imported one by one after the start, when nobody calls."""

TOOLSET = "gaps"
LOOKED_AT = 5
"""Most hits of each toolset that are judged again."""


def choose_waiting(settings: Settings, toolsets: Sequence[Toolset]) -> Waiting | None:
    """Return where questions without an answer wait to be grouped; `None` if none are kept."""
    if TOOLSET not in (each.name for each in toolsets) or settings.read_only or _choose_bounds(settings) is None:
        return None
    return Waiting()


def _choose_bounds(settings: Settings) -> Bounds | None:
    descriptor = find_descriptor(TOOLSET)
    chosen = descriptor.choose_options(settings) if descriptor is not None and descriptor.choose_options else None
    return chosen if isinstance(chosen, Bounds) else None


def choose_keeper(
    settings: Settings,
    base: KnowledgeBase,
    waiting: Waiting,
    toolsets: Sequence[Toolset],
    live: Collection[str],
    get_context: GetContext,
) -> Keeper:
    """Return what groups the waiting questions, in the main store.

    Args:
        settings: They say how long and how many are kept.
        base: The main one.
        waiting: The questions.
        toolsets: Those that are served.
        live: Those of them that ask an outside service, and so are not asked again for this.
        get_context: Returns what a toolset's handlers get for a caller.
    """
    from refdesk.core.reading_scopes import find_reading_scopes
    from refdesk.core.search.providers import LeftOut, Question
    from refdesk.gaps.judging import Best, judge_hits
    from refdesk.gaps.keeping import Keeper
    from refdesk.gaps.likeness import Wording

    providers = {each.name: each.provider for each in toolsets if each.provider is not None}
    scopes = find_reading_scopes(toolsets)

    def list_reach(missed: Missed) -> Sequence[str]:
        return scopes.list_readable(missed.principal.scopes)

    async def ask(missed: Missed) -> Best:
        best, principal = Best(), replace(missed.principal, transport="watch")
        await _load_model(base)
        wording = Wording(missed.text, await base.embed_question(missed.text, principal.org))
        for name in list_reach(missed):
            if name in live:
                continue
            context = await get_context(principal, name)
            found = await providers[name].find(context, Question(missed.text, limit=LOOKED_AT))
            hits = () if isinstance(found, LeftOut) else found.hits
            judged = await judge_hits(context.knowledge_base.store, principal.org, name, wording, hits)
            best = max([best, *judged], key=lambda each: each.strength)
        return best

    return Keeper(base, waiting, ask, list_reach, _choose_bounds(settings) or Bounds())


async def _load_model(base: KnowledgeBase) -> None:
    """Load the active model if necessary, so that questions are judged with vectors."""
    embedder = await base.semantics.get_active() if base.semantics is not None else None
    if embedder is not None and not embedder.is_ready:
        try:
            await embedder.load()
        except errors.RefdeskError:
            return
