"""An in-memory cache of an org's object descriptions, revalidated now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.toolsets.salesforce_knowledge.failures import MISSING_TYPE_CODES, RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.objects import ObjectDescription, read_article_objects, read_description
from refdesk.toolsets.salesforce_knowledge.rows import LIGHTNING_NAME
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.client import SalesforceClient
    from refdesk.toolsets.salesforce_knowledge.transport import Reply

FRESH_SECONDS = 3600.0
"""How long a description is used before the org is asked whether it changed."""


@dataclass(slots=True)
class _Entry:
    description: ObjectDescription
    checked_at: float
    etag: str | None
    modified: str | None


class Catalogue:
    """Knows the objects of one org. `now` is a monotonic clock in seconds."""

    def __init__(self, client: SalesforceClient, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._entries: dict[str, _Entry] = {}
        self._by_prefix: dict[str, str] = {}
        self._listed_at: float | None = None

    def forget(self, name: str) -> None:
        """Forget an object's description, as it proved outdated."""
        self._entries.pop(name, None)

    async def describe(self, name: str) -> ObjectDescription:
        """Return the description of an object.

        Raises:
            RefusedError: There is no such object for this user (404), or another refusal.
            UnreachableError: It is not available, and no older one is cached.
        """
        entry = self._entries.get(name)
        if entry is not None and self._now() - entry.checked_at < FRESH_SECONDS:
            return entry.description
        try:
            reply = await self._client.ask(Request("GET", f"sobjects/{name}/describe", headers=_conditions(entry)))
        except UnreachableError:
            if entry is None:
                raise
            return entry.description
        return self._keep(name, reply, entry)

    def _keep(self, name: str, reply: Reply, entry: _Entry | None) -> ObjectDescription:
        if reply.status == 304 and entry is not None:
            entry.checked_at = self._now()
            return entry.description
        description = read_description(reply.data)
        if description is None:
            raise UnreachableError("a description it gave cannot be read", is_answered=True)
        self._entries[name] = _Entry(description, self._now(), reply.etag, reply.modified)
        return description

    async def find_articles(self, prefix: str) -> str | None:
        """Return the object whose versions' ids begin with `prefix`, or `None` if none do; errors as in `describe`.

        An org with Lightning Knowledge has one such object, nearly always of one name; a Classic org has one for each
        type of article. The list of all objects is long, so it is requested only when that name does not exist.
        """
        if prefix in self._by_prefix:
            return self._by_prefix[prefix]
        if self._is_listed():
            return None
        if await self._is_lightning(prefix):
            self._by_prefix[prefix] = LIGHTNING_NAME
            return LIGHTNING_NAME
        reply = await self._client.ask(Request("GET", "sobjects"))
        self._by_prefix, self._listed_at = read_article_objects(reply.data), self._now()
        return self._by_prefix.get(prefix)

    async def describe_articles(self) -> ObjectDescription:
        """Return the description of an object that holds articles' texts (in Lightning the only one); errors as above.

        Raises:
            RefusedError: There is none; the code is `INVALID_TYPE`.
        """
        if await self._is_lightning(None):
            return await self.describe(LIGHTNING_NAME)
        await self.find_articles("")
        for name in self._by_prefix.values():
            return await self.describe(name)
        raise RefusedError(404, tuple(MISSING_TYPE_CODES))

    async def _is_lightning(self, prefix: str | None) -> bool:
        """Return whether Lightning's object exists and, if a prefix is given, whether its ids begin with that."""
        try:
            description = await self.describe(LIGHTNING_NAME)
        except RefusedError as refusal:
            if refusal.status == 404 or refusal.has(MISSING_TYPE_CODES):
                return False
            raise
        return prefix is None or description.prefix in (None, prefix)

    def _is_listed(self) -> bool:
        return self._listed_at is not None and self._now() - self._listed_at < FRESH_SECONDS


def _conditions(entry: _Entry | None) -> dict[str, str]:
    if entry is None:
        return {}
    conditions = {"If-None-Match": entry.etag, "If-Modified-Since": entry.modified}
    return {name: value for name, value in conditions.items() if value}
