from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from starlette.types import Message, Receive, Scope, Send

from refdesk.server.limits.sessions import CREDENTIAL, Credential, Session, Sessions
from refdesk.server.revocation import Revocation


@dataclass
class Key:
    """A credential, and whether it opens anything."""

    name: str
    is_valid: bool = True
    looked_at: int = 0

    async def opens(self) -> bool:
        self.looked_at += 1
        return self.is_valid

    @property
    def scope(self) -> Scope:
        return {"type": "http", CREDENTIAL: Credential(self.name, self.opens)}


@dataclass
class Stream:
    """An answer that goes on for ever, and what its client got of it."""

    sent: list[Message] = field(default_factory=list[Message])
    has_begun: anyio.Event = field(default_factory=anyio.Event)
    is_over: anyio.Event = field(default_factory=anyio.Event)

    async def open(self, revocation: Revocation, key: Key) -> None:
        await revocation.serve(self.answer, key.scope, self.receive, self.send)
        self.is_over.set()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        self.has_begun.set()
        await anyio.sleep_forever()

    async def receive(self) -> Message:
        raise NotImplementedError

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def test_what_is_open_ends_with_its_key_and_in_order() -> None:
    revocation = Revocation(Sessions(10), 1.0)
    bad, good = (Key("bad"), Stream()), (Key("good"), Stream())
    async with anyio.create_task_group() as group:
        for key, stream in (bad, good):
            group.start_soon(stream.open, revocation, key)
            await stream.has_begun.wait()
        bad[0].is_valid = False
        await revocation.check()
        await bad[1].is_over.wait()
        assert bad[1].sent[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]
        assert not good[1].is_over.is_set()
        group.cancel_scope.cancel()


async def test_a_store_that_does_not_answer_ends_nothing_and_holds_up_no_other_look() -> None:
    class Silent(Key):
        async def opens(self) -> bool:
            await anyio.sleep_forever()
            return False

    revocation = Revocation(Sessions(10), 1.0, patience=0.01)
    unknown, bad = (Silent("silent"), Stream()), (Key("bad", is_valid=False), Stream())
    async with anyio.create_task_group() as group:
        for key, stream in (unknown, bad):
            group.start_soon(stream.open, revocation, key)
            await stream.has_begun.wait()
        await revocation.check()
        await bad[1].is_over.wait()
        assert not unknown[1].is_over.is_set()
        group.cancel_scope.cancel()


async def test_the_next_token_of_the_same_caller_keeps_what_the_last_one_opened() -> None:
    revocation = Revocation(Sessions(10), 1.0)
    first, second, stream, later = Key("ann"), Key("ann"), Stream(), Stream()
    async with anyio.create_task_group() as group:
        group.start_soon(stream.open, revocation, first)
        await stream.has_begun.wait()
        group.start_soon(later.open, revocation, second)
        await later.has_begun.wait()
        first.is_valid = False
        await revocation.check()
        await anyio.lowlevel.checkpoint()
        assert not stream.is_over.is_set()
        second.is_valid = False
        await revocation.check()
        await stream.is_over.wait()
        await later.is_over.wait()


async def test_one_look_is_enough_for_all_that_a_key_opened() -> None:
    sessions, key, ended = Sessions(100), Key("ann"), list[int]()
    revocation = Revocation(sessions, 1.0)
    for number in range(3):

        async def end(number: int = number) -> None:
            ended.append(number)

        session = Session(("acme", "ann"), end, credential=Credential(key.name, key.opens))
        await sessions.add(session)
        sessions.name(session, f"session-{number}")
    await revocation.check()
    assert (key.looked_at, ended, len(sessions)) == (1, [], 3)
    key.is_valid = False
    await revocation.check()
    assert (key.looked_at, ended, len(sessions)) == (2, [0, 1, 2], 0)
    await revocation.check()
    assert key.looked_at == 2


async def test_a_session_of_a_token_goes_on_with_the_next_one() -> None:
    sessions, token = Sessions(10), Key("ann", is_valid=False)
    revocation = Revocation(sessions, 1.0)

    async def end() -> None:
        raise NotImplementedError

    session = Session(("acme", "ann"), end, credential=Credential(token.name, token.opens, is_key=False))
    await sessions.add(session)
    sessions.name(session, "id")
    await revocation.check()
    assert (token.looked_at, [*sessions]) == (1, [session])


async def test_a_session_that_is_just_opening_ends_once_it_is_open() -> None:
    sessions, key, ended = Sessions(10), Key("ann", is_valid=False), list[str]()
    revocation = Revocation(sessions, 1.0)

    async def end() -> None:
        ended.append("ended")

    session = Session(("acme", "ann"), end, credential=Credential(key.name, key.opens))
    await sessions.add(session)
    await revocation.check()
    assert ended == []
    sessions.name(session, "id")
    await revocation.check()
    assert ended == ["ended"]
