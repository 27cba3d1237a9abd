"""News sent to webhooks: signed, at least once, under an id by which receivers see them once, and nowhere private."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from refdesk.app import Desk
from refdesk.core.clock import FixedClock
from refdesk.errors import InvalidInputError
from refdesk.factories.watching import choose_deliverer, choose_watcher
from refdesk.watching import queueing, reaching
from refdesk.watching.delivering import Deliverer
from refdesk.watching.reaching import Reach, UnreachableError, is_public, read_address, read_reach
from refdesk.watching.signing import make_secret, sign
from tests.server.test_on_record import call_as, open_own
from tests.toolsets.watches.test_operations import EVERYTHING, list_news, look, store
from tests.watching.conftest import Receiver


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path, embedder="hashing", webhook_private=("127.0.0.1",)) as opened:
        yield opened


async def make_deliverer(desk: Desk, after: timedelta = timedelta(0)) -> Deliverer:
    """Return what sends as if some time had passed."""
    deliverer = choose_deliverer(await desk.get_base(), desk.toolsets)
    deliverer.clock = FixedClock(datetime.now(UTC) + after)
    return deliverer


async def send(desk: Desk, after: timedelta = timedelta(0)) -> None:
    await (await make_deliverer(desk, after)).run_once()


async def read(receiver: Receiver) -> dict[str, Any]:
    return await anyio.to_thread.run_sync(receiver.read)


def check(message: dict[str, Any], secret: str) -> dict[str, Any]:
    """Return what a message says, if it is signed as the specification has it."""
    headers = message["headers"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{message['body']}".encode()
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    return json.loads(message["body"])


def test_the_specifications_own_example_is_signed_alike() -> None:
    headers = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert len(base64.b64decode(make_secret().removeprefix("whsec_"))) == 32


async def test_news_are_sent_signed_and_once_and_the_secret_is_shown_once(desk: Desk, receiver: Receiver) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        wanted = {"kind": "search", "subject": "gate code", "webhook": receiver.url("ok"), "label": "gates"}
        made = (await ann("create_watch", wanted))[1]
        assert "secret" not in (await ann("create_watch", wanted))[1]
        assert made["secret"] not in str((await ann("list_watches", {}))[1])
        ids = [await store(ann, f"Gate code {number}") for number in range(3)]
        await look(desk)
        await send(desk)
        await send(desk)
        messages = [await read(receiver) for _ in ids]
        said = [check(message, made["secret"]) for message in messages]
        assert [each["data"]["id"] for each in said] == ids
        assert said[0]["type"] == "news.new"
        [first, *_] = await list_news(ann, after=0)
        assert {**said[0]["data"], "at": first["at"]} == first
        assert len({message["headers"]["webhook-id"] for message in messages}) == 3
        [listed] = (await ann("list_watches", {}))[1]["watches"]
        assert listed["webhook"] == {"url": receiver.url("ok"), "waiting": 0}
    assert receiver.end() == []


async def test_what_is_not_taken_is_sent_again_later_under_the_same_id(desk: Desk, receiver: Receiver) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url("fail/2")})
        for number in range(2):
            await store(ann, f"Gate code {number}")
        await look(desk)
        waited = timedelta(0)
        for _ in range(2):
            await send(desk, waited)
            await send(desk, waited + timedelta(seconds=1))  # too early
            [listed] = (await ann("list_watches", {}))[1]["watches"]
            assert (listed["webhook"]["waiting"], listed["webhook"]["failed"]) == (2, "HTTP 500")
            waited += timedelta(hours=1)
        await send(desk, waited)
        messages = [await read(receiver) for _ in range(4)]
        ids = [message["headers"]["webhook-id"] for message in messages]
        assert ids[0] == ids[1] == ids[2] != ids[3]
    assert receiver.end() == []


async def test_a_receiver_that_hangs_holds_up_no_other(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that the test would not end if the other waited for it.
    monkeypatch.setattr(reaching, "SECONDS", 3600.0)
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann, anyio.create_task_group() as group:
        for path in ("hang", "ok"):
            await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url(path)})
        await store(ann, "Gate code")
        await look(desk)
        group.start_soon((await make_deliverer(desk)).run)
        assert {(await read(receiver))["path"] for _ in range(2)} == {"/hang", "/ok"}
        group.cancel_scope.cancel()


async def test_a_process_that_ends_while_it_sends_is_replaced(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaching, "SECONDS", 3600.0)
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        made = (await ann("create_watch", {"kind": "search", "subject": "gate", "webhook": receiver.url("hang")}))[1]
        await store(ann, "Gate")
        await look(desk)
        messages: list[dict[str, Any]] = []
        async with anyio.create_task_group() as group:
            group.start_soon((await make_deliverer(desk)).run_once)
            messages.append(await read(receiver))
            group.cancel_scope.cancel()
        await send(desk, queueing.CLAIM / 4)  # it may still be at it
        async with anyio.create_task_group() as group:
            group.start_soon((await make_deliverer(desk, queueing.CLAIM * 1.1)).run_once)
            messages.append(await read(receiver))
            group.cancel_scope.cancel()
        first, second = messages
        assert first["headers"]["webhook-id"] == second["headers"]["webhook-id"]
        assert first["headers"]["webhook-timestamp"] < second["headers"]["webhook-timestamp"]
        check(second, made["secret"])


async def test_redirects_are_not_followed_and_who_is_gone_hears_no_more(desk: Desk, receiver: Receiver) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        for path in ("redirect", "gone"):
            await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url(path)})
        await store(ann, "Gate code")
        await look(desk)
        await send(desk)
        await store(ann, "Gate code too")
        await look(desk)
        await send(desk)
        listed = (await ann("list_watches", {}))[1]["watches"]
        assert [(each["webhook"]["waiting"], each["webhook"]["failed"]) for each in listed] == [
            (2, "it redirects, which is not followed"),
            (0, "HTTP 410"),
        ]
        assert {(await read(receiver))["path"] for _ in range(2)} == {"/redirect", "/gone"}
    assert receiver.end() == []


async def test_nothing_is_sent_for_an_agent_whose_key_was_revoked(desk: Desk, receiver: Receiver) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url("ok")})
        await store(ann, "Gate code")
        keys = (await desk.get_base()).keys
        [key] = await keys.list("acme")
        await keys.revoke(key.id)
        await look(desk)
        await send(desk)
    assert receiver.end() == []


async def test_a_webhook_may_be_nowhere_private(tmp_path: Path) -> None:
    async with open_own(tmp_path) as desk, call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        hosts = ("127.0.0.1", "localhost", "[::1]", "10.0.0.7", "169.254.169.254", "2130706433", "0x7f.1")
        plain = ("http://example.com/", "ftp://example.com/", "https://u:p@example.com/", "https://", "x")
        for url in (*(f"https://{host}/hook" for host in hosts), *plain):
            code, _ = await ann("create_watch", {"kind": "product", "subject": "AKS", "webhook": url})
            assert code == "INVALID_INPUT", url


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((each, False) for each in ("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254")),
        *((each, False) for each in ("100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1")),
        *((each, False) for each in ("::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1")),
        *((each, False) for each in ("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:4136:e378::")),
        *((each, True) for each in ("93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34")),
    ],
)
def test_what_is_a_public_address(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


async def test_a_name_that_means_something_private_is_not_reached_whatever_it_meant_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is looked up once, and what is connected to is what was checked."""
    answers = iter((["93.184.216.34"], ["127.0.0.1"], ["93.184.216.34", "10.0.0.1"]))

    async def look_up(host: str, port: int) -> list[reaching.Address]:
        del host, port
        return [ipaddress.ip_address(each) for each in next(answers)]

    monkeypatch.setattr(reaching, "_look_up", look_up)
    reach = Reach()
    assert str(await reach.resolve("rebinds.example", 443)) == "93.184.216.34"
    for _ in range(2):
        with pytest.raises(UnreachableError):
            await reach.resolve("rebinds.example", 443)
    assert (await reach.post("https://127.0.0.1/", b"{}", {})).reason == "it is at a private address"


