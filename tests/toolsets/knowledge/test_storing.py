from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import anyio
import pytest
from pydantic import ValidationError

from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.core.writing.quotas import Quota, read_usage
from refdesk.errors import ConflictError, InvalidInputError, NotFoundError, QuotaExceededError
from refdesk.model import Link, Reference
from refdesk.toolsets.knowledge import duplicates, models
from refdesk.toolsets.knowledge.models import StoreInput, StoreOutput, get_collection
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk


async def test_a_stored_entry_can_be_read_whole(desk: Desk) -> None:
    stored = await desk.store("Refund limit", "500 EUR.", tags=["Refunds", "EU Policy"], confidence=95)
    assert (stored.embedding_status, stored.created_at, stored.replayed) == ("pending", NOW, False)
    entry = await desk.get(stored.id)
    assert (entry.title, entry.body, entry.author, entry.source) == ("Refund limit", "500 EUR.", "ann", "agent")
    assert (entry.tags, entry.confidence, entry.expires_at) == (["refunds", "eu-policy"], 95, None)
    assert [member.id for member in entry.chain] == [stored.id]


async def test_what_is_left_out_gets_the_defaults(desk: Desk) -> None:
    entry = await desk.get((await desk.store("x")).id)
    assert (entry.tags, entry.confidence, entry.task_refs, entry.is_expired) == ([], 80, [], False)


@pytest.mark.parametrize("kind", ["references", "produced"])
async def test_a_task_reference_can_be_read_back(desk: Desk, kind: str) -> None:
    stored = await desk.store("x", taskRef={"taskId": "T-1", "kind": kind})
    assert [task.model_dump() for task in (await desk.get(stored.id)).task_refs] == [{"task_id": "T-1", "kind": kind}]


async def test_an_entry_is_read_with_its_links_and_what_they_are(desk: Desk) -> None:
    task = {"taskId": "T-1", "kind": "produced"}
    one, two, three = [
        (await desk.store(title, taskRef=task)).id for title, task in (("one", None), ("two", task), ("three", None))
    ]
    for old, new in ((one, two), (two, three)):
        desk.clock.advance(timedelta(seconds=1))
        await desk.supersede(old, new)
    update = Reference("azure-updates", "569743")
    async with desk.base.store.transaction() as transaction:
        await transaction.put_links([Link("acme", update, "affects", Reference("knowledge", two), desk.clock.now())])
        await transaction.put_links([Link("zenith", update, "affects", Reference("knowledge", two), desk.clock.now())])
    links = [(link.kind, link.direction, link.toolset, link.id) for link in (await desk.get(two)).links]
    assert links == [
        ("produced", "in", "task", "T-1"),
        ("supersedes", "out", "knowledge", one),
        ("affects", "in", "azure-updates", "569743"),
        ("supersedes", "in", "knowledge", three),
    ]
    assert (await desk.get(two)).links[1].created_at == NOW + timedelta(seconds=1)
    assert (await desk.get(three)).omitted_links is None


async def test_the_newest_of_very_many_links_are_read(desk: Desk) -> None:
    id, most = (await desk.store("hub")).id, models.MOST_LINKS
    tasks, entry_itself = (
        [Reference("task", f"T-{number:03}") for number in range(most + 7)],
        Reference("knowledge", id),
    )
    async with desk.base.store.transaction() as transaction:
        await transaction.put_links(
            [
                Link("acme", task, "references", entry_itself, NOW + timedelta(seconds=number))
                for number, task in enumerate(tasks)
            ]
        )
    entry = await desk.get(id)
    assert ([link.id for link in entry.links], entry.omitted_links) == ([task.id for task in tasks[7:]], 7)


async def test_an_expiry_must_lie_in_the_future(desk: Desk) -> None:
    for seconds in (0, -1):
        with pytest.raises(InvalidInputError, match="future"):
            await desk.store("x", expiresAt=(NOW + timedelta(seconds=seconds)).isoformat())
    stored = await desk.store("x", expiresAt=(NOW + timedelta(seconds=1)).isoformat())
    assert not (await desk.get(stored.id)).is_expired
    desk.clock.advance(timedelta(seconds=1))
    assert (await desk.get(stored.id)).is_expired


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": "x" * 201},
        {"title": " \n"},
        {"body": ""},
        {"body": "x" * 32_001},
        {"tags": [""]},
        {"tags": ["a/b"]},
        {"tags": [f"t{n}" for n in range(17)]},
        {"tags": "refunds"},
        {"tags": [1]},
        {"confidence": -1},
        {"confidence": 101},
        {"confidence": "high"},
        {"expiresAt": "soon"},
        {"expiresAt": "9999-12-31T23:59:59-14:00"},
        {"expiresAt": "0001-01-01T00:00:00+14:00"},
        {"taskRef": {"taskId": "T", "kind": "owns"}},
        {"taskRef": {"kind": "produced"}},
        {"clientToken": "not-a-uuid"},
        {"surprise": 1},
    ],
)
def test_what_the_contract_does_not_allow_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StoreInput.model_validate({"title": "x", "body": "y", **wrong})


def test_the_largest_of_everything_is_allowed() -> None:
    entry = StoreInput.model_validate(
        {"title": "ü" * 200, "body": "字" * 32_000, "tags": [f"t{n}" for n in range(16)] * 2, "confidence": 100}
    )
    assert len(entry.tags) == 16


