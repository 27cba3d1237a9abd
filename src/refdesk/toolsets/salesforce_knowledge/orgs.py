"""Several orgs asked as one: their articles are interleaved, and an org that fails costs only its own articles."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, TypeVar

import anyio

from refdesk import errors
from refdesk.core.context import report_nothing
from refdesk.core.search.providers import ALWAYS
from refdesk.toolsets.salesforce_knowledge.articles import NOT_FOUND, SESSION_REFUSED, SalesforceSource
from refdesk.toolsets.salesforce_knowledge.failures import AuthError
from refdesk.toolsets.salesforce_knowledge.ids import parse_id
from refdesk.toolsets.salesforce_knowledge.models import GetOutput, SearchOutput

if TYPE_CHECKING:
    from refdesk.core.context import Report
    from refdesk.core.search.providers import Period
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.models import ArticleSummary
    from refdesk.toolsets.salesforce_knowledge.statements import CategoryFilter

T = TypeVar("T")


@asynccontextmanager
async def open_orgs(settings: Mapping[str, SalesforceSettings]) -> AsyncGenerator[SalesforceSource | Orgs]:
    """Open the orgs with these names; if there is only one, its source is yielded as it is."""
    async with AsyncExitStack() as stack:
        sources = {name: await stack.enter_async_context(SalesforceSource(each)) for name, each in settings.items()}
        yield next(iter(sources.values())) if len(sources) == 1 else Orgs(sources)


class Orgs:
    """Several orgs' articles, as `SalesforceSource` has one org's.

    Args:
        sources: The orgs' sources by name, in order of precedence.
    """

    def __init__(self, sources: Mapping[str, SalesforceSource]) -> None:
        self._sources = sources

    @property
    def problem(self) -> str | None:
        """Why the last calls were not answered, for health reports; `None` if they were."""
        told = [f"{name}: {source.problem}" for name, source in self._sources.items() if source.problem is not None]
        return " ".join(told) or None

    @asynccontextmanager
    async def acting_as(self, session: str) -> AsyncGenerator[Orgs]:
        """Yield the orgs as the user of the sessions sees them, given as `name=session`, separated by commas.

        Raises:
            AuthError: The sessions are not in that form; or see `SalesforceSource.acting_as`.
        """
        parts = [part.strip().partition("=") for part in session.split(",")] if session else []
        sessions = {name: own for name, _, own in parts}
        if not sessions.keys() <= self._sources.keys() or not all(sessions.values()):
            raise AuthError(f"{SESSION_REFUSED} Of several orgs write name=session, for: {', '.join(self._sources)}.")
        async with AsyncExitStack() as stack:
            opened = {
                name: await stack.enter_async_context(source.acting_as(sessions.get(name, "")))
                for name, source in self._sources.items()
                if not sessions or name in sessions or not source.client.settings.needs_session
            }
            yield Orgs(opened)

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
        """Return what the orgs have, interleaving the best of each; see `SalesforceSource.search`.

        Raises:
            RefdeskError: No org answered; it is the error of the first one.
        """

        async def ask(source: SalesforceSource) -> SearchOutput:
            return await source.search(text, language=language, limit=limit, period=period, categories=categories)

        report(0, 1, f"Asking {len(self._sources)} orgs")
        found, failed = await self._ask_all(ask)
        if not found:
            raise next(iter(failed.values()))
        articles = _take_turns([[_name(each, name) for each in one.articles] for name, one in found.items()])[:limit]
        notices = [f"{name}: {one.notice}" for name, one in found.items() if one.notice and not articles]
        notices += [f"{name} did not answer: {error.message}" for name, error in failed.items()]
        methods = {one.search_method for one in found.values()}
        answer = SearchOutput(
            notice=" ".join(notices) or None,
            articles=articles,
            total_count=len(articles),
            search_method="soql" if "soql" in methods else "sosl",
        )
        for one in found.values():
            for warning in one.warnings:
                answer.add_warning(str(warning["code"]), str(warning["message"]), {})
        return answer

    async def get_article(self, text: str) -> GetOutput:
        """Return the article from the org that has it; see `SalesforceSource.get_article`."""
        parse_id(text)
        found, failed = await self._ask_all(lambda source: source.get_article(text))
        for name, answer in found.items():
            return answer.model_copy(update={"article": answer.article.model_copy(update={"org": name})})
        others = [error for error in failed.values() if not isinstance(error, errors.NotFoundError)]
        raise others[0] if others else errors.NotFoundError(NOT_FOUND)

    async def _ask_all(
        self, ask: Callable[[SalesforceSource], Awaitable[T]]
    ) -> tuple[dict[str, T], dict[str, errors.RefdeskError]]:
        """Return what each org answered, and the errors of those that did not, in the order of the orgs."""
        found: dict[str, T] = {}
        failed: dict[str, errors.RefdeskError] = {}

        async def run(name: str, source: SalesforceSource) -> None:
            try:
                found[name] = await ask(source)
            except errors.RefdeskError as error:
                failed[name] = error

        async with anyio.create_task_group() as group:
            for name, source in self._sources.items():
                group.start_soon(run, name, source)
        return (
            {name: found[name] for name in self._sources if name in found},
            {name: failed[name] for name in self._sources if name in failed},
        )


def _name(article: ArticleSummary, org: str) -> ArticleSummary:
    return article.model_copy(update={"org": org})


def _take_turns(lists: Sequence[Sequence[ArticleSummary]]) -> list[ArticleSummary]:
    return [article for article in chain.from_iterable(zip_longest(*lists)) if article is not None]
