"""`refdesk erase` and `refdesk audit`, as whoever runs the desk uses them; what was erased is looked for everywhere."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing
from refdesk.stores.sqlite import open_store
from tests.stores.traces import find_in_files
from tests.test_cli import refdesk

CANARY = "xylocarpine"


def ask(home: Path, *arguments: str) -> dict[str, Any]:
    result = refdesk(home, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def store(home: Path, body: str, *options: str) -> str:
    return str(ask(home, "knowledge", "store", "--title", f"About {body}", "--body", body, *options)["id"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_an_entry_is_gone_from_the_file_and_every_table_and_its_chain_leads_on(home: Path, tmp_path: Path) -> None:
    oldest, middle, newest = store(home, "first wording"), store(home, f"second {CANARY}"), store(home, "third")
    token = "0d3b2f6e-8a4e-4c0e-9d0f-5b1f3f0c9a11"
    alone = store(home, f"alone {CANARY}", "--client-token", token, "--task", f"T-{CANARY}", "--tag", CANARY)
    for old, new in ((oldest, middle), (middle, newest)):
        ask(home, "knowledge", "supersede", old, new)
    export = tmp_path / "export.jsonl"
    assert refdesk(home, ["export", "knowledge", "--format", "jsonl", "--output", str(export)]).exit_code == 0
    assert find_in_files(home, CANARY)
    for id in (middle, alone):
        assert ask(home, "erase", "--entry", id, "--yes") == {"erased": 1, "isScrubbed": True}
    assert find_in_files(home, CANARY) == []
    assert "was erased" in refdesk(home, ["knowledge", "get", middle]).output
    entry = ask(home, "knowledge", "get", oldest)
    assert entry["headId"] == newest
    assert [member["id"] for member in entry["chain"]] == [oldest, newest]
    later = store(home, "fourth")
    assert ask(home, "knowledge", "supersede", newest, later)["headId"] == later
    assert ask(home, "knowledge", "get", oldest)["headId"] == later
    taken = refdesk(home, ["import", "knowledge", str(export), "--format", "jsonl"])
    assert "was erased here, and stays so" in taken.output
    assert find_in_files(home, CANARY) == []
    again = tmp_path / "again.jsonl"
    assert refdesk(home, ["export", "knowledge", "--format", "jsonl", "--output", str(again)]).exit_code == 0
    assert CANARY not in again.read_text()
    verified = refdesk(home, ["audit", "verify"])
    assert verified.exit_code == 0, verified.output
    shown = refdesk(home, ["audit", "show", "--action", "erase", "--record", alone]).output
    assert f"erased knowledge/{alone}" in shown


def test_an_agent_and_an_org_are_erased_whole_and_others_stay(home: Path) -> None:
    mine, theirs = store(home, f"mine {CANARY}", "--agent", "ann"), store(home, "theirs", "--agent", "bob")
    elsewhere = store(home, "elsewhere", "--agent", "ann", "--org", "zenith")
    assert ask(home, "erase", "--agent", "ann", "--yes")["erased"] == 1
    assert find_in_files(home, CANARY) == []
    assert refdesk(home, ["knowledge", "get", mine]).exit_code == 2
    assert ask(home, "knowledge", "get", theirs)["author"] == "bob"
    assert ask(home, "knowledge", "get", elsewhere, "--org", "zenith")["author"] == "ann"
    ask(home, "keys", "create", "--org", "zenith", "--agent", "x", "--scope", "knowledge:read")
    assert ask(home, "erase", "--org", "zenith", "--yes")["erased"] == 1
    assert ask(home, "keys", "list")["keys"] == []
    assert refdesk(home, ["audit", "verify", "--org", "zenith"]).exit_code == 0
    assert refdesk(home, ["erase", "--org", "nobody", "--yes"]).exit_code == 2


def test_of_an_agent_that_wrote_no_document_no_byte_is_left_either(home: Path, tmp_path: Path) -> None:
    conversation = tmp_path / "printer.jsonl"
    turns = ("customer", "The printer does not print."), ("agent", "Restart the spooler."), ("customer", "It works.")
    messages = [{"role": role, "content": content} for role, content in turns]
    conversation.write_text(json.dumps({"messages": messages}))
    [learned] = ask(home, "skills", "learn", "--agent", "ann", "--confirmed", str(conversation))["learned"]
    ask(home, "skills", "report", "--agent", "bob", "--evidence", f"Said {CANARY}.", learned["skill_id"], "resolved")
    assert find_in_files(home, CANARY)
    assert ask(home, "erase", "--agent", "bob", "--yes") == {"erased": 0, "isScrubbed": True}
    assert find_in_files(home, CANARY) == []


@pytest.mark.parametrize("verdicts", [("both_hold",), ("both_hold", "reopen")])
def test_what_an_agent_said_in_judging_goes_and_its_judgement_stays(home: Path, verdicts: tuple[str, ...]) -> None:
    said = "The refund limit of gold customers is {} euros."
    one, other = store(home, said.format(300), "--agent", "ann"), store(home, said.format(500), "--agent", "ann")
    for verdict in verdicts:
        ask(home, "cases", "settle", verdict, one, other, "--agent", "bob", "--reason", f"Said {CANARY}.")
    assert find_in_files(home, CANARY)
    assert ask(home, "erase", "--agent", "bob", "--yes") == {"erased": 0, "isScrubbed": True}
    assert find_in_files(home, CANARY) == []
    [case] = ask(home, "cases", "--standing", "both_hold" if len(verdicts) == 1 else "open")["cases"]
    assert "settledBy" not in case
    assert "reason" not in case


def test_what_was_erased_stays_counted_in_the_quota_of_entries(home: Path) -> None:
    limits = {"REFDESK_KNOWLEDGE_ORG_QUOTA": "3", "REFDESK_KNOWLEDGE_AGENT_QUOTA": "2"}

    def add(agent: str) -> str:
        done = refdesk(home, ["knowledge", "store", "--agent", agent, "--title", "x", "--body", "x"], **limits)
        return done.output.partition("The quota ")[2].partition(" is used up")[0]

    first = store(home, "first", "--agent", "ann")
    assert add("ann") == ""
    ask(home, "erase", "--entry", first, "--yes")
    assert add("ann") == "knowledge_stored of this agent"
    ask(home, "erase", "--agent", "ann", "--yes")
    assert add("ann") == ""
    assert add("ann") == "knowledge_stored of this org"
    ask(home, "erase", "--org", "local", "--yes")
    assert add("ann") == ""


def test_it_asks_before_and_wants_one_thing_said(home: Path) -> None:
    id = store(home, "kept")
    for options in ([], ["--json"]):
        asked = ["erase", "--entry", id, *options]
        declined, unanswered = refdesk(home, asked, answer="n\n"), refdesk(home, asked)
        assert (declined.exit_code, unanswered.exit_code) == (1, 2)
        assert "--yes" in unanswered.stderr
        told = [each.stdout for each in (declined, unanswered)]
        codes = [json.loads(each)["error"]["code"] for each in told] if options else told
        assert codes == (["ABORTED", "INVALID_INPUT"] if options else ["", ""])
    assert ask(home, "knowledge", "get", id)["body"] == "kept"
    assert refdesk(home, ["erase", "--yes"]).exit_code == 2
    assert refdesk(home, ["erase", "--entry", id, "--agent", "ann", "--yes"]).exit_code == 2


def test_a_copy_from_before_does_not_bring_it_back(home: Path, tmp_path: Path) -> None:
    id = store(home, f"a {CANARY}")
    copy = tmp_path / "copy.sqlite3"
    file = sqlite3.connect(home / "refdesk.sqlite3")
    with closing(file) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    ask(home, "erase", "--entry", id, "--yes")
    anyio.run(keep_erased, home / "refdesk.sqlite3", copy, id)
    assert CANARY.encode() not in copy.read_bytes()


async def keep_erased(present: Path, copy: Path, id: str) -> None:
    async with open_store(present) as now, open_store(copy) as before:
        tombstones = [place async for place in erasing.list_tombstones(now)]
        assert [each for _, each in tombstones] == [id]
        assert await erasing.keep_erased(before, SystemClock(), tombstones) == 1
        assert await erasing.keep_erased(before, SystemClock(), tombstones) == 0


def test_a_key_and_a_refusal_are_on_record_and_no_secret(home: Path) -> None:
    made = ask(home, "keys", "create", "--agent", "bot", "--scope", "knowledge:read")
    ask(home, "keys", "revoke", str(made["id"]))
    lines = [json.loads(line) for line in refdesk(home, ["audit", "export"]).stdout.splitlines()]
    assert [line["act"]["action"] for line in lines if "act" in line] == ["keys.create", "keys.revoke"]
    assert str(made["key"]) not in str(lines)
    end = lines[-1]["end"]
    assert refdesk(home, ["audit", "verify", "--org", "local", "--expect", end]).exit_code == 0
    assert refdesk(home, ["audit", "verify", "--org", "local", "--expect", f"9:{end[2:]}"]).exit_code == 1


def test_an_empty_org_or_agent_stands_for_no_other(home: Path) -> None:
    kept = store(home, "kept", "--agent", "bot")
    for command in (
        ["erase", "--agent", "bot", "--org", "", "--yes"],
        ["erase", "--agent", " ", "--yes"],
        ["keys", "create", "--agent", "x", "--scope", "admin", "--org", ""],
        ["keys", "make", "--agent", "x", "--scope", "admin", "--org", ""],
        ["knowledge", "list", "--org", ""],
    ):
        refused = refdesk(home, command)
        assert (refused.exit_code, "it is empty: say a name" in refused.output) == (2, True), refused.output
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"
