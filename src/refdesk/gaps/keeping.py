"""Keeps gaps: groups questions that had no answer, notices when something answers them, and forgets old ones.

The question is asked again here, where nobody waits, of everything that the asking agent may read. A document that
answers a gap later is noticed once it has been embedded, and judged by the same measure.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import anyio.to_thread

from refdesk import errors
from refdesk.gaps.judging import ANSWERED, Best, judge_answer
from refdesk.gaps.likeness import ALIKE, Wording, compare
from refdesk.gaps.missed import Bounds
from refdesk.gaps.records import (
    Asked,
    Became,
    Gap,
    list_all_gaps,
    list_gaps,
    make_dropped_key,
    make_key,
    read_dropped,
    write_asked,
    write_became,
)
from refdesk.kit.masking import mask
from refdesk.model import SHARED_ORG, Collection, Metadata, State

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.gaps.missed import Missed, Waiting
    from refdesk.model import Document, VectorQuery
    from refdesk.protocols import DocumentVectors, Store, Transaction

logger = logging.getLogger(__name__)

BATCH = 16
MOST_TEXT = 500
"""At most this many characters of a question are kept."""

MOST_WORDINGS = 30
"""Most wordings of one gap that are kept; a further one replaces the one asked longest ago."""

MOST_CACHED = 2000
"""How many questions may be cached with their vectors."""

LOOK_SECONDS = 600.0
"""How often to look for gaps that are too old."""

RETRY_SECONDS = 5.0


Ask = Callable[["Missed"], Awaitable[Best]]


@dataclass(slots=True)
class Keeper:
    """Keeps the gaps of all orgs; `run` it as a background task in a server.

    Attributes:
        base: The knowledge base that keeps them and embeds questions.
        ask: Returns the best match for a question among everything that the asking agent may read.
        list_reach: Returns the toolsets that the asking agent may read.
        working: Entered around each batch; lets it begin only when nobody waits for anything else.
        give_way: Awaited before each question that is asked again, to let calls that came meanwhile go first.
        on_change: Called when the gaps have changed.
    """

    base: KnowledgeBase
    waiting: Waiting
    ask: Ask
    list_reach: Callable[[Missed], Sequence[str]]
    bounds: Bounds = field(default_factory=Bounds)
    working: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    give_way: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    on_change: Callable[[], None] = lambda: None
    _cache: dict[str, Wording] = field(default_factory=dict[str, Wording])

    async def run(self) -> None:
        """Work until cancelled. Failures are logged; questions that could not be kept are counted."""
        while True:
            try:
                await self.forget_old()
                until = anyio.current_time() + LOOK_SECONDS
                while (left := until - anyio.current_time()) > 0:
                    async with self.working():
                        worked = await self.run_once()
                    if not worked:
                        await self.waiting.doorbell.wait(left)
            except errors.RefdeskError as error:
                logger.warning("gaps paused", extra={"reason": error.message})
                await anyio.sleep(RETRY_SECONDS)

    async def run_until_done(self) -> int:
        """Group all waiting questions; return how many there were."""
        total = 0
        while worked := await self.run_once():
            total += worked
        return total

    async def run_once(self) -> int:
        """Group a batch of waiting questions; return how many there were."""
        missed = self.waiting.take(BATCH)
        by_org: dict[str, list[Missed]] = {}
        for each in missed:
            by_org.setdefault(each.principal.org, []).append(each)
        for org in dict.fromkeys([*by_org, *self.waiting.dropped]):
            of_org = by_org.get(org, [])
            try:
                await self._keep(org, of_org)
            except errors.RefdeskError:
                for each in of_org:
                    self.waiting.drop(each)
                raise
        return len(missed)

    async def _keep(self, org: str, missed: Sequence[Missed]) -> None:
        store, dropped = self.base.store, self.waiting.dropped[org]
        mark = await store.get_change_mark()
        looked = [(each, await self._look_again(each)) for each in missed]
        asked = [one for _, one in looked if one is not None]
        if asked or dropped:
            known = [one for gap in await list_gaps(store, org) for one in gap.asked]
            wordings = await self._read_wordings([*asked, *known])
            async with store.transaction() as transaction:
                gaps = {gap.id: gap for gap in await list_gaps(transaction, org)}
                placed = [await self._add(transaction, gaps, one, wordings) for one in asked]
                await _count_dropped(transaction, org, dropped)
                await self._bound(transaction, gaps.values())
            if await store.get_change_mark() != mark:
                # Documents that came meanwhile were compared only with the gaps that existed before.
                await self._compare_again([each for each, one in looked if one is not None], placed)
            self.on_change()
        del self.waiting.dropped[org]

    async def _compare_again(self, missed: Sequence[Missed], placed: Sequence[Asked]) -> None:
        for each, one in zip(missed, placed, strict=True):
            best = await self.ask(each)
            toolset, _, id = best.item.partition("/")
            if best.strength >= ANSWERED and id:
                await self._close(one.org, toolset, {one.gap: id})

    async def _look_again(self, missed: Missed) -> Asked | None:
        """Return a question as it is kept, or `None` if something that the asking agent may read answers it."""
        await self.give_way()
        best = await self.ask(missed)
        text = " ".join((await anyio.to_thread.run_sync(mask, missed.text[: 4 * MOST_TEXT])).split())[:MOST_TEXT]
        if best.strength >= ANSWERED or not text:
            return None
        return Asked(
            org=missed.principal.org,
            gap="",
            agent=missed.principal.agent,
            text=text,
            toolsets=tuple(sorted(missed.toolsets)),
            reach=tuple(sorted(self.list_reach(missed))),
            count=missed.count,
            first=missed.at,
            last=missed.at,
            strength=round(best.strength, 3),
            best=best.item,
        )

    async def _add(
        self, transaction: Transaction, gaps: dict[str, Gap], asked: Asked, wordings: Mapping[str, Wording]
    ) -> Asked:
        """Add a question to the gap that asks the same, or to a new one, and return it as stored."""
        gap = find_like(gaps.values(), asked.text, wordings) or Gap(asked.org, self.base.identifiers.new(), ())
        placed = replace(asked, gap=gap.id)
        same = next((one for one in gap.asked if one.key == placed.key), None)
        if same is not None:
            placed = same.add(placed)
        elif len(gap.asked) >= MOST_WORDINGS:
            oldest = min(gap.asked, key=lambda one: one.last)
            gap = gap.leave(one for one in gap.asked if one is not oldest)
            await transaction.remove_metadata([oldest.key])
        others = [one for one in gap.asked if one is not same]
        await transaction.put_metadata([write_asked(placed, self.bounds.kept)])
        if gap.became.state == "answered" and gap.became.answer.partition("/")[0] in asked.reach:
            # The asking agent may read the answer recorded for this gap, and it did not answer the question.
            await transaction.remove_metadata([make_key(gap.org, gap.id)])
            gap = replace(gap, became=Became())
        gaps[gap.id] = gap.leave([*others, placed])
        return placed

    async def _bound(self, transaction: Transaction, gaps: Iterable[Gap]) -> None:
        """Forget the gaps beyond the number that is kept: those that were last asked longest ago."""
        newest = sorted(gaps, key=lambda gap: max(one.last for one in gap.asked), reverse=True)
        for gap in newest[self.bounds.most :]:
            await transaction.remove_metadata([*(one.key for one in gap.asked), make_key(gap.org, gap.id)])

    async def forget_old(self) -> int:
        """Forget wordings that nobody has asked for too long; return how many there were."""
        store, now = self.base.store, self.base.clock.now()
        before = await list_all_gaps(store)
        gone = [(gap, one) for gap in before for one in gap.asked if one.last + self.bounds.kept <= now]
        for org in sorted({gap.org for gap, _ in gone}):
            async with store.transaction() as transaction:
                await transaction.remove_metadata([one.key for gap, one in gone if gap.org == org])
                left = {gap.id for gap in await list_gaps(transaction, org)}
                ended = {gap.id for gap, _ in gone if gap.org == org} - left
                await transaction.remove_metadata([make_key(org, id) for id in sorted(ended)])
        if gone:
            self.on_change()
        return len(gone)

    async def take_new(self, store: Store, collection: Collection, documents: Sequence[Document]) -> None:
        """Close the gaps that these documents, which have just been embedded, answer."""
        current = [each for each in documents if each.state is State.CURRENT]
        if not current:
            return
        is_shared = collection.org == SHARED_ORG
        gaps = await (list_all_gaps(self.base.store) if is_shared else list_gaps(self.base.store, collection.org))
        asking = [gap for gap in gaps if gap.became.state == "open" and collection.toolset in _list_reach(gap)]
        if not asking:
            return
        vectors = await store.get_vectors(collection, [each.id for each in current])
        wordings = await self._read_wordings([one for gap in asking for one in gap.asked])
        found = await anyio.to_thread.run_sync(find_answers, asking, current, vectors, wordings)
        for org in sorted({gap.org for gap, _ in found}):
            await self._close(org, collection.toolset, {gap.id: each.id for gap, each in found if gap.org == org})

    async def _close(self, org: str, toolset: str, answers: Mapping[str, str]) -> None:
        async with self.base.store.transaction() as transaction:
            gaps = {gap.id: gap for gap in await list_gaps(transaction, org)}
            now = self.base.clock.now()
            closed = [id for id in answers if id in gaps and gaps[id].became.state == "open"]
            became = [Became("answered", f"{toolset}/{answers[id]}", at=now) for id in closed]
            await transaction.put_metadata(
                [write_became(org, id, each) for id, each in zip(closed, became, strict=True)]
            )
        if closed:
            self.on_change()

    async def _read_wordings(self, asked: Sequence[Asked]) -> dict[str, Wording]:
        """Return the wordings of questions, by text, with vectors if there is a model."""
        read: dict[str, Wording] = {}
        for one in asked:
            known = self._cache.get(one.text)
            if known is None or known.vector is None:
                known = Wording(one.text, await self._embed(one.text, one.org))
            read[one.text] = known
        self._cache = read if len(read) > len(self._cache) or len(self._cache) > MOST_CACHED else self._cache | read
        return read

    async def _embed(self, text: str, org: str) -> VectorQuery | None:
        return await self.base.embed_question(text, org)


def find_like(gaps: Iterable[Gap], text: str, wordings: Mapping[str, Wording]) -> Gap | None:
    """Return the gap that a question belongs to: that of the most similar wording, if it is similar enough."""
    mine = wordings.get(text) or Wording(text)
    likeness = [(compare(mine, wordings.get(one.text) or Wording(one.text)), gap) for gap in gaps for one in gap.asked]
    best, gap = max(likeness, key=lambda pair: pair[0], default=(0.0, None))
    return gap if best >= ALIKE else None


def find_answers(
    gaps: Sequence[Gap],
    documents: Sequence[Document],
    vectors: Sequence[DocumentVectors],
    wordings: Mapping[str, Wording],
) -> list[tuple[Gap, Document]]:
    """Return the gaps that one of the documents answers, in any of their wordings, each with the best document."""
    found: list[tuple[Gap, Document]] = []
    for gap in gaps:
        judged = [
            (judge_answer(wordings[one.text], document, of), -place, document)
            for one in gap.asked
            if documents[0].collection.toolset in one.reach
            for place, (document, of) in enumerate(zip(documents, vectors, strict=True))
        ]
        strength, _, document = max(judged, key=lambda each: each[:2])
        if strength >= ANSWERED:
            found.append((gap, document))
    return found


def _list_reach(gap: Gap) -> set[str]:
    return {toolset for one in gap.asked for toolset in one.reach}


async def _count_dropped(transaction: Transaction, org: str, dropped: int) -> None:
    if not dropped:
        return
    key = make_dropped_key(org)
    count = read_dropped(await transaction.get_metadata(key))
    await transaction.put_metadata([Metadata(key, {"count": count + dropped})])
