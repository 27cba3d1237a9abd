"""The composition root: builds a running desk from the settings. The only module that knows every other.

Engines, models and toolsets are imported when they are chosen, so unused ones cost nothing. The store is opened when it
is first needed or shortly after the start, whichever comes first: a client that has just started the process is
answered before anything heavy is loaded.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core.background.quiet import Quiet
from refdesk.core.context import Context, report_nothing
from refdesk.core.fairness import FairTurns
from refdesk.core.operations import WATCH, find_owner
from refdesk.core.writing.refusals import Refusals
from refdesk.factories.bases import choose_base
from refdesk.factories.contexts import Contexts
from refdesk.factories.gaps import choose_waiting
from refdesk.factories.telemetry import open_telemetry
from refdesk.factories.toolsets import (
    connect_live,
    get_stale_after,
    get_toolset,
    has_documents,
    join_toolsets,
    list_sources,
)
from refdesk.gaps.missed import Missed

if TYPE_CHECKING:
    from datetime import datetime

    from anyio.abc import TaskGroup

    from refdesk.core.background.health import Health, ToolsetHealth
    from refdesk.core.background.upkeep import EmbeddingState
    from refdesk.core.context import Report
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.operations import Call, Operation, Resource, Toolset, Unanswered
    from refdesk.core.search.semantics import Semantics
    from refdesk.core.tracing import Tracer
    from refdesk.factories.bases import Base, OpenBase
    from refdesk.factories.upkeep import DeskUpkeep
    from refdesk.gaps.keeping import Keeper
    from refdesk.gaps.missed import Waiting
    from refdesk.impact.examining import Examiner
    from refdesk.model import EmbeddedCount, Principal
    from refdesk.settings import Settings
    from refdesk.telemetry import Telemetry

logger = logging.getLogger(__name__)

IDLE_START_SECONDS = 3.0
"""How long the store may stay closed after the start if nobody needs it."""

SHARED_PART = 8
"""What divides the number of concurrent requests while several callers are active: they share one interpreter."""

WATCHING_START_SECONDS = 0.5
"""How long after the store was opened the work for watches begins; what is written meanwhile is not missed."""

MOST_LOADING_SECONDS = 5.0
"""How long loading the modules for watches, and building missing indexes, gives way to calls."""

BROKEN = "Background work ended by a bug: {0}; see the log and restart."
STUMBLING = "Background work met a bug: {0}; see the log. It is tried again."
NOBODY = "nobody embeds it. Restart the server, or run refdesk worker."
LEFT = (
    "{0}: {1} of its documents are in another store than the one that the settings name for it, and cannot be found: "
    "move them with refdesk migrate, from that store to this one."
)
UNAVAILABLE = (
    "Search goes by words: its vectors are those of {}, which these settings do not provide. Give them what it needs; "
    "else all is embedded anew, or where nothing is, restart with the settings of who changed the model."
)
UNANSWERED = "Search goes by words until its embedding model answers again, which is seen within seconds: {}"
SET_ASIDE = "Some documents could not be embedded, so only keyword search finds them: refdesk embeddings list says why."


@dataclass(slots=True)
class Desk:
    """Everything that serves: the toolsets in play, the knowledge base, and the background work.

    Attributes:
        in_background: Whether to sync and embed for as long as the store is open.
        broken: Background work that ended because of a bug.
        stumbling: Background work whose last round met a bug, and which continues.
        obstacle: Why nothing can be written to an open store that can only be read.
        refusals: Puts on record who was refused what.
        live: Returns, for a toolset that is asked live, what kept its last call from being answered, if anything did.
        turns: Decides which callers are served when there are too many.
        quiet: Tells when nobody waits for an answer.
        questions: The task group of questions to toolsets; it outlives a call, so that an answer within its deadline
            need not wait for what cannot be stopped.
        listeners: Called with every call that has ended; they must not fail.
        news_listeners: Called when agents have news; they must not fail.
        stop_listeners: Called when the server over HTTP is to stop, before it waits for requests in progress; they
            must not fail.
        telemetry: Sends traces and metrics, where the settings name a receiver.
        waiting: The questions that had no answer, until they are grouped; `None` where they are not kept.
        noted: How often what is kept beside the documents has changed in a way that subscribers are notified of.
    """

    settings: Settings
    toolsets: tuple[Toolset, ...]
    open_base: OpenBase
    in_background: bool = True
    broken: set[str] = field(default_factory=set[str])
    stumbling: set[str] = field(default_factory=set[str])
    live: Mapping[str, Callable[[], str | None]] = field(default_factory=dict[str, "Callable[[], str | None]"])
    questions: TaskGroup | None = None
    turns: FairTurns = field(init=False)
    listeners: list[Callable[[Call], None]] = field(default_factory=list["Callable[[Call], None]"])
    news_listeners: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"])
    stop_listeners: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"])
    telemetry: Telemetry | None = None
    waiting: Waiting | None = field(init=False)
    noted: int = 0
    refusals: Refusals = field(default_factory=Refusals)
    obstacle: str | None = None
    _base: Base | None = None
    _failure: errors.RefdeskError | None = None
    _opened_at: datetime | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _tried: anyio.Event = field(default_factory=anyio.Event)
    quiet: Quiet = field(init=False)

    def __post_init__(self) -> None:
        most = self.settings.concurrent_requests
        self.turns = FairTurns(most, max(1, most // SHARED_PART))
        self.waiting = choose_waiting(self.settings, self.toolsets)
        self.quiet = Quiet(lambda: not self.turns.is_empty)

    def note_call(self, call: Call) -> None:
        """Report a finished call to the listeners."""
        self.quiet.note_end()
        for listener in self.listeners:
            listener(call)

    def note_stop(self) -> None:
        """Report to the listeners that the server is to stop."""
        for listener in self.stop_listeners:
            listener()

    def note_unanswered(self, principal: Principal, transport: str, unanswered: Unanswered | None) -> None:
        """Note a question that an answer left open, if there is one; neither waits nor raises."""
        if unanswered is None or self.waiting is None or self._base is None or transport == WATCH:
            return
        if not unanswered.partial.isdisjoint(self.live):
            return  # outside services are not asked again just to judge how well a hit matches
        now = self._base.knowledge_base.clock.now()
        self.waiting.note(Missed(principal, unanswered.text, unanswered.toolsets, now))

    def make_gap_keeper(self, base: Base) -> Keeper | None:
        """Return what groups the questions without an answer; `None` if they are not kept."""
        if self.waiting is None or self.obstacle is not None:
            return None
        from refdesk.factories.gaps import choose_keeper

        served, live = self.toolsets, self.live
        keeper = choose_keeper(self.settings, base.knowledge_base, self.waiting, served, live, self.get_context)
        keeper.working, keeper.on_change = self.quiet.working, self._note_noted
        return keeper

    def make_examiner(self, base: Base) -> Examiner:
        """Return what finds impacts, and the gaps that are closed by new documents."""
        from refdesk.factories.impact import choose_examiner

        keeper = self.make_gap_keeper(base)
        also = keeper.take_new if keeper is not None else None
        return choose_examiner(lambda name: base.of(name).knowledge_base.store, also)

    def _note_noted(self) -> None:
        self.noted += 1

    @property
    def tracer(self) -> Tracer | None:
        """Begins the traces of calls and of background work; `None` if they are not sent anywhere."""
        return self.telemetry.tracer if self.telemetry is not None else None

    def wake(self) -> None:
        """Let the store be opened and the background work begin, without waiting for either."""
        self._wanted.set()

    async def get_base(self) -> Base:
        """Return the open base; opens it first if necessary.

        Raises:
            RefdeskError: It cannot be opened; the next call tries again.
        """
        if self._base is None:
            tried = self._tried
            self.wake()
            await tried.wait()
        if self._base is None:
            raise self._failure or errors.StoreError(
                "The store is closed, for the server is shutting down; try again later."
            )
        return self._base

    async def get_context(
        self,
        principal: Principal,
        toolset: str,
        watch: Callable[[KnowledgeBase], KnowledgeBase] = lambda base: base,
        report: Report = report_nothing,
        asked_at: datetime | None = None,
    ) -> Context:
        """Return what a toolset's handlers get for this caller; errors as in `get_base`.

        Args:
            principal: Who calls.
            toolset: Whose handlers.
            watch: Puts on record what they write.
            report: Receives their progress.
            asked_at: When the call was first sent, if it is repeated.
        """
        base = await self.get_base()
        contexts = Contexts(self.settings, principal, base, watch)
        return contexts.get(toolset, report, asked_at, partial(self.get_upkeep, base))

    def get_upkeep(self, base: Base) -> DeskUpkeep:
        """Return what keeps the desk's toolsets current."""
        from refdesk.factories.upkeep import DeskUpkeep

        return DeskUpkeep(self.settings, base, tuple(toolset.name for toolset in self.toolsets), self.tracer)

    @property
    def synced(self) -> Mapping[str, datetime]:
        """When the toolsets that are kept current here were last synced; empty while nothing is open."""
        return self._base.synced if self._base is not None else {}

    def list_work(self) -> list[str]:
        """Return what is being worked on in the background right now."""
        if self._base is None:
            return []
        is_embedding = any(each.indexer.at_work for each in self._base.each())
        return ["embedding"] * is_embedding + [f"syncing {name}" for name in sorted(self._base.syncing)]

    def find_toolset(self, entry: Operation | Resource) -> str:
        """Return the name of the toolset that has an entry of this name."""
        return find_owner(self.toolsets, entry.name).name

    async def get_health(self, note_answer: Callable[[], None] = lambda: None) -> Health:
        """Return the health; what is wrong is reported, not raised. Answers are noted before documents are counted."""
        from refdesk.core.background.health import Health, add_backlogs, measure_backlog
        from refdesk.core.clock import SystemClock
        from refdesk.core.keeping.unfinished import find_unfinished
        from refdesk.factories.backups import look_at_backups

        away = list[str | None]()
        try:
            base = await self.get_base()
            for each in base.each():
                away += [node.problem for node in await each.knowledge_base.store.list_nodes()]
                await each.knowledge_base.store.check()
                away += [f"{one.found} {one.advice}" for one in await find_unfinished(each.knowledge_base.store)]
            note_answer()
            counts = [(each, await each.indexer.count()) for each in base.each()]
            toolsets = await self._get_toolset_healths(base, counts)
            backlog = add_backlogs([await measure_backlog(each.indexer, own) for each, own in counts])
            now = base.knowledge_base.clock.now()
            backups, unmade = await look_at_backups(self.settings, base, self._opened_at or now)
            change = await self._measure_change(base)
            words_only = await list_search_problems(base.semantics)
        except errors.RefdeskError as error:
            return Health("failing", (error.message, *filter(None, away)), {}, SystemClock().now())
        failures = [BROKEN.format(name) for name in sorted(self.broken)]
        failures += [STUMBLING.format(name) for name in sorted(self.stumbling)]
        trouble = next((each.indexer.trouble for each in base.each() if each.indexer.trouble), None)
        if self.obstacle is None and backlog.is_stalled(now, self._opened_at or now):
            failures.append(f"What is written does not become searchable by meaning: {trouble or NOBODY}")
        problems = [*filter(None, (self.obstacle, *away, *(one.problem for one in toolsets.values())))]
        if trouble and not failures:
            problems.append(f"Embedding pauses and will be tried again: {trouble}")
        if base.keys.file is not None and base.keys.file.trouble:
            problems.append(f"Keys are as they were: {base.keys.file.trouble}")
        if base.queue is not None and base.queue.trouble:
            problems.append(f"Each process works for itself meanwhile: {base.queue.trouble}")
        if backlog.set_aside:
            problems.append(SET_ASIDE)
        problems += [*words_only, *filter(None, [unmade])]
        status = "failing" if failures else "degraded" if problems else "ok"
        is_open, made = base.semantics.breaker.trouble is not None, backups.made_at
        return Health(status, (*failures, *problems), toolsets, now, backlog, made, change, is_open)

    async def _measure_change(self, base: Base) -> EmbeddingState | None:
        """Return how far embedding anew by another model is; `None` where nothing is."""
        if not any([await each.semantics.is_outdated() for each in base.each()]):
            return None
        found = await self.get_upkeep(base).get_embedding()
        return found if found.is_changing else None

    async def _get_toolset_healths(
        self, base: Base, counts: Iterable[tuple[Base, Iterable[EmbeddedCount]]]
    ) -> dict[str, ToolsetHealth]:
        documents, elsewhere = Counter[str](), Counter[str]()
        for each, own in counts:
            for one in own:
                toolset = one.collection.toolset
                (documents if base.of(toolset) is each else elsewhere)[toolset] += one.documents
        return {
            name: await self._get_toolset_health(base, name, documents[toolset.name], elsewhere[toolset.name])
            for toolset in self.toolsets
            if has_documents(toolset.name)
            for name in list_sources(self.settings, toolset.name) or [toolset.name]
        }

    async def _get_toolset_health(self, base: Base, name: str, documents: int, elsewhere: int) -> ToolsetHealth:
        from refdesk.core.background import sync_log
        from refdesk.core.background.health import ToolsetHealth, find_sync_problem

        if name in self.live:
            return ToolsetHealth(None, None, self.live[name]())
        stale_after = get_stale_after(self.settings, name)
        if stale_after is None:
            is_left = elsewhere > documents
            return ToolsetHealth(documents, None, LEFT.format(name, elsewhere) if is_left else None)
        status = await sync_log.read_status(base.of(get_toolset(name)).knowledge_base.store, name)
        problem = find_sync_problem(name, status, base.knowledge_base.clock.now(), stale_after)
        own = documents if name == get_toolset(name) else status.documents
        return ToolsetHealth(own, status.last_success, problem)

    async def run(self) -> None:
        """Keep the store open, once it is needed, and the background work going, until cancelled."""
        while True:
            with anyio.move_on_after(IDLE_START_SECONDS):
                await self._wanted.wait()
            try:
                async with self.open_base() as base:
                    self._settle(base, None)
                    await self._work(base)
            except errors.RefdeskError as error:
                logger.warning("store not opened", extra={"reason": error.message})
                self._settle(None, error)
                await self._wanted.wait()
            except Exception:
                logger.exception("opening the store broke")
                self._settle(None, errors.StoreError("The store broke while it was opened; see the server's log."))
                await self._wanted.wait()

    def _settle(self, base: Base | None, failure: errors.RefdeskError | None) -> None:
        """Give everyone who is waiting the outcome of opening, and let the next caller try again."""
        self._base, self._failure = base, failure
        obstacles = [each.knowledge_base.store.obstacle for each in base.each()] if base is not None else []
        self.obstacle = next(filter(None, obstacles), None)
        self._opened_at = base.knowledge_base.clock.now() if base is not None else None
        self._wanted = anyio.Event()
        tried, self._tried = self._tried, anyio.Event()
        tried.set()

    async def _work(self, base: Base) -> None:
        try:
            async with anyio.create_task_group() as group:
                if self.in_background:
                    group.start_soon(self._supervise, "circuit breaker", base.semantics.breaker.run)
                if self.in_background and self.obstacle is None:
                    self._start_background(group, base)
                await anyio.sleep_forever()
        finally:
            self._base = None

    def _start_background(self, group: TaskGroup, base: Base) -> None:
        for each in base.each():
            group.start_soon(self._supervise, "embedding", each.indexer.run)
            group.start_soon(self._supervise, "search indexes", partial(self._catch_up, each))
        group.start_soon(self._supervise, "impacts", partial(self._keep_impacts, base))
        group.start_soon(self._supervise, "gaps", partial(self._keep_gaps, base))
        group.start_soon(self._supervise, "watches", partial(self._keep_watching, base))
        upkeep = self.get_upkeep(base)
        for name in upkeep.list_sources():
            work = f"sync of {name}"
            keep_current = partial(upkeep.keep_current, name, partial(self._note_round, work))
            group.start_soon(self._supervise, work, keep_current)
        if self.settings.backup_every is not None:
            from refdesk.factories.backups import keep_backups

            group.start_soon(self._supervise, "backups", partial(keep_backups, self.settings, base))

    async def _catch_up(self, base: Base) -> None:
        """Build indexes that are missing, such as after a restore, so that no search has to wait for them."""
        await self.quiet.wait(MOST_LOADING_SECONDS)
        with suppress(errors.RefdeskError):  # the next search tries again, and says why it fails
            await base.knowledge_base.store.catch_up()

    async def _keep_impacts(self, base: Base) -> None:
        """Find what announcements mean for what is known, whenever there is something new, until cancelled."""
        await anyio.sleep(IDLE_START_SECONDS)  # nobody waits for this, but everybody waits for the start
        from refdesk.factories.impact import PARTS

        await self.quiet.load(*PARTS)
        examiner = self.make_examiner(base)
        examiner.working, examiner.give_way = self.quiet.working, self.quiet.give_way
        await examiner.run()

    async def _keep_gaps(self, base: Base) -> None:
        """Group the questions without an answer, until cancelled; return at once if they are not kept."""
        await anyio.sleep(IDLE_START_SECONDS)
        from refdesk.factories.gaps import PARTS

        await self.quiet.load(*PARTS)
        keeper = self.make_gap_keeper(base)
        if keeper is not None:
            keeper.give_way = self.quiet.give_way
            await keeper.run()

    async def _keep_watching(self, base: Base) -> None:
        """Tell agents what is new in what they watch, until cancelled."""
        await anyio.sleep(WATCHING_START_SECONDS)  # its modules are loaded when nobody waits for the start any more
        from refdesk.factories.watching import PARTS, keep_watching

        await self.quiet.load(*PARTS, most_seconds=MOST_LOADING_SECONDS)
        await keep_watching(base, self.toolsets, self.listeners, self.news_listeners)

    def _note_round(self, name: str, went_well: bool) -> None:
        (self.stumbling.discard if went_well else self.stumbling.add)(name)

    async def _supervise(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:
            logger.exception("background work broke", extra={"work": name})
            self.broken.add(name)


@asynccontextmanager
async def open_desk(
    settings: Settings, toolsets: Sequence[Toolset], *, in_background: bool = True
) -> AsyncGenerator[Desk]:
    """Yield a desk that answers; after the block, its background work has stopped and its store is closed.

    Args:
        settings: The settings.
        toolsets: The toolsets in play.
        in_background: Whether to sync and embed meanwhile; a command that only asks one thing does not.

    Raises:
        ConfigurationError: A setting names something that does not exist.
        MissingDependencyError: What a setting names needs an extra that is not installed.
    """
    async with AsyncExitStack() as stack:
        telemetry = await stack.enter_async_context(open_telemetry(settings)) if in_background else None
        yield await stack.enter_async_context(_open_desk(settings, toolsets, in_background, telemetry))


@asynccontextmanager
async def _open_desk(
    settings: Settings, toolsets: Sequence[Toolset], in_background: bool, telemetry: Telemetry | None
) -> AsyncGenerator[Desk]:
    tracer = telemetry.tracer if telemetry is not None else None
    open_base = choose_base(settings, toolsets, tracer, is_kept=in_background)
    failure: Exception | None = None
    async with connect_live(settings, toolsets) as (connected, live), anyio.create_task_group() as group:
        # Questions that are too slow are ended before the toolsets that they ask are closed.
        async with anyio.create_task_group() as questions:
            joined = join_toolsets(connected, questions)
            desk = Desk(settings, joined, open_base, in_background, live=live, questions=questions, telemetry=telemetry)
            group.start_soon(desk.run)
            try:
                yield desk
            except Exception as error:
                failure = error  # raised below, so that it does not come out wrapped in a group
            finally:
                questions.cancel_scope.cancel()
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def list_search_problems(semantics: Semantics) -> list[str]:
    """Return why searches are answered by keywords instead of both; nothing if they are not."""
    missing, trouble = await semantics.find_missing(), semantics.breaker.trouble
    problems = [UNAVAILABLE.format(missing.name)] if missing is not None else []
    return problems if trouble is None else [*problems, UNANSWERED.format(trouble)]
