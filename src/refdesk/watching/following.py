"""Following: reads new acts in the audit logs, judges them for the watches of each org, and tells their agents.

The news and the number of the last act they cover are committed together, and only if no other process has got that far
in the meantime. So everything is reported once, by whichever process notices first, and a restart loses nothing. No
lease is needed, so no lease has to expire before another process can take over.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread

from refdesk import errors
from refdesk.core.doorbell import Doorbell
from refdesk.core.writing.tombstones import is_erased
from refdesk.model import Collection, Metadata
from refdesk.watching import judging, meaning, queueing, standing
from refdesk.watching.happenings import Happening, list_happenings, list_logs, read_end
from refdesk.watching.judging import Passing
from refdesk.watching.news import tell
from refdesk.watching.watches import (
    UNREAD,
    count_change,
    list_watches,
    make_progress_key,
    put_expiry,
    read_count,
    read_watch,
    write_watch,
)

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.search.semantics import Semantics
    from refdesk.model import AuditEntry, Document
    from refdesk.protocols import Clock, Reader, Store, Transaction
    from refdesk.watching.happenings import Log
    from refdesk.watching.judging import Readers
    from refdesk.watching.news import Event, News
    from refdesk.watching.watches import Watch

    Told: TypeAlias = "list[tuple[Watch, Event]]"

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often to look for what other processes wrote; writes of this process ring the doorbell."""

GATHER_SECONDS = 0.05
"""The least time from one look to the next, so that writes in quick succession are looked at together and the writer
goes first."""

MOST_SECONDS = 60.0
REST = 10.0
"""After a look, the next is due at the earliest after this many times its duration, unless the doorbell rings: so an
idle watcher takes less than a tenth of a processor."""

ACTS = 100
"""Most acts that are read, judged and told together."""


