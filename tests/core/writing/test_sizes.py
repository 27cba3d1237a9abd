"""How many bytes an org keeps: counted as it is, whatever is written, and never more than the limit."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.writing import sizes
from refdesk.core.writing.tombstones import make_tombstone
from refdesk.errors import QuotaExceededError
from refdesk.model import SHARED_ORG, Collection, Document, Revision, State
from refdesk.protocols import Store
from tests.stores.conftest import ENGINE_NAMES, ENGINES
from tests.stores.samples import NOW, make_document, put, revise

ORGS = ("acme", "zenith", SHARED_ORG)
TEXTS = ("", "Words.", "Ünïcödé 漢字 🙂", "x" * 500)


@pytest.fixture(params=ENGINE_NAMES)
async def raw(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    async with ENGINES[request.param](tmp_path, FixedClock(NOW)) as store:
        yield store


def in_org(org: str, id: str, body: str = "", title: str = "", **changes: object) -> Document:
    return make_document(id, body, title, collection=Collection(org, "knowledge"), **changes)


def count_by_hand(histories: dict[tuple[str, str], list[Document]]) -> dict[str, int]:
    """What every org keeps, by the definition and nothing of the code: texts that differ from the last, and records."""
    kept = dict.fromkeys((org for org, _ in histories), 0)
    for (org, _), history in histories.items():
        last = None
        for each in history:
            if last is None or (last.title, last.body) != (each.title, each.body):
                kept[org] += len((each.title + each.body).encode())
            if each.data:
                kept[org] += len(json.dumps(each.data, ensure_ascii=False, separators=(",", ":")).encode())
            last = each
    return {org: size for org, size in kept.items() if org != SHARED_ORG}


async def test_whatever_is_written_the_count_is_what_is_kept(raw: Store) -> None:
    store, chance = await sizes.open_counted(raw, 10**9), random.Random(7)
    histories, counted = dict[tuple[str, str], list[Document]](), dict[str, int]()
    for number in range(60):
        await take_step(store, chance, histories, number)
        counted = await sizes.read_sizes(raw)
        assert {org: size for org, size in counted.items() if size} == {
            org: size for org, size in count_by_hand(histories).items() if size
        }
    assert await sizes.measure(raw) == {org: size for org, size in count_by_hand(histories).items() if size}
    assert sum(counted.values()) > 1000


async def take_step(
    store: Store, chance: random.Random, histories: dict[tuple[str, str], list[Document]], number: int
) -> None:
    living = [place for place, history in histories.items() if history]
    kind = chance.choice(["new", "new", "change", "mark", "load", "erase", "undo"]) if living else "new"
    org, place = chance.choice(ORGS), chance.choice(living) if living else ("", "")
    data = {"note": chance.choice(TEXTS)} if chance.random() < 0.5 else {}
    if kind in ("new", "load", "undo"):
        first = in_org(org, f"d{number}", chance.choice(TEXTS), title=chance.choice(TEXTS), data=data)
        history = [first, revise(first, body="Later.")] if kind == "load" else [first]
        await write_new(store, kind, history, histories)
    elif kind == "erase":
        async with store.transaction() as transaction:
            await transaction.erase_documents([make_tombstone(histories[place][-1], NOW, ("note",))])
        histories[place] = []
    else:
        changes: dict[str, object] = {"body": chance.choice(TEXTS)} if kind == "change" else {"state": State.SUPERSEDED}
        histories[place].append(revise(histories[place][-1], **changes, data=data))
        await put(store, histories[place][-1])


async def write_new(
    store: Store, kind: str, history: list[Document], histories: dict[tuple[str, str], list[Document]]
) -> None:
    place = history[0].collection.org, history[0].id
    if kind == "undo":
        with pytest.raises(RuntimeError):
            await put_and_fail(store, history)
        return
    async with store.transaction() as transaction:
        if kind == "load":
            await transaction.put_revisions([Revision(each, NOW) for each in history])
        else:
            await transaction.put_documents(history)
    histories[place] = history


async def put_and_fail(store: Store, documents: list[Document]) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        raise RuntimeError


async def test_what_fits_to_the_byte_is_kept_and_a_byte_more_is_not(raw: Store) -> None:
    store = await sizes.open_counted(raw, 100)
    await put(store, in_org("acme", "a", "ä" * 45, title="0123456789"))
    with pytest.raises(QuotaExceededError, match="REFDESK_MAX_ORG_BYTES") as caught:
        await put(store, in_org("acme", "b", "x"))
    assert caught.value.details == {"quota": "org_bytes", "scope": "org", "used": 100, "limit": 100}
    assert await raw.get_documents(Collection("acme", "knowledge"), ["b"]) == [None]
    await put(store, in_org("zenith", "b", "x" * 100))
    await put(store, in_org(SHARED_ORG, "c", "x" * 1000))


async def test_marks_are_counted_and_never_refused_and_erasing_makes_room(raw: Store) -> None:
    store, first = await sizes.open_counted(raw, 100), in_org("acme", "a", "x" * 100)
    await put(store, first)
    marked = revise(first, state=State.SUPERSEDED, data={"by": "b"})
    await put(store, marked)
    assert await sizes.read_sizes(raw) == {"acme": 110}
    for larger in (revise(marked, body="y"), revise(marked, data={"playbook": "z" * 300})):
        with pytest.raises(QuotaExceededError):
            await put(store, larger)
    async with store.transaction() as transaction:
        await transaction.erase_documents([make_tombstone(marked, NOW)])
    await put(store, in_org("acme", "b", "x" * 100))


async def test_a_store_that_was_filled_before_is_measured_and_then_always_counted(raw: Store) -> None:
    assert await sizes.open_counted(raw, None) is raw
    first = in_org("acme", "a", "x" * 60)
    await put(raw, first, in_org("zenith", "b", "x" * 10))
    await put(raw, revise(first, body="y" * 30))
    limited = await sizes.open_counted(raw, 100)
    assert await sizes.read_sizes(raw) == {"acme": 90, "zenith": 10}
    with pytest.raises(QuotaExceededError):
        await put(limited, in_org("acme", "c", "x" * 11))
    await put(await sizes.open_counted(raw, None), in_org("acme", "c", "x" * 11))
    assert (await sizes.read_sizes(raw))["acme"] == 101


async def test_writers_at_once_never_overshoot(raw: Store) -> None:
    store, refused = await sizes.open_counted(raw, 100), list[str]()

    async def write(id: str) -> None:
        try:
            await put(store, in_org("acme", id, "x" * 10))
        except QuotaExceededError:
            refused.append(id)

    async with anyio.create_task_group() as group:
        for number in range(15):
            group.start_soon(write, f"d{number}")
    assert await sizes.read_sizes(raw) == await sizes.measure(raw) == {"acme": 100}
    assert len(refused) == 5
