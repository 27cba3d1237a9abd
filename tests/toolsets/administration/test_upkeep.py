"""Syncs and what is not embedded, over every transport: begun once, seen while they run, and stopped cleanly."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp.client import Client

from refdesk.app import Desk
from refdesk.cli.views_of_status import describe_embedding
from refdesk.core.search.semantics import Semantics
from refdesk.model import Principal
from refdesk.server.mcp import Adapter, identify_local
from sample_world.azure_updates.process import RunningEmulator, running_emulator
from tests.core.fakes import ScriptedEmbedder
from tests.server.conftest import connect
from tests.server.test_on_record import FACES, Ask, call_as, open_own
from tests.server.test_progress import Seen
from tests.server.test_tasks import TakesTasks
from tests.server.transports import MODERN

SYNC: dict[str, Any] = {"toolset": "azure-updates"}
ROOT = ("admin", "updates:read", "knowledge:read", "knowledge:write")


@pytest.fixture(scope="module")
async def running_feed(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as emulator:
        yield emulator


@pytest.fixture
async def feed(running_feed: RunningEmulator) -> RunningEmulator:
    await running_feed.set_faults([])
    return running_feed


@pytest.fixture
async def desk(tmp_path: Path, feed: RunningEmulator) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path, azure_updates_url=feed.url) as opened:
        yield opened


@pytest.mark.parametrize("face", FACES)
async def test_a_toolset_is_synced_when_somebody_asks_for_it(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "root", *ROOT) as root, call_as(desk, face, "ann", *ROOT[1:]) as ann:
        [never] = (await root("show_syncs", {}))[1]["syncs"]
        assert (never["toolset"], never["isDue"], never["isRunning"]) == ("azure-updates", True, False)
        code, first = await root("sync_toolset", SYNC)
        assert (code, first["outcome"], first["kind"]) == ("", "succeeded", "full")
        assert first["added"] > 0
        again = (await root("sync_toolset", SYNC))[1]
        assert (again["kind"], again["added"]) == ("delta", 0)
        assert (await root("sync_toolset", {**SYNC, "full": True}))[1]["unchanged"] == first["added"]
        [since] = (await root("show_syncs", SYNC))[1]["syncs"]
        assert (since["isDue"], since["documents"]) == (False, first["added"])
        assert (await root("show_syncs", {"toolset": "skills"}))[1]["syncs"] == []
        assert (await ann("search_azure_updates", {"query": "azure"}))[1]["total"] > 0
        assert (await ann("sync_toolset", SYNC))[0] in ("PERMISSION_DENIED", "Forbidden")
        acts = (await root("show_audit", {"action": "sync_toolset"}))[1]["entries"]
        assert [each["act"]["agent"] for each in acts if each["act"]["outcome"] == "done"] == ["root"] * 3


@pytest.mark.parametrize("face", FACES)
async def test_what_cannot_be_synced_says_why(desk: Desk, feed: RunningEmulator, face: str) -> None:
    async with call_as(desk, face, "root", *ROOT) as root:
        for name in ("knowledge", "astrology"):
            assert (await root("sync_toolset", {"toolset": name}))[0] == "INVALID_INPUT"
        await feed.set_faults([{"fault": "status", "status": 404}])
        assert (await root("sync_toolset", SYNC))[0] == "SOURCE_UNAVAILABLE"
        [failed] = (await root("show_syncs", {}))[1]["syncs"]
        assert "404" in failed["lastError"]


async def wait_for_sync(ask: Ask) -> None:
    await ask("sync_toolset", SYNC)


async def wait_until_running(root: Ask) -> None:
    while not (await root("show_syncs", {}))[1]["syncs"][0]["isRunning"]:
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("face", FACES)
async def test_a_sync_that_runs_is_not_doubled_and_one_that_nobody_waits_for_ends(
    desk: Desk, feed: RunningEmulator, face: str
) -> None:
    await feed.set_faults([{"fault": "hang"}])
    async with call_as(desk, face, "root", *ROOT) as root:
        async with call_as(desk, face, "waiting", *ROOT) as waiting, anyio.create_task_group() as group:
            group.start_soon(wait_for_sync, waiting)
            await wait_until_running(root)
            code, second = await root("sync_toolset", SYNC)
            assert (code, second["outcome"], second["added"]) == ("", "busy", 0)
            group.cancel_scope.cancel()
        await feed.set_faults([])
        while (done := (await root("sync_toolset", SYNC))[1])["outcome"] == "busy":
            await anyio.lowlevel.checkpoint()
        assert done["added"] > 0


async def test_a_client_sees_how_far_a_sync_is(desk: Desk) -> None:
    seen, principal = Seen(), Principal("acme", "root", frozenset(ROOT))
    async with connect(desk, "legacy", principal) as client:
        result = await client.call_tool("sync_toolset", SYNC, progress_callback=seen.note)
    assert result.structured_content is not None
    done, total, message = seen.steps[-1]
    assert done == total == result.structured_content["added"] + result.structured_content["quarantined"]
    assert message == f"Read {total:.0f} of {total:.0f} records"


async def test_a_client_that_takes_tasks_gets_one_and_its_outcome(desk: Desk, feed: RunningEmulator) -> None:
    await feed.set_faults([{"fault": "drip", "delay_seconds": 0.01, "chunk_bytes": 4096}])
    tasks = TakesTasks()
    server = Adapter(desk, identify_local(Principal("acme", "root", frozenset(ROOT)), is_agent_known=True))
    server.tasks.at_once = 0.0
    async with Client(server.build_server(), mode=MODERN, extensions=[tasks]) as client:
        result = await client.call_tool("sync_toolset", SYNC)
    assert result.structured_content is not None
    assert result.structured_content["added"] > 0
    assert tasks.seen[-1]["status"] == "completed"


@pytest.mark.parametrize("face", FACES)
async def test_what_could_not_be_embedded_is_shown_and_tried_again_within_the_org(desk: Desk, face: str) -> None:
    embedder = ScriptedEmbedder(poison=frozenset({"venom"}))
    base = await desk.get_base()
    base.semantics.wanted = cast("Any", embedder)
    async with (
        call_as(desk, face, "root", *ROOT) as root,
        call_as(desk, face, "root", *ROOT, org="others") as others,
    ):
        bad = (await root("store_knowledge", {"title": "Bad", "body": "venom"}))[1]["id"]
        await root("store_knowledge", {"title": "Good", "body": "honey"})
        await base.indexer.run_once()
        shown = (await root("show_embeddings", {}))[1]
        assert (shown["documents"], shown["embedded"], shown["waiting"], shown["failed"]) == (2, 1, 1, 1)
        [failure] = shown["failures"]
        assert (failure["id"], failure["toolset"], failure["attempts"]) == (bad, "knowledge", 1)
        theirs = (await others("show_embeddings", {}))[1]
        assert (theirs["documents"], theirs["failures"]) == (0, [])
        assert (await others("retry_embeddings", {}))[1]["retried"] == 0
        assert (await root("retry_embeddings", {"toolset": "skills"}))[1]["retried"] == 0
        embedder.poison = frozenset()
        assert await base.indexer.run_once() == 0, "it waits until it is due"
        retried = (await root("retry_embeddings", {}))[1]
        assert (retried["retried"], retried["waiting"], retried["failed"]) == (1, 1, 0)
        await base.indexer.run_once()
        assert (await root("show_embeddings", {}))[1]["waiting"] == 0


async def test_while_models_change_everything_says_how_far_it_is_and_search_goes_on(desk: Desk) -> None:
    base, new = await desk.get_base(), ScriptedEmbedder("new-8")
    async with call_as(desk, "rest", "root", *ROOT) as root:
        notes = [{"title": f"Note {number}", "body": "honey"} for number in range(3)]
        for note in notes:
            await root("store_knowledge", note)
        await base.indexer.run_once()
        assert (await desk.get_health()).change is None
        old, base.semantics.wanted = base.semantics.wanted, cast("Any", new)
        base.semantics.reopen = lambda _: old
        shown = (await root("show_embeddings", {}))[1]
        change = (await desk.get_health()).to_json()["embeddingChange"]
        models = {"model": "new-8", "searchedBy": old.model.name}
        assert change == {**models, "documents": 3, "embedded": 0, "waiting": 3, "failed": 0}
        assert change == {name: shown[name] for name in change}
        assert describe_embedding(change) == [
            f"0 of 3 documents are embedded anew by new-8; {old.model.name} is searched meanwhile"
        ]
        assert len((await root("search_knowledge", {"query": "honey"}))[1]["results"]) == 3
        vector, status = await base.semantics.embed_query("honey", "acme")
        assert (status, vector and vector.model) == ("used", old.model.name)
        await base.indexer.run_once()
        assert (await desk.get_health()).change is None
        after = (await root("show_embeddings", {}))[1]
        assert (after["searchedBy"], after["embedded"], describe_embedding(after)) == ("new-8", 3, [])


async def test_a_model_that_the_settings_do_not_provide_is_named_and_search_goes_by_words(desk: Desk) -> None:
    base = await desk.get_base()
    async with call_as(desk, "rest", "root", *ROOT) as root:
        await root("store_knowledge", {"title": "Note", "body": "honey"})
        await base.indexer.run_once()
        await Semantics(base.knowledge_base.store, ScriptedEmbedder("newer-8")).adopt_wanted()
        assert await base.indexer.run_once() == 0
        health = await desk.get_health()
        assert health.change is None
        assert any("vectors are those of newer-8, which these settings" in problem for problem in health.problems)
        found = (await root("search_knowledge", {"query": "honey"}))[1]
        assert (len(found["results"]), "keyword matches" in found["notice"]) == (1, True)