async def test_what_the_setting_allows_is_reached_by_its_name_too() -> None:
    reach = read_reach(("10.0.0.0/8", "hooks.internal"))
    reach.check_url("http://10.1.2.3:8080/hook")
    reach.check_url("https://hooks.internal/hook")
    assert reach.may_reach(ipaddress.ip_address("192.168.0.5"), "hooks.internal")
    assert not reach.may_reach(ipaddress.ip_address("192.168.0.5"), "other.internal")
    with pytest.raises(InvalidInputError):
        reach.check_url("https://192.168.0.5/hook")
    with pytest.raises(ValueError, match="300"):
        read_reach(("10.0.0.0/300",))
    assert read_address("hooks.internal") is None


async def test_a_deliverer_that_forgets_what_it_sent_is_caught(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what was taken is not noted."""

    async def forget(self: Deliverer, held: queueing.Delivery, after: queueing.Delivery) -> None:
        del self, held, after

    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url("ok")})
        await store(ann, "Gate code")
        await look(desk)
        monkeypatch.setattr(Deliverer, "_settle", forget)
        await send(desk)
        await send(desk, queueing.CLAIM * 1.1)
        ids = [(await read(receiver))["headers"]["webhook-id"] for _ in range(2)]
        assert ids[0] == ids[1]


async def test_several_processes_report_and_send_each_once(desk: Desk, receiver: Receiver) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await ann("create_watch", {"kind": "search", "subject": "gate code", "webhook": receiver.url("ok")})
        ids = [await store(ann, f"Gate code {number}") for number in range(5)]
        base = await desk.get_base()
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(choose_watcher(base).run_once)
        async with anyio.create_task_group() as group:
            for deliverer in [await make_deliverer(desk) for _ in range(3)]:
                group.start_soon(deliverer.run_once)
        sent = [json.loads((await read(receiver))["body"])["data"]["id"] for _ in ids]
        assert sent == ids
        assert [each["id"] for each in await list_news(ann, after=0)] == ids
    assert receiver.end() == []
