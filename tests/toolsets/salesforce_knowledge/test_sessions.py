from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest

from refdesk import errors
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from sample_world.salesforce.process import RunningEmulator
from tests.toolsets.salesforce_knowledge.samples import counted, get_requests, open_source, version_id

TOKEN = "/oauth2/token"


async def get_code(source: SalesforceSource) -> str:
    try:
        await source.search("password")
    except errors.RefdeskError as error:
        return error.code
    return ""


async def search_all_at_once(source: SalesforceSource, count: int) -> list[str]:
    codes: list[str] = []

    async def search() -> None:
        codes.append(await get_code(source))

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(search)
    return codes


async def test_many_who_ask_at_once_share_one_session_and_one_renewal(lightning: RunningEmulator) -> None:
    async with open_source(lightning) as source:
        assert await search_all_at_once(source, 20) == [""] * 20
        assert counted(await get_requests(lightning), TOKEN) == 1
        await lightning.expire_sessions()
        assert await search_all_at_once(source, 20) == [""] * 20
        assert counted(await get_requests(lightning), TOKEN) == 2


async def test_whoever_gives_up_signing_in_does_not_stop_the_others(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "hang", "path": TOKEN, "at": [1]}])
    codes: list[str] = []
    async with open_source(lightning) as source, anyio.create_task_group() as group:
        impatient = anyio.CancelScope()

        async def give_up() -> None:
            with impatient:
                await source.search("password")

        async def go_on() -> None:
            codes.append(await get_code(source))

        group.start_soon(give_up)
        with anyio.fail_after(120):
            while not counted(await get_requests(lightning), TOKEN):
                await anyio.lowlevel.checkpoint()
        group.start_soon(go_on)
        await anyio.lowlevel.checkpoint()
        impatient.cancel()
    assert codes == [""]


async def test_a_signed_assertion_opens_a_session(lightning: RunningEmulator, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(lightning.private_key, encoding="utf-8")
    async with open_source(lightning, client_secret=None, username=lightning.username, private_key_file=key) as source:
        assert await get_code(source) == ""
        await lightning.expire_sessions()
        assert await get_code(source) == ""
    [first, *_] = await get_requests(lightning)
    assert "assertion=" in first["body"]


async def test_a_refused_assertion_may_be_due_to_the_clock(lightning: RunningEmulator, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(lightning.private_key, encoding="utf-8")
    refusal = {"error": "invalid_grant", "error_description": "assertion is not valid"}
    await lightning.set_faults([{"fault": "answer", "path": TOKEN, "status": 400, "body": refusal}])
    async with open_source(lightning, client_secret=None, username=lightning.username, private_key_file=key) as source:
        with pytest.raises(errors.RefdeskError, match="the clock of this machine is wrong"):
            await source.search("password")
    async with open_source(lightning) as source:
        with pytest.raises(errors.RefdeskError, match="user not approved") as caught:
            await source.search("password")
    assert "clock" not in caught.value.message


@pytest.mark.parametrize("text", [None, "", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
async def test_a_key_that_cannot_be_read_is_the_operators_to_mend(
    lightning: RunningEmulator, tmp_path: Path, text: str | None
) -> None:
    key = tmp_path / "key.pem"
    if text is not None:
        key.write_text(text, encoding="utf-8")
    async with open_source(lightning, client_secret=None, username=lightning.username, private_key_file=key) as source:
        with pytest.raises(errors.RefdeskError, match="REFDESK_SALESFORCE_PRIVATE_KEY_FILE") as caught:
            await source.search("password")
    assert caught.value.code == "AUTH_ERROR"
    assert str(tmp_path) not in caught.value.message


async def test_a_given_token_is_used_and_never_renewed(lightning: RunningEmulator) -> None:
    async with open_source(
        lightning, client_id=None, client_secret=None, access_token=lightning.access_token
    ) as source:
        assert await get_code(source) == ""
        await lightning.expire_sessions()
        await lightning.forget_requests()
        assert await get_code(source) == "AUTH_ERROR"
    requests = await get_requests(lightning)
    assert counted(requests, TOKEN) == 0
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"client_secret": "canary-wrong-secret"}, "client id and secret"),
        ({"client_id": "canary-wrong-id"}, "does not know the client id"),
    ],
)
async def test_refused_credentials_are_told_remembered_and_not_shown(
    lightning: RunningEmulator, given: dict[str, object], words: str
) -> None:
    seconds = [1000.0]
    async with open_source(lightning, now=lambda: seconds[0], **given) as source:
        for _ in range(3):
            with pytest.raises(errors.RefdeskError, match=words) as caught:
                await source.search("password")
            assert caught.value.code == "AUTH_ERROR"
            assert "canary" not in caught.value.message + repr(caught.value.details)
        assert len(await get_requests(lightning)) == 1
        seconds[0] += 31
        assert await get_code(source) == "AUTH_ERROR"
        assert len(await get_requests(lightning)) == 2


async def test_a_session_that_expires_again_at_once_is_not_renewed_forever(lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "refuse", "error": "session_expired", "path": "/data/"}])
    async with open_source(lightning) as source:
        assert await get_code(source) == "AUTH_ERROR"
    assert counted(await get_requests(lightning), TOKEN) == 2


async def test_a_session_that_leads_to_a_stranger_is_not_used(lightning: RunningEmulator) -> None:
    stranger = {"access_token": "abc", "instance_url": "https://elsewhere.example"}
    await lightning.set_faults([{"fault": "answer", "status": 200, "body": stranger, "path": TOKEN}])
    async with open_source(lightning) as source:
        with pytest.raises(errors.WorldError, match="not one of its own"):
            await source.search("password")
    assert len(await get_requests(lightning)) == 1


class Opened:
    """Remembers what was opened for writing, while it looks."""

    def __init__(self) -> None:
        self.is_looking = False
        self.written: list[str] = []

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.is_looking and event == "open":
            path, mode, flags = arguments
            is_written = any(letter in str(mode or "") for letter in "wax+") or (isinstance(flags, int) and flags & 3)
            if is_written:
                self.written.append(str(path))


@pytest.fixture(scope="module")
def opened() -> Opened:
    opened = Opened()
    sys.addaudithook(opened)  # it cannot be taken away again, but it can stop looking
    return opened


@pytest.fixture
def look(opened: Opened) -> Generator[Callable[[], list[str]]]:
    opened.written.clear()
    opened.is_looking = True
    yield lambda: opened.written
    opened.is_looking = False


async def test_nothing_of_salesforce_is_written_to_disk(
    lightning: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    look: Callable[[], list[str]],
) -> None:
    monkeypatch.setenv("REFDESK_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    async with open_source(lightning) as source:
        await source.search("password")
        await source.get_article(version_id(1))
        await lightning.expire_sessions()
        await source.search("printer")
    assert look() == []
    assert [path.name async for path in anyio.Path(tmp_path).rglob("*")] == ["work"]
    await anyio.Path(tmp_path / "seen").write_text("x", encoding="utf-8")
    assert look() == [str(tmp_path / "seen")]
