"""Random lives of a knowledge base, step by step beside the reference: whatever one answers, the other must."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Callable, Coroutine, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.identifiers import SequentialIdentifiers
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import quotas
from refdesk.core.writing.quotas import Quota
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.errors import RefdeskError
from refdesk.protocols import Store
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.models import KnowledgeEntry, KnowledgeResult, StoreOutput
from tests.core.fakes import NOW
from tests.reliability.inline import open_inline
from tests.reliability.reference import (
    NEW,
    REPLAY,
    TOKEN_HOLDS,
    Asked,
    Caller,
    Entry,
    Library,
    Question,
    get_ids,
    matches,
)
from tests.toolsets.knowledge.conftest import Desk

T = TypeVar("T")

MOST_PER_ORG, MOST_PER_AGENT = 14, 9
ORGS, AGENTS, TAGS = ("acme", "zenith"), ("ann", "bob"), ("red", "green", "blue")
WORDS = ("kiwi", "mango", "tofu", "zinc", "opal", "jazz")
"""Each is its own stem, none is a stop word, and none holds another: matching them needs no analysis."""
TOKENS = tuple(f"aaaaaaaa-0000-4000-8000-00000000000{number}" for number in range(4))
STRANGER = "00000000-0000-7000-8000-ffffffffffff"

INSTANT = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
SIDES = (-INSTANT, timedelta(0), INSTANT)
LIVES = (None, None, None, -SECOND, timedelta(0), INSTANT, 30 * SECOND, 90 * SECOND, timedelta(days=1))
JUMPS = (INSTANT, SECOND, 30 * SECOND, 59 * SECOND, timedelta(hours=2), -SECOND, -61 * SECOND, -timedelta(days=2))

words = st.sampled_from(WORDS)
picks = st.integers(0, 10_000)
desks = st.integers(0, 1)
callers = st.builds(Caller, st.sampled_from(ORGS), st.sampled_from(AGENTS), st.sampled_from((False, False, True)))
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
tags = st.lists(st.sampled_from(TAGS), unique=True, max_size=2).map(tuple)
tasks = st.sampled_from((None, None, ("T-1", "produced"), ("T-2", "references")))
questions = st.builds(
    Question, st.lists(words, min_size=1, max_size=2).map(tuple), st.booleans(), tags, st.booleans(), st.booleans()
)


@dataclass
class Subject:
    """What is tried: the real store as it is, or one in which a fault is planted; and how much was tried."""

    folder: Path
    wrap_store: Callable[[Store], Store] = lambda store: store
    wrap_search: Callable[[KnowledgeBase], KnowledgeBase] = lambda base: base
    lives: int = 0
    steps: int = 0

    @property
    def template(self) -> Path:
        """An empty store's file, to be copied: making its schema anew for each life would take longer than the life."""
        return self.folder / "template.sqlite3"

    def next_path(self) -> Path:
        self.lives += 1
        return Path(shutil.copy(self.template, self.folder / f"{self.lives}.sqlite3"))


@dataclass
class Opening:
    """The store's file as one process has it open."""

    subject: Subject
    path: Path
    clock: FixedClock
    identifiers: SequentialIdentifiers
    _base: KnowledgeBase | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def base(self) -> KnowledgeBase:
        assert self._base is not None
        return self._base

    async def open(self) -> None:
        self._stack, quota = AsyncExitStack(), Quota(QUOTA_NAME, MOST_PER_ORG, MOST_PER_AGENT)
        # Whether commits reach the disk is tried elsewhere.
        real = await self._stack.enter_async_context(open_inline(self.path, self.clock, "OFF"))
        store = self.subject.wrap_store(real)
        semantics = Semantics(store, HashingEmbedder())
        self._base = KnowledgeBase(store, semantics, self.clock, self.identifiers, {QUOTA_NAME: quota})

    async def close(self) -> None:
        await self._stack.aclose()


