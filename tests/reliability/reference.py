"""What the knowledge toolset must do, said a second time and as plainly as can be: lists, loops and no engine.

It is written from the contract and shares nothing with the core, so that a misunderstanding is not made twice.
Where the contract leaves open what happens (a token that ran out before the clock was set back), every outcome it
allows is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

TOKEN_HOLDS = timedelta(seconds=60)

NEW = "new"
REPLAY = "replay"
INVALID = "INVALID_INPUT"
CONFLICT = "CONFLICT"
DENIED = "PERMISSION_DENIED"
MISSING = "NOT_FOUND"
EXHAUSTED = "QUOTA_EXCEEDED"


@dataclass(frozen=True)
class Caller:
    org: str
    agent: str
    may_write_others: bool = False


@dataclass(frozen=True)
class Asked:
    """What a caller wants to store."""

    title: str
    body: str
    tags: tuple[str, ...] = ()
    confidence: int = 80
    expires_at: datetime | None = None
    task: tuple[str, str] | None = None


@dataclass
class Entry:
    id: str
    org: str
    author: str
    asked: Asked
    created_at: datetime
    changed_at: datetime
    successor: Entry | None = None
    has_vectors: bool = False
    replaced: list[Entry] = field(default_factory=list["Entry"])

    def head(self) -> Entry:
        entry = self
        while entry.successor is not None:
            entry = entry.successor
        return entry

    def is_expired(self, now: datetime) -> bool:
        return _has_passed(self.asked, now)


@dataclass
class UsedToken:
    asked: Asked
    entry: Entry
    first_used_at: datetime
    has_run_out: bool = False


@dataclass(frozen=True)
class Question:
    words: tuple[str, ...]
    is_quoted: bool = False
    tags: tuple[str, ...] = ()
    include_superseded: bool = False
    include_expired: bool = False

    @property
    def text(self) -> str:
        text = " ".join(self.words)
        return f'"{text}"' if self.is_quoted else text


@dataclass
class Library:
    """Every entry of every org, and what each call must answer.

    Attributes:
        most_per_org: The quota of an org; the same for all.
        most_per_agent: The quota of an agent in an org.
    """

    most_per_org: int
    most_per_agent: int
    entries: list[Entry] = field(default_factory=list[Entry])
    tokens: dict[tuple[str, str, str], UsedToken] = field(default_factory=dict[tuple[str, str, str], UsedToken])

    def note_time(self, now: datetime) -> None:
        """Let tokens run out. Whoever sets the clock back after that does not bring them to life for sure."""
        for used in self.tokens.values():
            used.has_run_out = used.has_run_out or now >= used.first_used_at + TOKEN_HOLDS

    def get(self, org: str, id: str) -> Entry | None:
        for entry in self.entries:
            if entry.org == org and entry.id == id:
                return entry
        return None

    def of(self, org: str, agent: str | None = None) -> list[Entry]:
        return [entry for entry in self.entries if entry.org == org and agent in (None, entry.author)]

    def judge_store(self, caller: Caller, asked: Asked, token: str | None, now: datetime) -> set[str]:
        """Return the outcomes that are right: `NEW`, `REPLAY` or an error's code."""
        used = self.tokens.get((caller.org, caller.agent, token)) if token else None
        if used is None or now >= used.first_used_at + TOKEN_HOLDS:
            return {self._judge_new(caller, asked, now)}
        again = REPLAY if used.asked == asked else CONFLICT
        return {again, self._judge_new(caller, asked, now)} if used.has_run_out else {again}

    def _judge_new(self, caller: Caller, asked: Asked, now: datetime) -> str:
        if _has_passed(asked, now):
            return INVALID
        org, agent = len(self.of(caller.org)), len(self.of(caller.org, caller.agent))
        return EXHAUSTED if org >= self.most_per_org or agent >= self.most_per_agent else NEW

    def store(self, caller: Caller, asked: Asked, token: str | None, id: str, now: datetime) -> None:
        entry = Entry(id, caller.org, caller.agent, asked, now, now)
        self.entries.append(entry)
        if token:
            self.tokens[caller.org, caller.agent, token] = UsedToken(asked, entry, now)

    def judge_supersede(self, caller: Caller, old_id: str, new_id: str) -> str | None:
        """Return the code of the error that is right, or `None`."""
        if old_id == new_id:
            return INVALID
        old, new = self.get(caller.org, old_id), self.get(caller.org, new_id)
        if old is None or new is None:
            return MISSING
        if caller.agent not in (old.author, new.author) and not caller.may_write_others:
            return DENIED
        if old.successor is not None:
            return None if old.successor is new else CONFLICT
        return CONFLICT if new.head() is old else None

    def supersede(self, org: str, old_id: str, new_id: str, now: datetime) -> Entry:
        """Link the two, which was judged right, and return the head."""
        old, new = self.get(org, old_id), self.get(org, new_id)
        assert old is not None
        assert new is not None
        if old.successor is None:
            old.changed_at = now
            old.successor = new
            new.replaced.append(old)
        return old.head()

    def get_chain(self, entry: Entry) -> list[Entry]:
        """Return everything that has the same head, each entry after what it replaced, level by level."""
        chain, read = [entry.head()], 0
        while read < len(chain):
            chain += sorted(chain[read].replaced, key=lambda other: (other.changed_at, other.id), reverse=True)
            read += 1
        return chain[::-1]

    def find(self, org: str, question: Question, now: datetime) -> set[str]:
        """Return the ids of everything that a search must show."""

        def is_wanted(entry: Entry) -> bool:
            is_live = question.include_expired or not entry.is_expired(now)
            return is_live and set(question.tags) <= set(entry.asked.tags)

        matching = [entry for entry in self.of(org) if entry.has_vectors or matches(entry, question)]
        if question.include_superseded:
            return {entry.id for entry in matching if is_wanted(entry)}
        return {entry.head().id for entry in matching if is_wanted(entry.head())}

    def embed(self) -> int:
        """Give everything its vectors; return how many had none."""
        missing = [entry for entry in self.entries if not entry.has_vectors]
        for entry in missing:
            entry.has_vectors = True
        return len(missing)

    def list_edges(self) -> list[datetime]:
        """Return the instants at which something ends, each once, in order."""
        ends = {used.first_used_at + TOKEN_HOLDS for used in self.tokens.values()}
        return sorted(ends | {entry.asked.expires_at for entry in self.entries if entry.asked.expires_at})


def _has_passed(asked: Asked, now: datetime) -> bool:
    return asked.expires_at is not None and asked.expires_at <= now


def matches(entry: Entry, question: Question) -> bool:
    """Return whether the words of an entry match by themselves."""
    texts = [entry.asked.title.split(), entry.asked.body.split()]
    return any(word in text for word in question.words for text in texts)


def get_ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.id for entry in entries]
