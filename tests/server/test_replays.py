from __future__ import annotations

import anyio
import pytest
from mcp.server.streamable_http import GET_STREAM_KEY, EventMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCResponse

from refdesk.server.replays import Replays


def note(text: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"text": text})


def answer(id: str) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=id, result={})


async def resume(replays: Replays, event: str) -> list[JSONRPCMessage]:
    """Return what follows an event on a stream that is over."""
    sent: list[JSONRPCMessage] = []

    async def send(event: EventMessage) -> None:
        sent.append(event.message)

    with anyio.fail_after(120):
        assert await replays.replay_events_after(event, send) is None
    return sent


async def test_a_stream_is_resumed_after_each_of_its_events_and_no_other_stream_comes_in() -> None:
    replays = Replays()
    one, other = await replays.store_event("1", None), await replays.store_event("2", None)
    first, _ = await replays.store_event("1", note("a")), await replays.store_event("2", note("other"))
    second, last = await replays.store_event("1", note("b")), await replays.store_event("1", answer("1"))
    assert len({one, other, first, second, last}) == 5
    assert await resume(replays, one) == [note("a"), note("b"), answer("1")]
    assert await resume(replays, first) == [note("b"), answer("1")]
    assert await resume(replays, second) == [answer("1")]
    assert not replays.can_resume(last)


async def test_what_follows_later_is_sent_when_it_comes_and_the_answer_ends_it() -> None:
    replays = Replays()
    begun = await replays.store_event("1", None)
    sent, ids, came = list[str](), list[str](), anyio.Event()

    async def send(event: EventMessage) -> None:
        sent.append(str(event.event_id))
        came.set()

    async with anyio.create_task_group() as group:
        group.start_soon(replays.replay_events_after, begun, send)
        await anyio.wait_all_tasks_blocked()
        ids.append(await replays.store_event("1", note("a")))
        await came.wait()
        ids += [await replays.store_event("1", note("b")), await replays.store_event("1", answer("1"))]
    assert sent == ids


async def test_a_request_of_the_same_id_is_another_stream() -> None:
    replays = Replays()
    first = await replays.store_event("1", None)
    await replays.store_event("1", answer("1"))
    second = await replays.store_event("1", None)
    await replays.store_event("1", note("of the second"))
    await replays.store_event("1", answer("1"))
    assert await resume(replays, first) == [answer("1")]
    assert await resume(replays, second) == [note("of the second"), answer("1")]


async def test_what_is_sent_unasked_is_resumed_until_the_session_ends() -> None:
    replays = Replays()
    first = await replays.store_event(GET_STREAM_KEY, note("a"))
    await replays.store_event(GET_STREAM_KEY, note("b"))
    assert replays.can_resume(first)
    replays.close()
    assert await resume(replays, first) == [note("b")]


async def test_answers_in_one_body_are_not_kept() -> None:
    replays = Replays(most_bytes=1)
    assert not replays.can_resume(await replays.store_event("1", answer("1")))
    assert replays._bytes == 0  # pyright: ignore[reportPrivateUsage]


async def test_what_is_kept_stays_within_bounds_and_the_newest_stays() -> None:
    replays = Replays(most_bytes=2_000, most_streams=8)
    begun = await replays.store_event("1", None)
    for number in range(1_000):
        await replays.store_event("1", note(f"{number:04}"))
    assert replays._bytes <= 2_000  # pyright: ignore[reportPrivateUsage]
    await replays.store_event("1", answer("1"))
    assert (await resume(replays, begun))[-2:] == [note("0999"), answer("1")]
    ids = [await replays.store_event(str(number), None) for number in range(100)]
    assert [replays.can_resume(id) for id in ids] == [False] * 92 + [True] * 8


@pytest.mark.parametrize("event", ["", "7", "1-", "99-1", "1-1-1", "-1-1", "x", "1" * 400, "٣-٣"])
async def test_what_is_no_event_is_not_resumed(event: str) -> None:
    replays = Replays()
    await replays.store_event("1", None)
    assert not replays.can_resume(event)
    assert await resume(replays, event) == []