async def test_a_repeated_call_with_the_same_token_stores_nothing_twice(desk: Desk) -> None:
    token = str(uuid4())
    first = await desk.store("x", clientToken=token)
    desk.clock.advance(timedelta(seconds=59.9))
    again = await desk.store("x", clientToken=token)
    assert again == first.model_copy(update={"replayed": True})
    assert (await read_usage(desk.base.store, Quota("knowledge_stored"), "acme", "ann")).agent == 1
    desk.clock.advance(timedelta(seconds=0.2))
    assert (await desk.store("x", clientToken=token)).id != first.id


async def test_a_token_used_for_something_else_is_a_conflict_and_stores_nothing(desk: Desk) -> None:
    token = str(uuid4())
    await desk.store("x", clientToken=token)
    with pytest.raises(ConflictError):
        await desk.store("y", clientToken=token)
    assert (await read_usage(desk.base.store, Quota("knowledge_stored"), "acme", "ann")).agent == 1


async def test_a_refused_call_leaves_its_token_unused(desk: Desk) -> None:
    token = str(uuid4())
    full = desk.limit(per_agent=0)
    with pytest.raises(QuotaExceededError):
        await full.store("x", clientToken=token)
    assert not (await desk.store("x", clientToken=token)).replayed


async def test_calls_that_race_with_one_token_make_one_entry(desk: Desk) -> None:
    token, answers = str(uuid4()), list[StoreOutput]()

    async def store() -> None:
        answers.append(await desk.store("x", clientToken=token))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(store)
    assert len({answer.id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1


async def test_over_the_quota_nothing_is_stored_and_the_error_says_how_much_is_used(desk: Desk) -> None:
    limited = desk.limit(per_org=3, per_agent=2)
    await limited.store("one")
    await limited.store("two")
    with pytest.raises(QuotaExceededError) as caught:
        await limited.store("three")
    assert caught.value.details is not None
    assert (caught.value.details["used"], caught.value.details["limit"]) == (2, 2)
    await limited.as_agent("bob").store("three")
    with pytest.raises(QuotaExceededError):
        await limited.as_agent("bob").store("four")
    await limited.as_agent("ann", "other").store("theirs")


async def test_parallel_calls_never_overshoot_the_quota(desk: Desk) -> None:
    limited, refused = desk.limit(per_org=10), list[str]()

    async def store(number: int) -> None:
        try:
            await limited.store(f"entry {number}")
        except QuotaExceededError:
            refused.append(str(number))

    async with anyio.create_task_group() as group:
        for number in range(25):
            group.start_soon(store, number)
    assert len(refused) == 15
    assert len(await desk.base.store.get_digests(get_collection("acme"))) == 10


async def test_another_orgs_entry_looks_like_one_that_does_not_exist(desk: Desk) -> None:
    stored = await desk.store("secret")
    stranger, unknown = desk.as_agent("ann", "other"), str(uuid4())
    with pytest.raises(NotFoundError) as foreign:
        await stranger.get(stored.id)
    with pytest.raises(NotFoundError) as missing:
        await stranger.get(unknown)
    assert foreign.value.message.replace(stored.id, unknown) == missing.value.message
    assert await stranger.search("secret") == []


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Refund limit", "Up to 500 EUR; above that a lead approves."),
        ("REFUND  limit.", "up to “500 EUR”, above that\na lead approves"),
        ("**Refund limit**", "Up to 500 EUR: above that a lead approves!"),
    ],
)
async def test_a_note_stored_again_is_kept_and_told(desk: Desk, title: str, body: str) -> None:
    first = await desk.store("Refund limit", "Up to 500 EUR; above that a lead approves.")
    assert first.duplicate_of is None
    again = await desk.as_agent("bob").store(title, body, tags=["refunds"])
    assert again.duplicate_of == first.id
    assert again.id != first.id
    assert (await desk.store(title, body)).duplicate_of == first.id
    assert len(await desk.search("refund limit")) == 3


@pytest.mark.parametrize(
    ("title", "body"),
    [("Refund limit", "-5"), ("Refund limit", "5.0"), ("Refund", "limit 5 EUR"), ("5", "Refund limit")],
)
async def test_a_note_that_says_something_else_is_no_duplicate(desk: Desk, title: str, body: str) -> None:
    await desk.store("Refund limit", "5")
    assert (await desk.store(title, body)).duplicate_of is None


async def test_what_another_org_wrote_was_withdrawn_or_has_expired_is_no_duplicate(desk: Desk) -> None:
    await desk.as_agent("ann", "zenith").store("Refund limit")
    soon = (desk.clock.now() + timedelta(minutes=1)).isoformat()
    expiring = await desk.store("Refund limit", expiresAt=soon)
    assert expiring.duplicate_of is None
    assert (await desk.store("Refund limit", expiresAt=soon)).duplicate_of == expiring.id
    desk.clock.advance(timedelta(minutes=2))
    fresh = await desk.store("Refund limit")
    assert fresh.duplicate_of is None
    await desk.withdraw(fresh.id)
    third = await desk.store("Refund limit")
    assert third.duplicate_of is None
    assert (await desk.store("Refund limit")).duplicate_of == third.id


async def test_of_notes_stored_at_once_all_but_one_are_told(desk: Desk) -> None:
    told: list[str | None] = []

    async def store() -> None:
        told.append((await desk.store("Refund limit")).duplicate_of)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(store)
    assert told.count(None) == 1
    assert len(set(told)) == 2


async def test_what_was_erased_is_no_duplicate_and_nothing_tells_of_its_wording(desk: Desk) -> None:
    id = (await desk.store("Refund limit")).id
    actor = audit.Actor("acme", "ann", "test")
    await erasing.erase(desk.base.store, desk.clock, actor, erasing.Erasable("acme", entry=id))
    assert await desk.base.store.list_metadata(duplicates.KIND, org="acme") == []
    assert (await desk.store("Refund limit")).duplicate_of is None