@dataclass(frozen=True, slots=True)
class Place:
    """A store that is followed.

    Attributes:
        semantics: The semantics of its vectors; `None` if there is only keyword search.
    """

    store: Store
    semantics: Semantics | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a batch of acts from a log means for an org.

    Attributes:
        last: The number of the last of these acts.
        events: The events to tell, each with the watch that tells it.
        unread: Records of documents whose meaning is still to be judged.
        passed: What happened to watched documents.
        moved: Watches that move from a superseded entry on to its successor, and when that expires.
    """

    last: int
    events: Told = field(default_factory=list["tuple[Watch, Event]"])
    unread: Sequence[Metadata] = ()
    passed: Sequence[Passing] = ()
    moved: Sequence[tuple[Watch, datetime | None]] = ()


@dataclass(slots=True)
class Watcher:
    """Tells agents the news of their watches; `run` it as a background task.

    Attributes:
        main: The store that holds the watches and their news.
        places: The stores that are followed, by name, including the main one.
        readers: By toolset, the function that reads an announcement out of a document.
        on_told: Called with the news, after the commit.
        trouble: Why the last attempt to work failed; `None` if it succeeded.
    """

    main: Store
    places: Mapping[str, Place]
    readers: Readers
    clock: Clock
    on_told: Callable[[Sequence[News]], None] = lambda _: None
    doorbell: Doorbell = field(default_factory=Doorbell)
    trouble: str | None = None
    _watches: dict[str, list[Watch]] = field(default_factory=dict[str, "list[Watch]"])
    _count: int = -1
    _marks: str = ""

    async def run(self) -> None:
        """Work until cancelled. Failures are logged and retried with increasing pauses; they never end the loop."""
        pause, begun = LOOK_SECONDS, -math.inf
        while True:
            await self.doorbell.wait(pause)
            await anyio.sleep(max(0.0, begun + GATHER_SECONDS - anyio.current_time()))
            begun = anyio.current_time()
            try:
                await self.run_once()
                pause, self.trouble = max(LOOK_SECONDS, (anyio.current_time() - begun) * REST), None
            except errors.RefdeskError as error:
                self.trouble = error.message
                logger.warning("watching paused", extra={"reason": error.message, "seconds": pause})
                pause = min(2 * pause, MOST_SECONDS)
                await anyio.sleep(pause)

    async def run_once(self) -> int:
        """Tell everything there is to tell now; return how many news that was."""
        await self._read_watches()
        if not self._watches:
            return 0
        # Taken before looking, so that anything written meanwhile is found the next time.
        marks = " ".join([await place.store.get_change_mark() for place in self.places.values()])
        told = 0
        for org, watches in list(self._watches.items()):
            has_subjects = any(watch.kind in ("entry", "skill") for watch in watches)
            # Reports on a skill, and what comes to bear on an entry, change no document.
            if marks != self._marks or has_subjects:
                told += await self._look(org, watches)
        told += await self._tell_expired()
        self._marks = marks
        return told

    async def _read_watches(self) -> None:
        """Read the watches again if any were made or removed since the last time."""
        count = await read_count(self.main)
        if count == self._count:
            return
        found: dict[str, list[Watch]] = {}
        for watch in await list_watches(self.main):
            found.setdefault(watch.org, []).append(watch)
        self._watches, self._count, self._marks = found, count, ""

    async def _look(self, org: str, watches: Sequence[Watch]) -> int:
        told = 0
        for log in list_logs({name: place.store for name, place in self.places.items()}):
            told += await self._follow(org, watches, log)
        return told + await self._judge_meaning(org, watches) + await self._look_at_subjects(org, watches)

    async def _follow(self, org: str, watches: Sequence[Watch], log: Log) -> int:
        """Tell an org what is new in a log, until there is nothing more."""
        end, told = await read_end(log.store, log.name_org(org)), 0
        while (position := await _read_position(self.main, org, log)) != end:
            if position > end:
                # Another process is ahead, unless an older log was restored from a backup: then no act has that number.
                end = await read_end(log.store, log.name_org(org))
                if position > end:
                    return told + await self._tell_acts(org, log, position, Piece(end))
                continue
            entries = await log.store.get_audit(log.name_org(org), position, ACTS)
            if not entries:
                break
            piece = await self._judge_acts(org, watches, log, entries)
            told += await self._tell_acts(org, log, position, piece)
            if piece.moved:
                await self._read_watches()
                watches = self._watches.get(org, ())
        return told

    async def _judge_acts(self, org: str, watches: Sequence[Watch], log: Log, entries: Sequence[AuditEntry]) -> Piece:
        """Return what acts mean for an org, up to the first that moves a watch on to the successor of its entry."""
        happened = list(list_happenings(log.name, entries))
        wanted = [each for each in happened if any(judging.may_concern(watch, each) for watch in watches)]
        passed = await _read_passed(log.store, wanted)
        events = await anyio.to_thread.run_sync(_judge_all, watches, passed, self.readers)
        moves = [
            (number, watch, event)
            for number, (watch, event) in events
            if event.what == "superseded" and event.other and watch.kind == "entry"
        ]
        last = min((number for number, _, _ in moves), default=entries[-1].number)
        passed = [each for each in passed if each.happening.number <= last]
        moved = [await _move(log.store, watch, event) for number, watch, event in moves if number == last]
        told = [pair for number, pair in events if number <= last]
        return Piece(last, told, self._list_unread(org, watches, log, passed), passed, moved)

    def _list_unread(self, org: str, watches: Sequence[Watch], log: Log, passed: Sequence[Passing]) -> list[Metadata]:
        """Return records of the documents whose meaning is still to be judged."""
        if self.places[log.store_name].semantics is None:
            return []
        return [
            meaning.make_unread(org, each)
            for each in passed
            if any(
                judging.may_concern(watch, each.happening) and judging.is_asked(watch, each)
                for watch in watches
                if watch.kind == "search"
            )
        ]

    async def _tell_acts(self, org: str, log: Log, position: int, piece: Piece) -> int:
        """Tell the events of a batch of acts, unless another process was faster; return how many news that was."""
        async with self.main.transaction() as transaction:
            if piece.moved:
                await count_change(transaction)
            if await _read_position(transaction, org, log) != position:
                return 0
            await transaction.put_metadata([Metadata(make_progress_key(org, log.name), {"number": piece.last})])
            await transaction.put_metadata(piece.unread)
            await self._note_expiry(transaction, org, piece.passed)
            news = await self._tell(transaction, piece.events)
            await self._put_moved(transaction, piece.moved)
        self.on_told(news)
        return len(news)

    async def _put_moved(self, transaction: Transaction, moved: Sequence[tuple[Watch, datetime | None]]) -> None:
        for watch, expiry in moved:
            record = await transaction.get_metadata(watch.key)
            if record is not None:
                await transaction.put_metadata([write_watch(replace(read_watch(record), subject=watch.subject))])
                await put_expiry(transaction, watch, expiry)

    async def _note_expiry(self, transaction: Transaction, org: str, passed: Sequence[Passing]) -> None:
        for each in passed:
            for watch in self._watches.get(org, ()):
                if watch.kind in ("entry", "skill") and judging.may_concern(watch, each.happening):
                    expiry = standing.get_expiry(each.now, judging.EXPIRES) if each.is_current else None
                    await put_expiry(transaction, watch, expiry)

    async def _tell(self, transaction: Transaction, events: Told) -> list[News]:
        """Tell events of one org, except those of documents erased, or of watches removed or paused, meanwhile."""
        if not events:
            return []
        there = await transaction.get_many_metadata([watch.key for watch, _ in events])
        erased: set[tuple[str, str]] = set()
        for toolset in sorted({event.toolset for _, event in events}):
            ids = sorted({event.id for _, event in events if event.toolset == toolset})
            documents = await transaction.get_documents(Collection(events[0][0].org, toolset), ids)
            erased |= {(toolset, each.id) for each in documents if each is not None and is_erased(each)}
        pairs = [
            pair
            for pair, record in zip(events, there, strict=True)
            if record is not None and not read_watch(record).paused
        ]
        told = [pair for pair in pairs if (pair[1].toolset, pair[1].id) not in erased]
        news = await tell(transaction, told)
        sent = [(watch, each) for (watch, _), each in zip(told, news, strict=True)]
        await queueing.queue(transaction, sent, self.clock.now())
        return news

    async def _judge_meaning(self, org: str, watches: Sequence[Watch]) -> int:
        """Tell which documents match searches by meaning, now that they have vectors."""
        searches = [watch for watch in watches if watch.kind == "search"]
        if not searches:
            return 0
        records = await self.main.list_metadata(UNREAD, org=org, limit=meaning.MOST_UNREAD)
        told = 0
        for (log, _), unread in meaning.group([meaning.read_unread(record) for record in records]).items():
            place = self.places.get(log.removesuffix("*"))
            if place is not None and place.semantics is not None:
                events, done = await meaning.judge_meaning(
                    place.store, place.semantics, searches, unread, self.clock.now()
                )
                told += await self._tell_meaning(events, done)
        return told

    async def _tell_meaning(self, events: Told, done: Sequence[meaning.Unread]) -> int:
        if not done:
            return 0
        async with self.main.transaction() as transaction:
            known = await transaction.get_many_metadata([each.record.key for each in done])
            taken = {each.id for each, record in zip(done, known, strict=True) if record == each.record}
            await transaction.remove_metadata([each.record.key for each in done if each.id in taken])
            news = await self._tell(transaction, [pair for pair in events if pair[1].id in taken])
        self.on_told(news)
        return len(news)

    async def _look_at_subjects(self, org: str, watches: Sequence[Watch]) -> int:
        """Tell what has come to bear on the subjects of watches."""
        told, now = 0, self.clock.now()
        for toolset in sorted({watch.toolsets[0] for watch in watches if watch.kind in ("entry", "skill")}):
            mine = [watch for watch in watches if watch.kind in ("entry", "skill") and toolset in watch.toolsets]
            store = self._get_place(toolset).store
            bearings = await standing.read_bearings(store, org, mine)
            known = await self.main.get_many_metadata([standing.make_seen_key(watch) for watch in mine])
            for watch, bearing, record in zip(mine, bearings, known, strict=True):
                if standing.read_seen(record) != bearing:
                    told += await self._tell_bearing(watch, bearing, now)
        return told

    def _get_place(self, toolset: str) -> Place:
        return self.places.get(toolset) or next(each for each in self.places.values() if each.store is self.main)

    async def _tell_bearing(self, watch: Watch, bearing: standing.Bearing, now: datetime) -> int:
        async with self.main.transaction() as transaction:
            before = standing.read_seen(await transaction.get_metadata(standing.make_seen_key(watch)))
            events = [(watch, event) for event in standing.list_events(watch, before, bearing, now)]
            news = await self._tell(transaction, events)
            if await transaction.get_metadata(watch.key) is not None:
                await transaction.put_metadata([standing.write_seen(watch, bearing)])
        self.on_told(news)
        return len(news)

    async def _tell_expired(self) -> int:
        """Tell what has expired."""
        due, told = await standing.list_due(self.main, self.clock.now()), 0
        for org in sorted({record.key.org for record in due}):
            mine = [record for record in due if record.key.org == org]
            watches = {watch.id: watch for watch in self._watches.get(org, ())}
            async with self.main.transaction() as transaction:
                events = await standing.take_expired(transaction, org, watches, mine)
                news = await self._tell(transaction, events)
            self.on_told(news)
            told += len(news)
        return told


async def _move(store: Store, watch: Watch, event: Event) -> tuple[Watch, datetime | None]:
    """Return the watch of an entry, moved on to the entry's successor, and when that expires."""
    [successor] = await store.get_documents(Collection(watch.org, event.toolset), [event.other])
    expiry = standing.get_expiry(successor, judging.EXPIRES) if successor is not None else None
    return replace(watch, subject=event.other), expiry


