"""Erasing and the audit log over REST and MCP: for the scope `admin`, within its org, and on record themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import run_sync

from refdesk.app import Desk, open_desk
from refdesk.core.writing import audit
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import AuditEntry
from refdesk.server.principals import local_principal
from tests.core.writing.test_audit import tamper
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings
from tests.server.test_on_record import FACES, call_as, list_refusals, open_own, store
from tests.stores.traces import find_in_files, make_canary
from tests.test_cli import refdesk

AGENT = ("knowledge:read", "knowledge:write", "skills:read", "skills:write")
TALK = "Customer: My {} printer feeds two labels.\nAgent: Clean the gap sensor with a cloth.\nCustomer: Thanks, solved!"


@pytest.fixture
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Desk]:
    """A desk; with the parameter `apart`, one that keeps skills in a store of their own."""
    apart = {"skills_store": f"sqlite:///{tmp_path / 'skills.sqlite3'}"}
    async with open_own(tmp_path, **(apart if getattr(request, "param", "") == "apart" else {})) as opened:
        yield opened


@pytest.mark.parametrize(
    ("desk", "face"), [*(("together", face) for face in FACES), ("apart", "rest")], indirect=["desk"]
)
async def test_an_entry_an_agent_and_an_org_are_erased_and_it_is_on_record(
    desk: Desk, tmp_path: Path, face: str
) -> None:
    canary = make_canary()
    async with (
        call_as(desk, face, "ann", *AGENT) as ann,
        call_as(desk, face, "bob", *AGENT) as bob,
        call_as(desk, face, "root", "admin", "knowledge:read") as root,
    ):
        entry = await store(ann, f"Code {canary}")
        note = await store(ann, f"Another {canary}")
        kept = await store(bob, "Kept")
        skill = (await ann("create_skill", {"conversation": TALK.format(canary)}))[1]["skill_id"]
        assert (await root("erase", {"entry": entry}))[1] == {"erased": 1, "isScrubbed": True}
        assert (await root("get_knowledge", {"id": entry}))[0] == "NOT_FOUND"
        assert (await root("erase", {"entry": entry}))[0] == "NOT_FOUND"
        assert (await root("erase", {"agent": "ann"}))[1]["erased"] == 2
        assert await run_sync(find_in_files, tmp_path, canary) == []
        assert (await root("get_knowledge", {"id": kept}))[0] == ""
        shown = (await root("show_audit", {"action": "erase"}))[1]["entries"]
        by_root = {(each["act"]["agent"], each["act"]["transport"]) for each in shown}
        assert by_root == {("root", "rest" if face == "rest" else "mcp")}
        erased = {record["id"] for each in shown for record in each["act"].get("records", ())}
        assert erased == {entry, note, skill}
        verified = (await root("verify_audit", {}))[1]
        assert verified["holds"]
        assert (await root("verify_audit", {"expect": verified["logs"][-1]["end"]}))[1]["holds"]
        assert (await root("erase", {"org": "acme"}))[1]["erased"] == 1
    assert await (await desk.get_base()).keys.list("acme") == []


@pytest.mark.parametrize("face", FACES)
async def test_nobody_else_may_and_who_tries_is_on_record(desk: Desk, face: str) -> None:
    others = [*AGENT, "knowledge:write_others", "metrics:read"]
    async with call_as(desk, face, "ann", *others) as ann:
        entry = await store(ann, "Mine")
        for name, arguments in (
            ("erase", {"entry": entry}),
            ("show_audit", {}),
            ("verify_audit", {}),
            ("export_audit", {}),
        ):
            assert (await ann(name, arguments))[0] == "PERMISSION_DENIED"
        assert (await ann("get_knowledge", {"id": entry}))[0] == ""
    assert [each["action"] for each in await list_refusals(desk)] == [
        "erase",
        "show_audit",
        "verify_audit",
        "export_audit",
    ]


async def test_without_keys_nobody_may(desk: Desk) -> None:
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    assert "admin" not in principal.scopes
    async with open_http(desk, principal) as rest:
        assert (await rest.post("/erase", json={"agent": "ann"})).status_code == 403
        assert (await rest.get("/audit")).status_code == 403
    async with connect(desk, "2026-07-28", principal) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
    assert "store_knowledge" in offered
    assert not offered & {"erase", "show_audit", "verify_audit", "export_audit"}


@pytest.mark.parametrize("face", FACES)
async def test_another_org_cannot_be_erased_or_read(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "ann", *AGENT) as ann,
        call_as(desk, face, "root", "admin", org="zenith") as root,
    ):
        entry = await store(ann, "Of acme")
        assert (await root("verify_audit", {}))[1]["holds"]
        assert (await root("erase", {"org": "acme"}))[0] == "PERMISSION_DENIED"
        for wanted in ({"entry": entry}, {"agent": "ann"}, {"org": "zenith"}):
            code, answer = await root("erase", wanted)
            # Its own org has a key, which is something to erase.
            assert (code, entry in json.dumps(answer)) == ("" if "org" in wanted else "NOT_FOUND", False)
        assert (await ann("get_knowledge", {"id": entry}))[0] == ""
    async with call_as(desk, face, "root", "admin", org="zenith") as root:
        for name in ("show_audit", "export_audit"):
            entries = (await root(name, {}))[1]["entries"]
            assert {each["org"] for each in entries} == {"zenith"}
        cursor = json.dumps((await root("show_audit", {"cursor": "main/acme:99"}))[1])
        assert entry not in cursor


@pytest.mark.parametrize("desk", ["together", "apart"], indirect=True)
async def test_the_log_is_read_page_by_page_and_by_what_is_wanted(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann, call_as(desk, "rest", "root", "admin") as root:
        ids = [await store(ann, f"Note {number}") for number in range(4)]
        await ann("create_skill", {"conversation": TALK.format("label")})
        await ann("supersede_knowledge", {"oldId": ids[0], "newId": ids[1]})
        await ann("erase", {"entry": ids[0]})
        pages: list[list[dict[str, Any]]] = []
        asked: dict[str, Any] = {"limit": 3}
        while True:
            page = (await root("show_audit", asked))[1]
            pages.append(page["entries"])
            if "nextCursor" not in page:
                break
            asked["cursor"] = page["nextCursor"]
        shown = [entry for page in pages for entry in page]
        assert [len(page) for page in pages[:-1]] == [3] * (len(pages) - 1)
        assert [entry["at"] for entry in shown] == sorted((entry["at"] for entry in shown), reverse=True)
        actions = [entry["act"]["action"] for entry in shown if not entry["act"]["action"].startswith("keys.")]
        assert actions == ["erase", "supersede_knowledge", "create_skill", *["store_knowledge"] * 4]
        of_one = (await root("show_audit", {"record": ids[0]}))[1]["entries"]
        assert [entry["act"]["action"] for entry in of_one] == ["supersede_knowledge", "store_knowledge"]
        [refused] = (await root("show_audit", {"refused": "true", "agent": "ann"}))[1]["entries"]
        assert refused["act"]["outcome"] == "refused: PERMISSION_DENIED"
        assert (await root("show_audit", {"cursor": "nonsense"}))[0] == "INVALID_INPUT"


async def test_what_is_exported_can_be_checked_elsewhere(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann, call_as(desk, "rest", "root", "admin") as root:
        for number in range(5):
            await store(ann, f"Note {number}")
        entries: list[dict[str, Any]] = []
        while len(entries) < (page := (await root("export_audit", {"offset": len(entries), "limit": 2}))[1])["total"]:
            entries += page["entries"]
        [log, *_] = (await root("verify_audit", {}))[1]["logs"]
        assert (await root("export_audit", {"store": "nowhere"}))[0] == "INVALID_INPUT"
    last: AuditEntry | None = None
    for entry in entries:
        last = audit.make_entry(last, entry["org"], datetime.fromisoformat(entry["at"]), entry["act"])
        assert (last.digest, last.previous) == (entry["digest"], entry["previous"])
    assert last is not None
    assert log["end"] == f"{last.number}:{last.digest}"


async def test_a_changed_log_does_not_hold(desk: Desk, tmp_path: Path) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann, call_as(desk, "rest", "root", "admin") as root:
        await store(ann, "One")
        await store(ann, "Two")
        tamper(tmp_path / "desk.sqlite3", "DELETE FROM audit WHERE number = 3")
        verified = (await root("verify_audit", {}))[1]
    assert (verified["holds"], verified["logs"][0]["broken"]["number"]) == (False, 3)


async def test_one_thing_is_said_and_all_of_it_can_be_reached(tmp_path: Path) -> None:
    async with open_own(tmp_path) as desk, call_as(desk, "rest", "root", "admin") as root:
        for wanted in ({}, {"entry": "a", "agent": "b"}, {"agent": " "}, {"all": "true"}):
            assert (await root("erase", wanted))[0] == "INVALID_INPUT"
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path / 'a.sqlite3'}", skills_store="memory://")
    toolsets = load_toolsets(["knowledge", "azure-updates"], settings)
    async with open_desk(settings, toolsets, in_background=False) as desk, call_as(desk, "rest", "r", "admin") as root:
        code, answer = await root("erase", {"agent": "ann"})
        assert (code, "does not serve skills" in json.dumps(answer)) == ("CONFIGURATION_ERROR", True)


def test_on_the_command_line_each_store_has_an_end_of_its_own(tmp_path: Path) -> None:
    apart = {"REFDESK_SKILLS_STORE": f"sqlite:///{tmp_path / 'skills.sqlite3'}"}
    talk = tmp_path / "talk.txt"
    talk.write_text(TALK.format("label"))
    assert refdesk(tmp_path, ["skills", "learn", str(talk)], **apart).exit_code == 0
    assert refdesk(tmp_path, ["knowledge", "store", "--title", "A", "--body", "b"], **apart).exit_code == 0
    logs = json.loads(refdesk(tmp_path, ["audit", "verify", "--json"], **apart).stdout)["logs"]
    ends = [log["end"] for log in logs]
    assert [end.startswith("skills/") for end in ends] == [False, True]
    for end in ends:
        checked = refdesk(tmp_path, ["audit", "verify", "--org", "local", "--expect", end], **apart)
        assert checked.exit_code == 0, checked.output
        other = end.replace(":", "0:", 1)
        assert refdesk(tmp_path, ["audit", "verify", "--org", "local", "--expect", other], **apart).exit_code == 1
    shown = refdesk(tmp_path, ["audit", "show", "--limit", "1", "--json"], **apart).stdout
    [shown] = json.loads(shown)["entries"]
    assert shown["act"]["action"] == "store_knowledge"