class Machine(RuleBasedStateMachine):
    """One life: two orgs with two agents each, two openings of one file, one clock that jumps."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.runner = asyncio.Runner()
        self.clock = FixedClock(NOW)
        self.agrees = True
        self.library = Library(MOST_PER_ORG, MOST_PER_AGENT)
        self.path, identifiers = subject.next_path(), SequentialIdentifiers()
        self.openings = [Opening(subject, self.path, self.clock, identifiers) for _ in range(2)]
        for opening in self.openings:
            self.run(opening.open())

    @contextmanager
    def step(self) -> Generator[None]:
        """Count a step. After one that disagreed nothing more is asked: what is broken may not even answer."""
        self.subject.steps += 1
        self.agrees = False
        yield
        self.agrees = True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def attempt(self, work: Coroutine[Any, Any, T]) -> tuple[T | None, str | None]:
        """Return what comes back, or the code of the error that does."""
        try:
            return self.run(work), None
        except RefdeskError as error:
            return None, error.code

    def desk(self, caller: Caller, which: int, base: KnowledgeBase | None = None) -> Desk:
        desk = Desk(base or self.openings[which].base, self.clock)
        return desk.as_agent(caller.agent, caller.org, *(["knowledge:write_others"] if caller.may_write_others else []))

    def pick(self, entries: list[Entry], pick: int) -> str:
        """Return the id of one of the entries, or now and then one that nobody has."""
        return STRANGER if not entries or pick % 17 == 16 else entries[pick % len(entries)].id

    def pick_for(self, caller: Caller, pick: int) -> str:
        """Return an id as in `pick`, mostly one of the caller's own org."""
        return self.pick(self.library.entries if pick % 5 == 4 else self.library.of(caller.org), pick)

    @initialize(entries=st.lists(st.tuples(callers, texts, texts, tags), min_size=4, max_size=6))
    def begin(self, entries: list[tuple[Caller, str, str, tuple[str, ...]]]) -> None:
        for number, (caller, title, body, tags) in enumerate(entries):
            self.try_to_store(caller, 0, Asked(title, body, tags), TOKENS[number % len(TOKENS)])

    @rule(
        caller=callers,
        which=desks,
        title=texts,
        body=texts,
        tags=tags,
        life=st.sampled_from(LIVES),
        task=tasks,
        token=st.sampled_from((None, *TOKENS)),
    )
    def store(
        self,
        caller: Caller,
        which: int,
        title: str,
        body: str,
        tags: tuple[str, ...],
        life: timedelta | None,
        task: tuple[str, str] | None,
        token: str | None,
    ) -> None:
        expires_at = None if life is None else self.clock.now() + life
        self.try_to_store(caller, which, Asked(title, body, tags, len(body), expires_at, task), token)

    @rule(which=desks, pick=picks, is_changed=st.booleans(), side=st.sampled_from((None, *SIDES)))
    def store_again(self, which: int, pick: int, is_changed: bool, side: timedelta | None) -> None:
        """Repeat a call, now or where its token runs out."""
        if not self.library.tokens:
            return
        (org, agent, token), used = list(self.library.tokens.items())[pick % len(self.library.tokens)]
        if side is not None:
            self.go_to(used.first_used_at + TOKEN_HOLDS + side)
        asked = dataclasses.replace(used.asked, confidence=100) if is_changed else used.asked
        self.try_to_store(Caller(org, agent), which, asked, token)

    def try_to_store(self, caller: Caller, which: int, asked: Asked, token: str | None) -> str | None:
        now = self.clock.now()
        with self.step():
            right = self.library.judge_store(caller, asked, token, now)
            work = self.desk(caller, which).store(
                asked.title,
                asked.body,
                tags=list(asked.tags),
                confidence=asked.confidence,
                expiresAt=asked.expires_at.isoformat() if asked.expires_at else None,
                taskRef={"taskId": asked.task[0], "kind": asked.task[1]} if asked.task else None,
                clientToken=token,
            )
            stored, code = self.attempt(work)
            outcome = code or (REPLAY if stored is not None and stored.replayed else NEW)
            assert outcome in right, (outcome, right)
            if stored is not None:
                assert stored.embedding_status == "pending"
                self.note_stored(caller, asked, token, stored)
            return stored.id if stored is not None else None

    def note_stored(self, caller: Caller, asked: Asked, token: str | None, stored: StoreOutput) -> None:
        now = self.clock.now()
        if not stored.replayed:
            assert stored.created_at == now
            assert self.library.get(caller.org, stored.id) is None
            self.library.store(caller, asked, token, stored.id, now)
        else:
            first = self.library.tokens[caller.org, caller.agent, token or ""].entry
            assert (stored.id, stored.created_at) == (first.id, first.created_at)

    @rule(caller=callers, which=desks, old=picks, step=picks)
    def supersede(self, caller: Caller, which: int, old: int, step: int) -> None:
        self.try_to_supersede(caller, which, self.pick_for(caller, old), self.pick_for(caller, old + step))

    @rule(which=desks, pick=picks, title=texts)
    def replace(self, which: int, pick: int, title: str) -> None:
        """Store something new in the place of what stands at the end of a chain, as agents do."""
        old = self.library.entries[pick % len(self.library.entries)].head()
        caller = Caller(old.org, old.author)
        if new := self.try_to_store(caller, which, Asked(title, "tofu"), None):
            self.try_to_supersede(caller, which, old.id, new)

    @rule(which=desks, pick=picks, back=picks)
    def close_circle(self, which: int, pick: int, back: int) -> None:
        """Try to let an entry be superseded by one that it superseded, directly or not."""
        head = self.library.entries[pick % len(self.library.entries)].head()
        chain = self.library.get_chain(head)
        caller = Caller(head.org, head.author, may_write_others=True)
        self.try_to_supersede(caller, which, head.id, chain[back % len(chain)].id)

    def try_to_supersede(self, caller: Caller, which: int, old_id: str, new_id: str) -> None:
        with self.step():
            right = self.library.judge_supersede(caller, old_id, new_id)
            head, code = self.attempt(self.desk(caller, which).supersede(old_id, new_id))
            assert code == right, (code, right)
            if head is not None:
                assert head == self.library.supersede(caller.org, old_id, new_id, self.clock.now()).id

    @rule(caller=callers, which=desks, question=questions, limit=st.sampled_from((1, 3, 50)))
    def search(self, caller: Caller, which: int, question: Question, limit: int) -> None:
        with self.step():
            found = self.ask(caller, which, question, 50)
            right = self.library.find(caller.org, question, self.clock.now())
            assert sorted(result.id for result in found) == sorted(right), question
            assert [result.score for result in found] == sorted((result.score for result in found), reverse=True)
            for result in found:
                self.check_result(caller, question, result)
            assert self.ask(caller, which, question, limit) == found[:limit]

    @rule(which=desks, pick=picks, side=st.sampled_from(SIDES))
    def search_where_something_ends(self, which: int, pick: int, side: timedelta) -> None:
        """Search in the words of an entry as its time runs out."""
        ending = [entry for entry in self.library.entries if entry.asked.expires_at is not None]
        if not ending:
            return
        entry = ending[pick % len(ending)]
        assert entry.asked.expires_at is not None
        self.go_to(entry.asked.expires_at + side)
        words = tuple(entry.asked.title.split()[:2])
        self.search(Caller(entry.org, entry.author), which, Question(words), 50)

    def ask(self, caller: Caller, which: int, question: Question, limit: int) -> list[KnowledgeResult]:
        base = self.subject.wrap_search(self.openings[which].base)
        search = self.desk(caller, which, base).search(
            question.text,
            limit=limit,
            tags=list(question.tags),
            includeSuperseded=question.include_superseded,
            includeExpired=question.include_expired,
        )
        return self.run(search)

    def check_result(self, caller: Caller, question: Question, result: KnowledgeResult) -> None:
        entry = self.library.get(caller.org, result.id)
        assert entry is not None
        asked = entry.asked
        assert (result.title, result.snippet, result.tags) == (asked.title, asked.body, list(asked.tags))
        assert (result.author, result.confidence, result.created_at, result.expires_at) == (
            *(entry.author, asked.confidence),
            *(entry.created_at, asked.expires_at),
        )
        assert result.superseded_by == (None if entry.successor is None else entry.head().id)
        assert result.embedding_status == ("ready" if entry.has_vectors else "pending")
        assert 0 < result.score <= 1
        if matches(entry, question) or question.include_superseded:
            assert result.matched_via is None
        elif not entry.has_vectors or result.matched_via is not None:
            via = self.library.get(caller.org, result.matched_via or "")
            assert via is not None
            assert via is not entry
            assert via.head() is entry
            assert via.has_vectors or matches(via, question)

    @rule(caller=callers, which=desks, pick=picks)
    def get(self, caller: Caller, which: int, pick: int) -> None:
        with self.step():
            self.check_entry(caller, which, self.pick_for(caller, pick))

    def check_entry(self, caller: Caller, which: int, id: str) -> None:
        entry = self.library.get(caller.org, id)
        got, code = self.attempt(self.desk(caller, which).get(id))
        assert code == (None if entry else "NOT_FOUND")
        if entry is not None:
            assert got is not None
            self.check_whole(entry, got)

    def check_whole(self, entry: Entry, got: KnowledgeEntry) -> None:
        asked = entry.asked
        assert (got.id, got.title, got.body, got.tags) == (entry.id, asked.title, asked.body, list(asked.tags))
        assert (got.confidence, got.author, got.source) == (asked.confidence, entry.author, "agent")
        assert (got.created_at, got.updated_at) == (entry.created_at, entry.changed_at)
        assert (got.expires_at, got.is_expired) == (asked.expires_at, entry.is_expired(self.clock.now()))
        assert got.superseded_by == (entry.successor.id if entry.successor else None)
        assert got.head_id == entry.head().id
        assert [member.id for member in got.chain] == get_ids(self.library.get_chain(entry))
        assert [(task.task_id, task.kind) for task in got.task_refs] == ([asked.task] if asked.task else [])
        assert got.embedding_status == ("ready" if entry.has_vectors else "pending")

    @rule(jump=st.sampled_from(JUMPS))
    def move_clock(self, jump: timedelta) -> None:
        self.go_to(self.clock.now() + jump)

    @rule(pick=picks, side=st.sampled_from(SIDES))
    def move_clock_to_an_edge(self, pick: int, side: timedelta) -> None:
        """Go to where something ends, or to the instant before or after."""
        if edges := self.library.list_edges():
            self.go_to(edges[pick % len(edges)] + side)

    def go_to(self, instant: datetime) -> None:
        with self.step():
            self.clock.advance(instant - self.clock.now())
            self.library.note_time(self.clock.now())

    @rule(which=desks)
    def embed(self, which: int) -> None:
        with self.step():
            base = self.openings[which].base
            assert base.semantics is not None
            worked = self.run(Indexer(base.store, base.semantics, self.clock).run_once())
            assert worked == self.library.embed()

    @rule(which=st.sampled_from(((0,), (1,), (0, 1))))
    def restart(self, which: tuple[int, ...]) -> None:
        with self.step():
            for number in which:
                self.run(self.openings[number].close())
            for number in which:
                self.run(self.openings[number].open())

    @rule(caller=callers, which=desks)
    def count(self, caller: Caller, which: int) -> None:
        with self.step():
            base = self.openings[which].base
            usage = self.run(quotas.read_usage(base.store, base.quotas[QUOTA_NAME], caller.org, caller.agent))
            own = self.library.of(caller.org, caller.agent)
            assert (usage.org, usage.agent) == (len(self.library.of(caller.org)), len(own))

    def check_everything(self) -> None:
        for entry in self.library.entries:
            self.check_entry(Caller(entry.org, entry.author), 0, entry.id)

    def teardown(self) -> None:
        try:
            if self.agrees:
                self.check_everything()
        finally:
            for opening in self.openings:
                self.run(opening.close())
            self.runner.close()
            for path in self.subject.folder.glob(f"{self.path.name}*"):
                path.unlink()
