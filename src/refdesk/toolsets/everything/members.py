"""The members of the federation: the other toolsets, each searched in its own store on behalf of the caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.errors import PermissionDeniedError
from refdesk.toolsets.everything.models import Coverage

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from refdesk.core.context import Context
    from refdesk.core.search.federation import Outcome, Ranked
    from refdesk.core.search.providers import Question, SearchProvider
    from refdesk.core.search.semantics import SemanticStatus

NOT_SERVED = "It is not served here: whoever runs the server can configure it or name it with --toolset."


@dataclass(frozen=True, slots=True)
class Members:
    """The served toolsets that can be searched.

    Attributes:
        providers: The search providers by toolset, in the table's order.
        group: A task group that outlives every call.
    """

    providers: Mapping[str, SearchProvider]
    group: TaskGroup

    async def ask(
        self, context: Context, question: Question, names: Sequence[str], seconds: float
    ) -> tuple[list[Ranked], list[Coverage], SemanticStatus]:
        """Return the best hits of the named toolsets, the coverage of each, and why one lacked vectors, if any did.

        Args:
            context: The caller's context; its scopes decide which toolsets are asked.
            question: The question.
            names: The toolsets to ask, served or not, in the order in which they are reported.
            seconds: The deadline.

        Raises:
            PermissionDeniedError: The caller may read none of the named toolsets that are served.
        """
        from refdesk.core.search import federation  # not at the start
        from refdesk.core.search.semantics import MISSING_MEANING

        served = {name: self.providers[name] for name in names if name in self.providers}
        readable = {name: provider for name, provider in served.items() if provider.scopes <= context.principal.scopes}
        if served and not readable:
            raise _deny(served)

        def note(name: str, known: int) -> None:
            context.report(known, len(readable), f"{name} is through")

        outcomes = await federation.ask_all(readable, context.of, question, seconds, self.group, note)
        ranked = federation.rank({name: outcome.answer.hits for name, outcome in outcomes.items()})
        best = ranked[: question.limit]
        shown = Counter(one.toolset for one in best)
        missing: SemanticStatus = "off"
        for outcome in outcomes.values():
            if MISSING_MEANING.get(outcome.answer.semantic):
                missing = outcome.answer.semantic
        return best, [self._cover(name, outcomes.get(name), shown[name]) for name in names], missing

    def _cover(self, name: str, outcome: Outcome | None, hits: int) -> Coverage:
        from refdesk.core.search.federation import Outcome

        if outcome is None and name in self.providers:
            outcome = Outcome("forbidden", note=_name_scopes(self.providers[name].scopes))
        outcome = outcome or Outcome("not_served", note=NOT_SERVED)
        return Coverage(
            toolset=name,
            status=outcome.status,
            hits=hits,
            total=outcome.answer.total,
            took_ms=round(outcome.seconds * 1000),
            as_of=outcome.answer.as_of,
            note=outcome.note or None,
        )


def _name_scopes(scopes: frozenset[str]) -> str:
    return f"This needs the scope {', '.join(sorted(scopes))}; ask whoever runs the server for a key that has it."


def _deny(providers: Mapping[str, SearchProvider]) -> PermissionDeniedError:
    scopes = sorted({scope for provider in providers.values() for scope in provider.scopes})
    return PermissionDeniedError(
        f"This needs one of the scopes {', '.join(scopes)}; ask whoever runs the server for a key that has it.",
        details={"missingScopes": scopes},
    )
