from __future__ import annotations

from datetime import timedelta

import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.keys import KIND, KeyRing
from refdesk.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from refdesk.model import Principal
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOW

SCOPES: dict[str, str] = dict.fromkeys(("knowledge:read", "updates:read", "admin"), "")


def make_ring() -> tuple[FixedClock, KeyRing]:
    clock = FixedClock(NOW)
    return clock, KeyRing(MemoryStore(clock), clock, SCOPES)


async def test_a_key_tells_who_holds_it() -> None:
    _, ring = make_ring()
    _, secret = await ring.create(org="acme", agent="ann", scopes=["knowledge:read", "updates:read"])
    assert await ring.identify(secret) == Principal("acme", "ann", frozenset({"knowledge:read", "updates:read"}))


async def test_the_secret_is_kept_nowhere() -> None:
    _, ring = make_ring()
    _, secret = await ring.create(org="acme", agent="ann", scopes=["admin"])
    assert secret.removeprefix("refdesk_") not in repr(await ring.store.list_metadata(KIND))
    assert len(secret) >= 43


async def test_unknown_expired_and_revoked_keys_get_the_same_answer() -> None:
    clock, ring = make_ring()
    _, expired = await ring.create(org="acme", agent="a", scopes=["admin"], expires_at=NOW + timedelta(hours=1))
    key, revoked = await ring.create(org="acme", agent="b", scopes=["admin"])
    await ring.identify(expired)
    clock.advance(timedelta(hours=1))
    assert (await ring.revoke(key.id)).revoked_at == clock.now()
    messages: set[str] = set()
    for secret in (expired, revoked, "refdesk_guess", "", "\ud800"):
        with pytest.raises(UnauthenticatedError) as caught:
            await ring.identify(secret)
        messages.add(caught.value.message)
    assert len(messages) == 1


async def test_keys_are_listed_by_org_and_revoking_twice_changes_nothing() -> None:
    clock, ring = make_ring()
    first, _ = await ring.create(org="acme", agent="ann", scopes=["admin"])
    clock.advance(timedelta(seconds=1))
    second, _ = await ring.create(org="other", agent="ann", scopes=["admin"])
    assert [key.id for key in await ring.list()] == [first.id, second.id]
    assert [key.id for key in await ring.list("other")] == [second.id]
    revoked = await ring.revoke(first.id)
    clock.advance(timedelta(seconds=1))
    assert await ring.revoke(first.id) == revoked
    with pytest.raises(NotFoundError):
        await ring.revoke("nobody")


@pytest.mark.parametrize(
    "wrong",
    [
        {"org": "Acme"},
        {"org": "*"},
        {"org": ""},
        {"agent": ""},
        {"agent": "a\nb"},
        {"scopes": []},
        {"scopes": ["everything"]},
        {"expires_at": NOW},
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(wrong: dict[str, object]) -> None:
    _, ring = make_ring()
    with pytest.raises(InvalidInputError):
        await ring.create(**{"org": "acme", "agent": "ann", "scopes": ["admin"], **wrong})  # pyright: ignore[reportArgumentType]
    assert await ring.list() == []


async def test_a_rotated_key_goes_on_for_the_overlap_beside_its_successor() -> None:
    clock, ring = make_ring()
    old, before = await ring.create(org="acme", agent="ann", scopes=["knowledge:read"])
    new, after, ending = await ring.rotate(old.id, overlap=timedelta(hours=24))
    assert (new.org, new.agent, new.scopes) == (old.org, old.agent, old.scopes)
    assert ending.expires_at == clock.now() + timedelta(hours=24)
    assert {await ring.identify(before), await ring.identify(after)} == {new.principal}
    clock.advance(timedelta(hours=24))
    assert await ring.identify(after) == new.principal
    with pytest.raises(UnauthenticatedError):
        await ring.find(before)


async def test_rotating_lengthens_no_life_and_revives_no_key() -> None:
    clock, ring = make_ring()
    soon = clock.now() + timedelta(hours=1)
    short, _ = await ring.create(org="acme", agent="ann", scopes=["admin"], expires_at=soon)
    _, _, ending = await ring.rotate(short.id, overlap=timedelta(hours=24))
    assert ending.expires_at == soon
    revoked = await ring.revoke(short.id)
    with pytest.raises(InvalidInputError):
        await ring.rotate(revoked.id, overlap=timedelta(0))
    with pytest.raises(NotFoundError):
        await ring.rotate("nobody", overlap=timedelta(0))
