"""Faults that are planted in a store that works, each as one would slip in; the proofs must see every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import idempotency, quotas, supersession
from refdesk.model import (
    And,
    Collection,
    Document,
    Filter,
    FindRequest,
    Found,
    HasAll,
    HasAny,
    Metadata,
    MetadataKey,
    Not,
    Or,
    State,
)
from refdesk.protocols import Clock, Store, Transaction
from tests.reliability.delegates import DelegatingStore, DelegatingTransaction

INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Fault:
    name: str
    wrap_store: Callable[[Store], Store] = lambda store: store
    wrap_search: Callable[[KnowledgeBase], KnowledgeBase] = lambda base: base


class WithoutTenants(DelegatingStore):
    """Looks ids up whatever the org."""

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        found = await super().get_documents(collection, ids)
        for statistics in await self.get_statistics():
            others = await super().get_documents(statistics.collection, ids)
            found = [mine or other for mine, other in zip(found, others, strict=True)]
        return found


class Faulty(DelegatingStore):
    """Wraps each transaction in one that is at fault."""

    def __init__(self, inner: Store, wrapper: Callable[[Transaction], Transaction]) -> None:
        super().__init__(inner)
        self._wrapper = wrapper

    def wrap(self, transaction: Transaction) -> Transaction:
        return self._wrapper(transaction)


def within(wrapper: Callable[[Transaction], Transaction]) -> Callable[[Store], Store]:
    return lambda store: Faulty(store, wrapper)


class WithLongTokens(DelegatingTransaction):
    """Lets a token hold at its last instant too: `<` for `<=`."""

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        record = await super().get_metadata(key)
        if record is None or record.due_at is None or key.kind != idempotency.KIND:
            return record
        return replace(record, due_at=record.due_at + INSTANT)


class WithShortTokens(DelegatingTransaction):
    """Lets a token run out an instant early."""

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await super().put_metadata(
            [
                replace(each, due_at=each.due_at - INSTANT)
                if each.key.kind == idempotency.KIND and each.due_at
                else each
                for each in records
            ]
        )


class WithOrgWideTokens(DelegatingTransaction):
    """Keeps one agent's tokens where every agent's are."""

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        return await super().get_metadata(_without_agent(key))

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await super().put_metadata([replace(each, key=_without_agent(each.key)) for each in records])


def _without_agent(key: MetadataKey) -> MetadataKey:
    if key.kind != idempotency.KIND:
        return key
    operation, _, token = key.name.split(":")
    return replace(key, name=f"{operation}::{token}")


class WithForgottenTokens(DelegatingStore):
    """Keeps tokens in the process only: a restart, or another process, does not know them."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._tokens: dict[MetadataKey, Metadata] = {}

    def wrap(self, transaction: Transaction) -> Transaction:
        return _TokensApart(transaction, self._tokens)


class _TokensApart(DelegatingTransaction):
    def __init__(self, inner: Transaction, tokens: dict[MetadataKey, Metadata]) -> None:
        super().__init__(inner)
        self._tokens = tokens

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        return self._tokens.get(key) if key.kind == idempotency.KIND else await super().get_metadata(key)

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        self._tokens.update({each.key: each for each in records if each.key.kind == idempotency.KIND})
        await super().put_metadata([each for each in records if each.key.kind != idempotency.KIND])


class WithShortSight(DelegatingTransaction):
    """Sees only the direct successor where the head of the chain is asked for: longer circles can close."""

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        return [document and _forget_head(document) for document in await super().get_documents(collection, ids)]

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        found = await super().get_many_metadata(keys)
        return [None if key.kind == supersession.KIND else each for key, each in zip(keys, found, strict=True)]


def _forget_head(document: Document) -> Document:
    successor = supersession.get_successor_id(document)
    return replace(document, data={**document.data, supersession.HEAD: successor}) if successor else document


class WithStaleHeads(DelegatingTransaction):
    """Joins two entries, and forgets to tell longer chains who heads them now."""

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await super().put_metadata([each for each in records if not _is_of_a_longer_chain(each)])


def _is_of_a_longer_chain(record: Metadata) -> bool:
    return record.key.kind == supersession.KIND and int(str(record.value.get("size", 0))) > 2


class WithLooseQuotas(DelegatingTransaction):
    """Lets one more in than the quota says."""

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        return [
            record
            if record is None or record.key.kind != quotas.KIND
            else replace(record, value={"used": max(0, int(str(record.value["used"])) - 1)})
            for record in await super().get_many_metadata(keys)
        ]


class WithAnyTag(DelegatingStore):
    """Takes one of the tags for all of them."""

    async def find(self, request: FindRequest) -> Found:
        return await super().find(replace(request, where=request.where and _loosen(request.where)))


def _loosen(condition: Filter) -> Filter:
    match condition:
        case HasAll(facet, values):
            return HasAny(facet, values)
        case And(conditions):
            return And(tuple(map(_loosen, conditions)))
        case Or(conditions):
            return Or(tuple(map(_loosen, conditions)))
        case Not(inner):
            return Not(_loosen(inner))
        case _:
            return condition


class WithStaleSearch(DelegatingStore):
    """Never finds what was written through another opening after this one's first search."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._known: dict[Collection, set[str]] = {}

    def wrap(self, transaction: Transaction) -> Transaction:
        return _Noting(transaction, self._known)

    async def find(self, request: FindRequest) -> Found:
        found = await super().find(request)
        known = self._known.setdefault(request.collection, set(await self.get_digests(request.collection)))
        return replace(found, candidates=tuple(each for each in found.candidates if each.id in known))


class _Noting(DelegatingTransaction):
    def __init__(self, inner: Transaction, known: dict[Collection, set[str]]) -> None:
        super().__init__(inner)
        self._known = known

    async def put_documents(self, documents: Sequence[Document]) -> None:
        await super().put_documents(documents)
        for document in documents:
            if document.collection in self._known:
                self._known[document.collection].add(document.id)


class WithoutOldWording(DelegatingStore):
    """Does not look at superseded entries, so that their words no longer lead to what replaced them."""

    async def find(self, request: FindRequest) -> Found:
        found = await super().find(request)
        ids = [each.id for each in found.candidates]
        documents = await self.get_documents(request.collection, ids)
        current = {each.id for each in documents if each is not None and each.state is State.CURRENT}
        return replace(found, candidates=tuple(each for each in found.candidates if each.id in current))


@dataclass(frozen=True)
class Late:
    """A clock that is an instant behind."""

    clock: Clock

    def now(self) -> datetime:
        return self.clock.now() - INSTANT


FAULTS = (
    Fault("the org is not checked when an id is looked up", WithoutTenants),
    Fault("a token holds an instant too long", within(WithLongTokens)),
    Fault("a token runs out an instant early", within(WithShortTokens)),
    Fault("a token belongs to the org, not to the agent", within(WithOrgWideTokens)),
    Fault("tokens live in one process", WithForgottenTokens),
    Fault("only direct circles are seen", within(WithShortSight)),
    Fault("heads of longer chains are not kept", within(WithStaleHeads)),
    Fault("the quota lets one too many in", within(WithLooseQuotas)),
    Fault("one of the tags is taken for all", WithAnyTag),
    Fault("a search misses what another process wrote", WithStaleSearch),
    Fault("the old wording leads nowhere", WithoutOldWording),
    Fault("an entry expires an instant late in search", wrap_search=lambda base: replace(base, clock=Late(base.clock))),
)
