"""Clients hear that something changed at an address: entries, guide and skills, by whomever it was written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.client import Client
from mcp.client.session import IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.factories.watching import choose_watcher
from refdesk.model import Principal
from refdesk.server import mcp
from refdesk.server.calls import Caller
from refdesk.server.principals import local_principal
from refdesk.server.subscriptions import NEWS
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.echo import make_settings
from tests.server.test_everything import TALK
from tests.server.transports import MODERN, TRANSPORTS, serve
from tests.toolsets.azure_updates.samples import make_record

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

GUIDE = "azure-updates://guide"
NOTE = {"title": "Refund limit", "body": "500 EUR."}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_on(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def open_on(folder: Path) -> AsyncGenerator[Desk]:
    """A desk on a file, as another process would open it."""
    settings = make_settings(folder, store=f"sqlite:///{folder / 'desk.sqlite3'}")
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as opened:
        yield opened


def who(desk: Desk, org: str = "local") -> Principal:
    return replace(local_principal(desk.settings, desk.toolsets, "tester"), org=org)


async def run(desk: Desk, name: str, arguments: dict[str, Any], org: str = "local") -> dict[str, Any]:
    [operation] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == name]
    return (await Caller(desk, who(desk, org), "test").run(operation, arguments)).value


@dataclass
class Heard:
    """What a client hears, as it comes."""

    uris: list[str] = field(default_factory=list[str])
    _ring: anyio.Event = field(default_factory=anyio.Event)

    async def note(self, message: IncomingMessage) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.add(str(message.params.uri))

    def add(self, uri: str) -> None:
        self.uris.append(uri)
        self._ring.set()

    async def wait_for(self, uri: str) -> None:
        with anyio.fail_after(120):
            while uri not in self.uris:
                self._ring = anyio.Event()
                await self._ring.wait()


@asynccontextmanager
async def subscribed(client: Client, heard: Heard, transport: str, *uris: str) -> AsyncGenerator[None]:
    """Subscribe in the way of the era."""
    if transport.endswith("legacy"):
        for uri in uris:
            await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        yield
        return

    async def pump() -> None:
        async for event in stream:
            assert isinstance(event, ResourceUpdated)
            heard.add(event.uri)

    async with client.listen(resource_subscriptions=uris) as stream, anyio.create_task_group() as group:
        assert set(stream.honored.resource_subscriptions or ()) == set(uris)
        group.start_soon(pump)
        yield
        group.cancel_scope.cancel()


async def make_things(desk: Desk) -> dict[str, str]:
    """An entry, a skill and its file, and the guide, by what they are."""
    entry = await run(desk, "store_knowledge", NOTE)
    skill = await run(desk, "create_skill", {"conversation": TALK})
    return {"entry": f"knowledge://{entry['id']}", "skill": f"skill://{skill['skill_id']}", "guide": GUIDE}


async def supersede(desk: Desk, uri: str) -> None:
    newer = await run(desk, "store_knowledge", {**NOTE, "body": "600 EUR."})
    await run(desk, "supersede_knowledge", {"oldId": uri.removeprefix("knowledge://"), "newId": newer["id"]})


async def refine(desk: Desk, uri: str) -> None:
    talk = TALK + "Customer: And where is the app?\nAgent: Please open the store and search for Marrowby.\n"
    await run(desk, "update_skill", {"skill_id": uri.removeprefix("skill://"), "conversation": talk})


async def sync(desk: Desk, uri: str) -> None:
    assert uri == GUIDE
    base = (await desk.get_base()).knowledge_base
    async with base.store.transaction() as transaction:
        await transaction.put_documents([to_document(make_record("9", products=["Azure Monitor"]))])


CHANGES: dict[str, Callable[[Desk, str], Awaitable[None]]] = {"entry": supersede, "skill": refine, "guide": sync}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_hears_of_what_it_subscribed_to_and_of_nothing_else(desk: Desk, transport: str) -> None:
    things, heard = await make_things(desk), Heard()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, message_handler=heard.note) as client,
        subscribed(client, heard, transport, *things.values()),
    ):
        await run(desk, "store_knowledge", {"title": "Something else", "body": "Of no interest."})
        await run(desk, "search_skills", {"query": "password"})
        for thing, uri in things.items():
            await CHANGES[thing](desk, uri)
            await heard.wait_for(uri)
    assert sorted(set(heard.uris)) == sorted(things.values())


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_news_reach_their_subscribers_though_no_document_changes_with_them(desk: Desk, transport: str) -> None:
    heard, watcher = Heard(), choose_watcher(await desk.get_base())
    await run(desk, "create_watch", {"kind": "search", "subject": "refund limit"})
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, message_handler=heard.note) as client,
        subscribed(client, heard, transport, NEWS),
    ):
        await run(desk, "store_knowledge", NOTE)
        await watcher.run_once()
        await heard.wait_for(NEWS)


@pytest.mark.parametrize("transport", ["http legacy", f"http {MODERN}"])
async def test_who_asked_in_vain_hears_when_something_answers(desk: Desk, transport: str) -> None:
    heard, base = Heard(), await desk.get_base()
    await run(desk, "search_knowledge", {"query": "who waters the plants on the third floor"})
    keeper = desk.make_gap_keeper(base)
    assert keeper is not None
    await keeper.run_until_done()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, message_handler=heard.note) as client,
        subscribed(client, heard, transport, "gaps://answered", "gaps://open"),
    ):
        await run(desk, "store_knowledge", {"title": "Plants on the third floor", "body": "Dana waters the plants."})
        while await base.indexer.run_once():
            pass
        await desk.make_examiner(base).run_until_done()
        await heard.wait_for("gaps://answered")
        await heard.wait_for("gaps://open")
    [gap] = (await run(desk, "list_gaps", {"status": "answered", "mine": True}))["gaps"]
    heard.uris.clear()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, message_handler=heard.note) as client,
        subscribed(client, heard, transport, "gaps://open"),
    ):
        await run(desk, "judge_gap", {"id": gap["id"], "verdict": "reopen"})
        await heard.wait_for("gaps://open")


@pytest.mark.parametrize("transport", ["http legacy", f"http {MODERN}"])
async def test_what_another_process_wrote_is_noticed_too(desk: Desk, tmp_path: Path, transport: str) -> None:
    things, heard = await make_things(desk), Heard()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, message_handler=heard.note) as client,
        subscribed(client, heard, transport, things["entry"]),
        open_on(tmp_path) as other,
    ):
        await supersede(other, things["entry"])
        await heard.wait_for(things["entry"])


@pytest.mark.parametrize("transport", ["stdio legacy", "http legacy"])
async def test_what_cannot_be_read_cannot_be_subscribed_to(desk: Desk, transport: str) -> None:
    others = await run(desk, "store_knowledge", NOTE, org="others")
    theirs, missing = f"knowledge://{others['id']}", "knowledge://01930000-0000-7000-8000-000000000001"
    async with serve(desk, who(desk)) as reach, reach.connect(transport) as client:
        found: list[tuple[int, str]] = []
        for uri in (theirs, missing):
            with pytest.raises(MCPError) as caught:
                await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
            found.append((caught.value.code, str(caught.value).replace(uri.removeprefix("knowledge://"), "ID")))
        assert found[0] == found[1]
        with pytest.raises(MCPError, match="No such resource"):
            await client.subscribe_resource("nothing://here")  # pyright: ignore[reportDeprecated]


async def test_a_stream_honours_only_what_its_caller_can_read(desk: Desk) -> None:
    others = await run(desk, "store_knowledge", NOTE, org="others")
    theirs = f"knowledge://{others['id']}"
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(f"http {MODERN}") as client,
        client.listen(resource_subscriptions=[theirs, GUIDE], tools_list_changed=True) as stream,
    ):
        assert stream.honored.resource_subscriptions == [GUIDE]
        assert not stream.honored.tools_list_changed


async def test_nobody_looks_any_more_when_the_last_one_has_gone(desk: Desk) -> None:
    things = await make_things(desk)
    adapter = mcp.Adapter(desk, mcp.identify_local(who(desk), is_agent_known=True))
    watched = adapter.subscriptions
    async with Client(adapter.build_server(), mode="legacy") as client:
        await client.subscribe_resource(things["entry"])  # pyright: ignore[reportDeprecated]
        await client.subscribe_resource(things["skill"])  # pyright: ignore[reportDeprecated]
        await client.unsubscribe_resource(things["skill"])  # pyright: ignore[reportDeprecated]
        assert (len(watched), watched.is_looking) == (1, True)
    await run(desk, "store_knowledge", NOTE)  # which wakes who looks
    with anyio.fail_after(120):
        while watched.is_looking:
            await anyio.lowlevel.checkpoint()
    assert len(watched) == 0


async def test_one_session_watches_a_bounded_number(desk: Desk) -> None:
    things = await make_things(desk)
    adapter = mcp.Adapter(desk, mcp.identify_local(who(desk), is_agent_known=True))
    adapter.subscriptions.most = 2
    async with Client(adapter.build_server(), mode="legacy") as client:
        for uri in [things["entry"], things["skill"], things["skill"]]:
            await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        with pytest.raises(MCPError, match="unsubscribe from some"):
            await client.subscribe_resource(GUIDE)  # pyright: ignore[reportDeprecated]


@pytest.mark.parametrize("transport", ["stdio legacy", "stdio auto", "http legacy", "http auto", "sse legacy"])
async def test_changes_of_lists_are_promised_only_where_another_may_have_answered_first(
    desk: Desk, transport: str
) -> None:
    async with serve(desk, who(desk)) as reach, reach.connect(transport) as client:
        found = client.server_capabilities
        assert found is not None
        assert found.resources is not None
        assert found.resources.subscribe
        parts = [part for part in (found.tools, found.resources, found.prompts) if part is not None]
        assert {part.list_changed for part in parts} == {transport == "stdio legacy"}
