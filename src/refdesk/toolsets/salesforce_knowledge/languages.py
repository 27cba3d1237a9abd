"""The languages of an org's articles: which one is meant if none is named, and which others have matches."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from refdesk.core.retrying import Budget
from refdesk.toolsets.salesforce_knowledge.configuration import DEFAULT_LANGUAGE
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.rows import get_field, get_items
from refdesk.toolsets.salesforce_knowledge.statements import Search, normalize_language
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.client import SalesforceClient

MOST_TRIED = 6
"""Most languages to look into if the one asked for has no matches: each costs a request."""

MOST_COUNTED = 25
FRESH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages of an org: the default one, and all that are active, in the org's order."""

    default: str = DEFAULT_LANGUAGE
    active: tuple[str, ...] = ()


class LanguageGuide:
    """Knows the languages of one org. `now` is a monotonic clock in seconds."""

    def __init__(self, client: SalesforceClient, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._known: tuple[float, Languages] | None = None

    async def get(self) -> Languages:
        """Return the org's languages, requested at most once an hour; if it does not say, English alone.

        Raises:
            AuthError: No session can be obtained.
            RefusedError: A limit is reached, which a search would meet too.
            UnreachableError: Salesforce cannot be reached for signing in.
        """
        if self._known is not None and self._now() - self._known[0] < FRESH_SECONDS:
            return self._known[1]
        await self._client.sessions.get()
        try:
            reply = await self._client.ask(Request("GET", "knowledgeManagement/settings"), Budget(2))
        except (RefusedError, UnreachableError) as failure:
            if isinstance(failure, RefusedError) and (failure.is_limit or failure.status == 401):
                raise
            return self._known[1] if self._known is not None else Languages()
        languages = _read(reply.data)
        self._known = self._now(), languages
        return languages

    async def count_elsewhere(
        self, search: Search, count: Callable[[Search], Awaitable[int]]
    ) -> Sequence[tuple[str, int]]:
        """Return the other languages that have matches, each with the number of articles, most first.

        Args:
            search: The search that found nothing.
            count: Returns how many articles a search finds. A language for which it fails is left out.
        """
        others = [name for name in (await self.get()).active if name != search.language][:MOST_TRIED]
        found: dict[str, int] = {}

        async def look(name: str) -> None:
            try:
                found[name] = await count(replace(search, language=name, limit=MOST_COUNTED))
            except (RefusedError, UnreachableError):
                return

        async with anyio.create_task_group() as group:
            for name in others:
                group.start_soon(look, name)
        return sorted(
            ((name, number) for name, number in found.items() if number), key=lambda each: (-each[1], each[0])
        )


def _read(data: object) -> Languages:
    entries = get_items(get_field(data, "languages"))
    names = [get_field(each, "name") for each in entries if get_field(each, "active") is not False]
    active = dict.fromkeys(name for each in names if isinstance(each, str) and (name := normalize_language(each)))
    default = get_field(data, "defaultLanguage")
    named = normalize_language(default) if isinstance(default, str) else None
    return Languages(named or next(iter(active), DEFAULT_LANGUAGE), tuple(active))
