"""The three search methods, best first, and when to fall back to the next.

Parameterized search and SOSL are two forms of the same full-text search. SOQL's LIKE searches only titles and
summaries, so it is used if full-text search is unavailable or does not accept the words, but never after a refusal that
it would meet too: for sessions, permissions and limits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from refdesk.core.context import report_nothing
from refdesk.core.retrying import Budget
from refdesk.toolsets.salesforce_knowledge import rows, statements
from refdesk.toolsets.salesforce_knowledge.client import MAX_TRIES
from refdesk.toolsets.salesforce_knowledge.failures import MALFORMED_SEARCH_CODES, RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.core.context import Report
    from refdesk.toolsets.salesforce_knowledge.catalogue import Catalogue
    from refdesk.toolsets.salesforce_knowledge.client import SalesforceClient
    from refdesk.toolsets.salesforce_knowledge.models import SearchMethod
    from refdesk.toolsets.salesforce_knowledge.objects import ObjectDescription
    from refdesk.toolsets.salesforce_knowledge.rows import Row
    from refdesk.toolsets.salesforce_knowledge.statements import Search

logger = logging.getLogger(__name__)

MISSING_STATUS = frozenset({404, 405, 415, 501})
MISSING_CODES = frozenset({"METHOD_NOT_ALLOWED", "JSON_PARSER_ERROR", "UNSUPPORTED_MEDIA_TYPE"})
FIELD_CODES = frozenset({"INVALID_FIELD"})
TYPE_CODES = ("INVALID_TYPE",)
STEPS = 3
"""The steps reported as progress: describing, full-text search, and what is tried instead."""

LIKE_FIELDS = ("Title", "Summary")


class Searcher:
    """Searches one org and remembers what it does not offer."""

    def __init__(self, client: SalesforceClient, catalogue: Catalogue) -> None:
        self._client = client
        self._catalogue = catalogue
        self._is_parameterized = True

    async def search(self, search: Search, report: Report = report_nothing) -> tuple[list[Row], SearchMethod]:
        """Return what was found and how; a field that was removed since it was described is no longer requested.

        Raises:
            RefusedError: Salesforce refuses.
            UnreachableError: It cannot be reached.
            AuthError: No session can be obtained.
        """
        report(0, STEPS, "Asking Salesforce what its articles are like")
        description = await self.describe_versions()
        report(1, STEPS, "Searching the articles in full text")
        try:
            fields = description.keep(rows.STANDARD_FIELDS, with_type=True)
            return await self._search(search, description, fields, report)
        except RefusedError as refusal:
            if not refusal.has(FIELD_CODES):
                raise
        self._catalogue.forget(statements.ARTICLE_VERSIONS)
        description = await self.describe_versions()
        return await self._search(search, description, description.keep(rows.STANDARD_FIELDS), report)

    async def describe_versions(self) -> ObjectDescription:
        """Return the description of the object that all articles share.

        Raises:
            RefusedError: The user sees no articles at all (the code is `INVALID_TYPE`); other errors as in `search`.
        """
        try:
            return await self._catalogue.describe(statements.ARTICLE_VERSIONS)
        except RefusedError as refusal:
            if refusal.status == 404:
                raise RefusedError(refusal.status, TYPE_CODES) from None
            raise

    async def _search(
        self, search: Search, description: ObjectDescription, fields: tuple[str, ...], report: Report
    ) -> tuple[list[Row], SearchMethod]:
        tries = Budget(MAX_TRIES)
        try:
            return await self._search_full_text(search, fields, tries), "sosl"
        except (RefusedError, UnreachableError) as failure:
            if not _may_fall_back(failure) or tries.left <= 0:
                raise
            logger.info("search falls back", extra={"reason": str(failure)})
        report(2, STEPS, "Full-text search is not available: looking through titles and summaries")
        searched = tuple(name for name in LIKE_FIELDS if description.fields.get(name)) or LIKE_FIELDS[:1]
        statement = statements.build_like(search, fields, searched)
        reply = await self._client.ask(Request("GET", "query", query={"q": statement}), tries)
        return rows.read_queried(reply.data), "soql"

    async def _search_full_text(self, search: Search, fields: tuple[str, ...], tries: Budget) -> list[Row]:
        """Return what full-text search found; one try is left for another way."""
        if self._is_parameterized:
            try:
                body = statements.build_search(search, fields)
                return await self._find(Request("POST", "parameterizedSearch", body=body), tries)
            except RefusedError as refusal:
                if not _is_missing(refusal):
                    raise
                self._is_parameterized = False
        return await self._find(Request("GET", "search", query={"q": statements.build_sosl(search, fields)}), tries)

    async def _find(self, request: Request, tries: Budget) -> list[Row]:
        reply = await self._client.ask(request, tries, keep=1)
        return rows.read_found(reply.data)


def _is_missing(refusal: RefusedError) -> bool:
    return refusal.status in MISSING_STATUS or refusal.has(MISSING_CODES)


def _may_fall_back(failure: RefusedError | UnreachableError) -> bool:
    if isinstance(failure, UnreachableError):
        return failure.is_answered
    return _is_missing(failure) or failure.has(MALFORMED_SEARCH_CODES)