async def _read_position(reader: Reader, org: str, log: Log) -> int:
    """Return the number of the last act of a log that an org has heard of; 0 before the first."""
    record = await reader.get_metadata(make_progress_key(org, log.name))
    return int(str(record.value["number"])) if record is not None else 0


async def _read_passed(store: Store, happened: Sequence[Happening]) -> list[Passing]:
    """Return what happened, with the documents before and after; leave out those that are no longer there."""
    by_collection: dict[Collection, list[str]] = {}
    for each in happened:
        by_collection.setdefault(each.collection, []).append(each.id)
    versions: dict[tuple[Collection, str], dict[int, Document]] = {}
    for collection, every in by_collection.items():
        ids = list(dict.fromkeys(every))
        for id, history in zip(ids, await store.get_histories(collection, ids), strict=True):
            versions[collection, id] = {each.document.version: each.document for each in history}
    return list(_find_passed(happened, versions))


def _find_passed(
    happened: Iterable[Happening], versions: Mapping[tuple[Collection, str], Mapping[int, Document]]
) -> Iterable[Passing]:
    for each in happened:
        known = versions[each.collection, each.id]
        if not known:
            continue
        newest = known[max(known)]
        if each.is_outcome:
            yield Passing(each, newest, newest)
        elif each.version in known:
            yield Passing(each, known[each.version], known.get(each.version - 1))


def _judge_all(
    watches: Sequence[Watch], passed: Sequence[Passing], readers: Readers
) -> list[tuple[int, tuple[Watch, Event]]]:
    """Return the events that watches tell, each with the number of its act."""
    told: list[tuple[int, tuple[Watch, Event]]] = []
    for each in passed:
        for watch in watches:
            event = judging.judge(watch, each, readers) if judging.may_concern(watch, each.happening) else None
            if event is not None:
                told.append((each.happening.number, (watch, event)))
    return told
