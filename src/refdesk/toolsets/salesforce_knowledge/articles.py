"""Searches and reads Salesforce Knowledge articles; errors are those of the contract.

This is the toolset's entry point; everything sent goes through `client`. Nothing from Salesforce is kept except, in
memory, the session and the descriptions of its objects.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from refdesk import errors
from refdesk.core import tracing
from refdesk.core.context import report_nothing
from refdesk.core.search.providers import ALWAYS
from refdesk.toolsets.salesforce_knowledge import TOOLSET_NAME, category_groups, rows, statements
from refdesk.toolsets.salesforce_knowledge.catalogue import Catalogue
from refdesk.toolsets.salesforce_knowledge.client import SalesforceClient
from refdesk.toolsets.salesforce_knowledge.configuration import DEFAULT_LANGUAGE, OWN_LANGUAGE, is_secret
from refdesk.toolsets.salesforce_knowledge.failures import (
    MISSING_TYPE_CODES,
    AuthError,
    KnowledgeDisabledError,
    RefusedError,
    SalesforceError,
    UnreachableError,
    to_error,
)
from refdesk.toolsets.salesforce_knowledge.ids import ArticleId, parse_id
from refdesk.toolsets.salesforce_knowledge.languages import LanguageGuide
from refdesk.toolsets.salesforce_knowledge.models import GetOutput, SearchOutput
from refdesk.toolsets.salesforce_knowledge.search import Searcher
from refdesk.toolsets.salesforce_knowledge.statements import Search
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from types import TracebackType

    from refdesk.core.context import Report
    from refdesk.core.search.providers import Period
    from refdesk.toolsets.salesforce_knowledge.breaker import Breaker
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.models import Article, ArticleSummary, SearchMethod
    from refdesk.toolsets.salesforce_knowledge.objects import ObjectDescription
    from refdesk.toolsets.salesforce_knowledge.rows import Row
    from refdesk.toolsets.salesforce_knowledge.statements import CategoryFilter

logger = logging.getLogger(__name__)

FAILURES = (errors.RefdeskError, RefusedError, UnreachableError)
ELSEWHERE_SECONDS = 3.0
"""How long to look into other languages at most."""

FIELD_CODES = frozenset({"INVALID_FIELD"})
THREAD_CHARACTERS = 50_000
"""A row with more text than this is converted to plain text in a thread, so that no other call waits for it."""

DISABLED = (
    "Salesforce Knowledge is not enabled in this Salesforce org: an administrator must enable it before articles can "
    "be searched or read."
)
UNREADABLE = (
    "Salesforce Knowledge cannot be used: it is not enabled in the org, or the user that refdesk runs as may not read "
    "articles. An administrator must enable Knowledge and give that user the right to view articles."
)
SESSION_NEEDED = (
    "The help desk is asked as the user that a request is for: send that user's Salesforce session in the header "
    "X-Salesforce-Token."
)
SESSION_REFUSED = (
    "Salesforce does not accept the session that came in the header X-Salesforce-Token: it has expired, or is of "
    "another org. Send a new one."
)
NOT_FOUND = "There is no published article with this id: search again, for its version may have been replaced."


def tell_languages(asked: str, elsewhere: Sequence[tuple[str, int]]) -> str:
    """Return a sentence saying that there is nothing in the language asked for, and in which others there is."""
    told = ", ".join(f"{language} ({number})" for language, number in elsewhere)
    return f"Nothing is published about this in {asked}, but in {told}: search again with that `language`."


class SalesforceSource:
    """One org's articles. Open it with `async with`; nothing is sent before it is first asked.

    Args:
        settings: Which org, as whom, and how patiently.
        breaker: The circuit breaker shared by everything that calls this org.
        sleep: Waits that many seconds.
        chance: The source of jitter for waits.
        now: A monotonic clock in seconds.

    Attributes:
        problem: Why the last call was not answered, for health reports; `None` if it was.
    """

    def __init__(
        self,
        settings: SalesforceSettings,
        *,
        breaker: Breaker | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: random.Random | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem: str | None = None
        self.client = SalesforceClient(settings, breaker=breaker, sleep=sleep, chance=chance, now=now)
        self.catalogue = Catalogue(self.client, now)
        self.languages = LanguageGuide(self.client, now)
        self._searcher = Searcher(self.client, self.catalogue)

    async def __aenter__(self) -> SalesforceSource:
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.client.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def acting_as(self, session: str) -> AsyncGenerator[SalesforceSource]:
        """Yield the same org as the user of a session sees it or, without a session, this source.

        Nothing learned with the user's session is kept, as descriptions and answers may differ from user to user.

        Raises:
            AuthError: A session is needed but missing, is malformed, or Salesforce does not accept it.
        """
        settings = self.client.settings
        if not session:
            if settings.needs_session:
                raise AuthError(SESSION_NEEDED)
            yield self
            return
        if not is_secret(session):
            raise AuthError(SESSION_REFUSED)
        async with self._limiting():
            version = await self.client.get_version()
        own = replace(settings, access_token=session, api_version=version)
        try:
            async with SalesforceSource(own, breaker=self.client.breaker) as source:
                yield source
        except AuthError:
            raise AuthError(SESSION_REFUSED) from None

    @tracing.spanned("search", toolset=TOOLSET_NAME)
    async def search(
        self,
        text: str,
        *,
        language: str | None = None,
        limit: int = 10,
        period: Period = ALWAYS,
        categories: tuple[CategoryFilter, ...] = (),
        report: Report = report_nothing,
    ) -> SearchOutput:
        """Return published articles of one language, best first by Salesforce's own judgement.

        Args:
            text: What to look for; always treated as data.
            language: The language, as Salesforce writes it; `None` is the one that the settings name.
            limit: How many at most, 1 to 25.
            period: The period of the last publication.
            categories: Data categories that the articles must all be filed in.
            report: Called with the progress.

        Raises:
            RefdeskError: With one of the contract's codes.
        """
        async with self._answering():
            spoken = language or await self._choose_language()
            search = Search(text, spoken, limit, period, categories)
            articles, method = await self._search(search, report)
            elsewhere = () if articles else await self._look_elsewhere(search)
        answer = SearchOutput(articles=articles, total_count=len(articles), search_method=method)
        if elsewhere:
            answer = answer.model_copy(update={"notice": tell_languages(spoken, elsewhere)})
        if language is None and spoken != DEFAULT_LANGUAGE:
            answer = answer.model_copy(update={"language": spoken})
        self._warn(answer)
        return answer

    async def _choose_language(self) -> str:
        named = self.client.settings.language
        return (await self.languages.get()).default if named == OWN_LANGUAGE else named

    async def _search(self, search: Search, report: Report) -> tuple[list[ArticleSummary], SearchMethod]:
        try:
            found, method = await self._searcher.search(search, report)
        except RefusedError as refusal:
            error = await category_groups.explain(self.client, search.categories) if search.categories else None
            raise error or refusal from None
        shown = rows.show_summaries(found, search.limit)
        return [each for each in shown if search.period.covers(each.last_published)], method

    async def _look_elsewhere(self, search: Search) -> Sequence[tuple[str, int]]:
        """Return which other languages have matches; none if that cannot be learnt quickly or cheaply.

        The search itself has been answered: whatever goes wrong from here on must not cost that answer.
        """
        if self.client.usage is not None and self.client.usage.is_high:
            return ()
        left = anyio.current_effective_deadline() - anyio.current_time()
        with anyio.move_on_after(min(ELSEWHERE_SECONDS, left / 2)), suppress(*FAILURES):
            return await self.languages.count_elsewhere(search, self._count)
        return ()

    async def _count(self, search: Search) -> int:
        articles, _ = await self._search(search, report_nothing)
        return len(articles)

    async def get_article(self, text: str) -> GetOutput:
        """Return the published version of an article, given the id of the article or of one of its versions.

        Raises:
            InvalidInputError: The text is not the id of an article.
            NotFoundError: There is no such article, or it is not published.
            RefdeskError: With another of the contract's codes.
        """
        id = parse_id(text)
        async with self._answering():
            article = await self._get_article(id)
        if article is None:
            raise errors.NotFoundError(NOT_FOUND)
        answer = GetOutput(article=article)
        self._warn(answer)
        return answer

    def _warn(self, answer: SearchOutput | GetOutput) -> None:
        usage = self.client.usage
        if usage is not None and usage.is_high:
            share = min(999, round(100 * usage.used / usage.limit))
            answer.add_warning(
                "RATE_LIMIT_WARNING",
                f"{share} % of the Salesforce API requests allowed in 24 hours are used; ask sparingly.",
                {"used": usage.used, "limit": usage.limit},
            )

    @asynccontextmanager
    async def _answering(self) -> AsyncGenerator[None]:
        """Limit the block to the time one call may take, and translate its errors to the contract's."""
        try:
            async with self._limiting():
                yield
        except errors.RefdeskError as error:
            if not isinstance(error, errors.InvalidInputError):
                self.problem = error.message
            raise
        self.problem = None

    @asynccontextmanager
    async def _limiting(self) -> AsyncGenerator[None]:
        seconds = self.client.settings.timeout_seconds
        try:
            with anyio.fail_after(seconds):
                try:
                    yield
                except RefusedError as refusal:
                    raise await self._explain(refusal) from None
                except UnreachableError as failure:
                    raise to_error(failure) from None
        except TimeoutError:
            self.client.breaker.note_failure()
            raise SalesforceError(f"Salesforce did not answer within {seconds:g} seconds. Try again later.") from None

    async def _explain(self, refusal: RefusedError) -> errors.RefdeskError:
        """Return the error for a caller. If articles seem not to exist, ask Salesforce whether Knowledge is on."""
        if not refusal.has(MISSING_TYPE_CODES):
            return to_error(refusal)
        is_enabled = await self.get_knowledge_state()
        if is_enabled is None and not await self.is_version_offered():
            return to_error(RefusedError(404))
        details = {"knowledgeEnabled": is_enabled, "salesforceErrorCodes": list(refusal.codes)}
        return KnowledgeDisabledError(DISABLED if is_enabled is False else UNREADABLE, details=details)

    async def get_knowledge_state(self) -> bool | None:
        """Return whether the org has Knowledge, or `None` if it does not say."""
        try:
            reply = await self.client.ask(Request("GET", "knowledgeManagement/settings"))
        except (RefusedError, UnreachableError):
            return None
        state = rows.get_field(reply.data, "knowledgeEnabled")
        return state if isinstance(state, bool) else None

    async def describe_articles(self) -> ObjectDescription:
        """Return what the user may see of the object that holds the articles; errors as in `search`."""
        async with self._answering():
            await self._searcher.describe_versions()
            return await self.catalogue.describe_articles()

    async def is_version_offered(self) -> bool:
        """Return whether Salesforce offers the API version in use; true if it does not say."""
        try:
            offered = await self.client.list_versions()
        except (RefusedError, UnreachableError):
            return True
        return not offered or int((await self.client.get_version())[1:-2]) in offered

    async def _get_article(self, id: ArticleId) -> Article | None:
        if id.kind == "article":
            return await self._get_current(id.value, None)
        article = await self._get_version(id)
        return article or await self._get_successor(id)

    async def _get_current(self, article_id: str, language: str | None) -> Article | None:
        """Return an article's published version, in its master language by default."""
        fields = (await self._searcher.describe_versions()).keep(("Id", "Language", "IsMasterLanguage"))
        found = [row for row in await self._query(statements.build_article_query(fields, article_id)) if row.get("Id")]
        if language is not None:
            found = [row for row in found if row.get("Language") == language]
        if not found:
            return None
        best = min(found, key=lambda row: (row.get("IsMasterLanguage") is not True, row.get("Language") != "en_US"))
        return await self._get_version(parse_id(str(best["Id"])))

    async def _get_successor(self, id: ArticleId) -> Article | None:
        """Return the published version that replaced the version `id`, if that is an archived one."""
        for row in await self._query(statements.build_archived_query(id.value)):
            article_id, language = rows.get_text(row, "KnowledgeArticleId"), rows.get_text(row, "Language")
            if article_id:
                return await self._get_current(parse_id(article_id).value, language)
        return None

    async def _get_version(self, id: ArticleId) -> Article | None:
        """Return the version if it is published. A field removed since it was described is no longer requested."""
        # Anyone who may read articles at all may describe this object; if not, that is the error to report.
        await self._searcher.describe_versions()
        name = await self.catalogue.find_articles(id.prefix)
        if name is None:
            return None
        try:
            return await self._read_version(await self.catalogue.describe(name), id, with_type=True)
        except RefusedError as refusal:
            if not refusal.has(FIELD_CODES):
                raise
        self.catalogue.forget(name)
        return await self._read_version(await self.catalogue.describe(name), id, with_type=False)

    async def _read_version(self, description: ObjectDescription, id: ArticleId, *, with_type: bool) -> Article | None:
        body = description.choose_body_fields(self.client.settings.body_fields)
        fields = dict.fromkeys(
            (*description.keep(rows.STANDARD_FIELDS, with_type=with_type), *(field.name for field in body))
        )
        found = await self._query(statements.build_version_query(description.name, tuple(fields), id.value))
        published = [row for row in found if rows.is_published(row)]
        if not published:
            return None
        if sum(len(value) for value in published[0].values() if isinstance(value, str)) < THREAD_CHARACTERS:
            return rows.show_article(published[0], description, body)
        return await anyio.to_thread.run_sync(rows.show_article, published[0], description, body)

    async def _query(self, statement: str) -> list[Row]:
        reply = await self.client.ask(Request("GET", "query", query={"q": statement}))
        return rows.read_queried(reply.data)
