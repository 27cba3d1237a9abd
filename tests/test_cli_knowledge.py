"""Knowledge from the command line: stored, read, superseded, moved; keys, embedding and the worker."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from refdesk.cli import cli
from tests.acceptance.processes import WAIT_SECONDS, make_environment
from tests.test_cli import refdesk

KNOWLEDGE = ["--toolset", "knowledge"]


def store(home: Path, title: str, *options: str, body: str = "Some text.", **variables: str) -> dict[str, Any]:
    done = refdesk(home, ["knowledge", "store", "--title", title, "--body", body, "--json", *options], **variables)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def get(home: Path, id: str, *options: str) -> dict[str, Any]:
    done = refdesk(home, ["knowledge", "get", id, "--json", *options])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def found(home: Path, query: str, *options: str) -> list[str]:
    done = refdesk(home, ["search", *KNOWLEDGE, "--json", query, *options])
    assert done.exit_code == 0, done.stderr
    return [result["id"] for result in json.loads(done.stdout)["results"]]


def test_every_option_of_a_store_reaches_the_entry(tmp_path: Path) -> None:
    options = ["--tag", "Refund Policy", "--tag", "b", "--confidence", "7", "--expires-at", "2999-01-01T00:00:00Z"]
    options += ["--task", "T-1", "--task-kind", "references", "--agent", "ann", "--org", "acme"]
    entry = get(tmp_path, store(tmp_path, "Refunds", *options)["id"], "--org", "acme")
    assert (entry["title"], entry["body"], entry["author"]) == ("Refunds", "Some text.", "ann")
    assert (entry["tags"], entry["confidence"]) == (["refund-policy", "b"], 7)
    assert entry["expiresAt"] == "2999-01-01T00:00:00Z"
    assert entry["taskRefs"] == [{"taskId": "T-1", "kind": "references"}]


def test_what_was_just_stored_is_found_in_other_words_though_no_desk_runs(tmp_path: Path) -> None:
    id = store(tmp_path, "Deploy freeze", body="No deploys between Dec 20 and Jan 2.")["id"]
    words = ["knowledge", "search", "--json", "when may we not ship"]
    refused = refdesk(tmp_path, words, REFDESK_EMBEDDER="local", REFDESK_READ_ONLY="true")
    assert json.loads(refused.stdout)["results"] == []
    assert "1 document has no vectors yet, so only keyword search finds" in refused.stderr
    done = refdesk(tmp_path, words, REFDESK_EMBEDDER="local")
    assert [each["id"] for each in json.loads(done.stdout)["results"]] == [id]
    assert done.stderr == ""


def test_entries_and_tags_are_listed_without_a_query(tmp_path: Path) -> None:
    ids = [store(tmp_path, f"note {number}", "--tag", "all")["id"] for number in range(3)]
    page = refdesk(tmp_path, ["knowledge", "list", "--limit", "2"]).stdout
    assert [line[:36] for line in page.splitlines()[:2]] == ids[:0:-1]
    assert page.splitlines()[2] == "1 to 2 of 3"
    assert "3  all" in refdesk(tmp_path, ["knowledge", "tags"]).stdout
    assert "Try all." in refdesk(tmp_path, ["knowledge", "list", "--tag", "alls"]).stdout
    listed = json.loads(refdesk(tmp_path, ["knowledge", "list", "--offset", "2", "--json"]).stdout)
    assert [entry["id"] for entry in listed["entries"]] == ids[:1]


def test_a_body_comes_from_the_line_a_file_or_standard_input(tmp_path: Path) -> None:
    text = "Zeile 1\r\nZeile 2 ä\n"
    (tmp_path / "body.md").write_bytes(text.encode())
    (tmp_path / "marked.md").write_bytes(text.encode("utf-8-sig"))
    environment = {"REFDESK_HOME": str(tmp_path), "REFDESK_EMBEDDER": "hashing"}
    for options in (
        ["--body", "-"],
        ["--body-file", str(tmp_path / "body.md")],
        ["--body-file", str(tmp_path / "marked.md")],
    ):
        arguments = ["knowledge", "store", "--title", "T", "--json", *options]
        done = CliRunner().invoke(cli, arguments, env=environment, input=text)
        assert get(tmp_path, json.loads(done.stdout)["id"])["body"] == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Give the text once"),
        (["--body", "a", "--body-file", "b"], "Give the text once"),
        (["--body-file", "no-such-file"], "cannot be read"),
        (["--body", " "], "is blank"),
        (["--body", "a", "--expires-at", "2001-01-01"], "in the future"),
        (["--body", "a", "--client-token", "x"], "not a UUID"),
        (["--body", "a", "--confidence", "101"], "--confidence"),
    ],
)
def test_a_store_that_makes_no_sense_is_one_sentence(tmp_path: Path, options: list[str], words: str) -> None:
    done = refdesk(tmp_path, ["knowledge", "store", "--title", "T", *options])
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_body_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"\xff\xfe")
    done = refdesk(tmp_path, ["knowledge", "store", "--title", "T", "--body-file", str(tmp_path / "body")])
    assert (done.exit_code, "not UTF-8" in done.stderr) == (2, True)


def test_a_token_stores_nothing_twice(tmp_path: Path) -> None:
    token = ["--client-token", "0190163d-8694-739b-aea5-966c26f8ad91"]
    first, again = store(tmp_path, "A", *token), store(tmp_path, "A", *token)
    assert (again["id"], first["replayed"], again["replayed"]) == (first["id"], False, True)


def test_what_is_superseded_leads_to_what_holds(tmp_path: Path) -> None:
    old, new = store(tmp_path, "Limit is 500")["id"], store(tmp_path, "Limit is 600")["id"]
    done = refdesk(tmp_path, ["knowledge", "supersede", old, new])
    assert done.stdout.rstrip().endswith(f"what holds now is {new}.")
    assert found(tmp_path, "limit") == [new]
    shown = refdesk(tmp_path, ["knowledge", "get", old]).stdout
    assert f"what holds now is {new}" in shown
    assert f"> {old}" in shown


def test_what_others_wrote_can_be_superseded_only_by_them(tmp_path: Path) -> None:
    old, new = (store(tmp_path, title, "--agent", "ann")["id"] for title in "ab")
    denied = refdesk(tmp_path, ["knowledge", "supersede", old, new, "--agent", "bob"])
    assert (denied.exit_code, "wrote neither" in denied.stderr) == (2, True)
    assert refdesk(tmp_path, ["knowledge", "supersede", old, new, "--agent", "ann"]).exit_code == 0


def test_a_quota_from_the_settings_is_kept(tmp_path: Path) -> None:
    store(tmp_path, "A", REFDESK_KNOWLEDGE_AGENT_QUOTA="1")
    arguments = ["knowledge", "store", "--title", "B", "--body", "b"]
    for variables, code in (
        ({"REFDESK_KNOWLEDGE_AGENT_QUOTA": "1"}, 2),
        ({"REFDESK_KNOWLEDGE_ORG_QUOTA": "0"}, 2),
        ({"REFDESK_KNOWLEDGE_ORG_QUOTA": "None", "REFDESK_KNOWLEDGE_AGENT_QUOTA": "none"}, 0),
        ({"REFDESK_KNOWLEDGE_ORG_QUOTA": "-1"}, 1),
        ({"REFDESK_KNOWLEDGE_ORG_QUOTA": "many"}, 1),
    ):
        done = refdesk(tmp_path, arguments, **variables)
        assert done.exit_code == code, done.output
        assert code == 0 or "quota" in done.stderr.lower()


def test_a_search_of_several_toolsets_is_one_list_and_tells_of_each_toolset(tmp_path: Path) -> None:
    id = store(tmp_path, "Refund limit")["id"]
    answer = json.loads(refdesk(tmp_path, ["search", "--json", "refund", "limit"]).stdout)
    assert [(result["toolset"], result["id"]) for result in answer["results"]] == [("knowledge", id)]
    assert [line["toolset"] for line in answer["coverage"]] == ["azure-updates", "knowledge", "skills"]
    shown = refdesk(tmp_path, ["search", "refund"]).stdout
    assert f"knowledge · {id}" in shown
    assert "azure-updates: No sync has succeeded yet" in shown
    both = refdesk(tmp_path, ["search", "--json", "--toolset", "skills", "--toolset", "knowledge", "refund"]).stdout
    assert [line["toolset"] for line in json.loads(both)["coverage"]] == ["knowledge", "skills"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["refund", "--offset", "10"], "name it with --toolset"),
        (["refund", "--limit", "90"], "at most 50"),
        (["refund", "--filter", "minScore=0.1"], "one of language, since, tags, until"),
        (["refund", "--filter", "since=soon"], "2026-03-31"),
        (["refund", "--deadline-ms", "5"], "at least 100"),
        (["refund", "--toolset", "knowledge", "--deadline-ms", "500"], "several toolsets"),
        ([], "name one --toolset"),
    ],
)
def test_what_a_search_of_several_toolsets_does_not_know_is_refused_in_a_sentence(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = refdesk(tmp_path, ["search", *arguments])
    assert done.exit_code == 2
    assert words in done.stderr


def test_filters_are_those_of_the_toolset_that_is_searched(tmp_path: Path) -> None:
    wanted = store(tmp_path, "Refund", "--tag", "policy")["id"]
    store(tmp_path, "Refund again")
    assert found(tmp_path, "refund", "--filter", "tags=Policy") == [wanted]
    assert found(tmp_path, "refund", "--filter", "minScore=1.1e-3", "--filter", "includeSuperseded=true")
    answer = json.loads(refdesk(tmp_path, ["search", "--json", "refund", "--filter", "tags=Policy"]).stdout)
    assert [result["id"] for result in answer["results"]] == [wanted]
    late = refdesk(tmp_path, ["search", "--json", "refund", "--filter", "since=2999-01-01"]).stdout
    assert json.loads(late)["results"] == []
    assert refdesk(tmp_path, ["search", "refund", "--filter", "colour=red"]).exit_code == 2


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_what_is_exported_and_imported_is_exported_again_byte_for_byte(tmp_path: Path, form: str) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    old = store(home, "Old ä", "--tag", "b", "--tag", "a", body="Line\r\n\n---\n\ttab 😀 end ")["id"]
    new = store(home, "New", "--task", "T-1", "--expires-at", "2999-01-01")["id"]
    refdesk(home, ["knowledge", "supersede", old, new])
    for from_home, name in ((home, "first"), (other, "second")):
        arguments = ["export", "knowledge", "--format", form, "--output", str(tmp_path / name)]
        done = refdesk(from_home, arguments)
        assert done.exit_code == 0, done.stderr
        assert "2 entries" in done.stderr
        done = refdesk(other, ["import", "knowledge", "--format", form, str(tmp_path / name), "--json"])
        report = json.loads(done.stdout)
        assert (report["added"], report["unchanged"]) == ((2, 0) if name == "first" else (0, 2))
    assert read_all(tmp_path / "first") == read_all(tmp_path / "second")
    assert get(other, old) == get(home, old) | {"updatedAt": get(other, old)["updatedAt"]}


def read_all(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


def test_what_was_withdrawn_is_exported_and_can_be_restored_elsewhere(tmp_path: Path) -> None:
    id, path = str(store(tmp_path / "one", "Withdrawn")["id"]), tmp_path / "knowledge.jsonl"
    assert refdesk(tmp_path / "one", ["knowledge", "withdraw", id]).exit_code == 0
    assert refdesk(tmp_path / "one", ["export", "knowledge", "--output", str(path)]).exit_code == 0
    taken = refdesk(tmp_path / "two", ["import", "knowledge", "--format", "jsonl", str(path)])
    assert taken.exit_code == 0, taken.output
    assert "was withdrawn" in refdesk(tmp_path / "two", ["knowledge", "get", id]).output
    assert refdesk(tmp_path / "two", ["knowledge", "restore", id]).exit_code == 0
    assert get(tmp_path / "two", id)["title"] == "Withdrawn"


def test_an_export_to_standard_output_is_that_of_the_file(tmp_path: Path) -> None:
    store(tmp_path, "Ä", body="a\r\nb")
    refdesk(tmp_path, ["export", "knowledge", "--output", str(tmp_path / "file")])
    done = refdesk(tmp_path, ["export", "knowledge"])
    assert done.stdout_bytes == (tmp_path / "file").read_bytes()


def test_an_export_to_a_pipe_or_by_a_link_leaves_both_as_they_are(tmp_path: Path) -> None:
    store(tmp_path, "Ä", body="a\r\nb")
    expected = refdesk(tmp_path, ["export", "knowledge"]).stdout_bytes
    pipe, link, file = (tmp_path / name for name in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    link.symlink_to(file)
    file.write_text("old")
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(pipe.read_bytes)
        assert refdesk(tmp_path, ["export", "knowledge", "--output", str(pipe)]).exit_code == 0
        assert reading.result() == expected
    assert pipe.is_fifo()
    assert refdesk(tmp_path, ["export", "knowledge", "--output", str(link)]).exit_code == 0
    assert (link.readlink(), file.read_bytes()) == (file, expected)


def test_whoever_has_read_enough_of_an_export_is_told_nothing(tmp_path: Path) -> None:
    store(tmp_path, "Long", body="word " * 6_000)
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "refdesk", "export", "knowledge"],
            env=make_environment(tmp_path, REFDESK_EMBEDDER="hashing"),
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=WAIT_SECONDS,
            check=False,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (1, b"")


def test_of_a_key_for_which_there_is_no_room_no_part_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    make = ["keys", "make", "--agent", "bot", "--scope", "knowledge:read", "--append", str(file)]
    assert refdesk(tmp_path, make).exit_code == 0
    before = file.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "refdesk", *make],
        env=make_environment(tmp_path, PYTHONDONTWRITEBYTECODE="1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, len(before) + 20)),
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, b"cannot be written" in done.stderr) == (1, True), done.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export", "knowledge", "--format", "csv"], "as jsonl or markdown"),
        (["export", "azure-updates", "--format", "jsonl"], "as json or csv or md"),
        (["export", "knowledge", "--query", "x"], "exported whole"),
        (["export", "knowledge", "--format", "markdown"], "name a folder"),
        (["import", "knowledge", "--format", "jsonl", "no-such-file"], "no such file"),
    ],
)
def test_a_move_that_makes_no_sense_is_one_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = refdesk(tmp_path, arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_an_import_says_what_it_did_and_what_it_did_not(tmp_path: Path) -> None:
    good = {"id": "a", "memory": "Refund limit is 500", "user_id": "ann"}
    (tmp_path / "mem0.json").write_text(json.dumps({"results": [good, {"id": "b", "memory": 7}]}))
    command = ["import", "knowledge", "--format", "mem0", str(tmp_path / "mem0.json")]
    planned = refdesk(tmp_path, [*command, "--dry-run"])
    assert planned.stdout.startswith("Nothing was changed")
    assert found(tmp_path, "refund") == []
    done = refdesk(tmp_path, command)
    assert done.exit_code == planned.exit_code == 1
    assert done.stdout.splitlines()[1:] == planned.stdout.splitlines()[1:]
    assert "1  added" in done.stdout
    assert "1  invalid" in done.stdout
    assert len(found(tmp_path, "refund")) == 1


def test_a_worker_embeds_what_was_stored_and_ends(tmp_path: Path) -> None:
    id = store(tmp_path, "A")["id"]
    assert get(tmp_path, id)["embeddingStatus"] == "pending"
    checks = {check["name"]: check for check in json.loads(refdesk(tmp_path, ["doctor", "--json"]).stdout)["checks"]}
    assert "1 document waits for its vectors" in checks["embeddings"]["found"]
    assert "refdesk worker" in checks["embeddings"]["advice"]
    done = refdesk(tmp_path, ["worker", "--until-idle", *KNOWLEDGE])
    assert (done.exit_code, done.stdout) == (0, "Nothing is left to do.\n")
    assert get(tmp_path, id)["embeddingStatus"] == "ready"


def test_a_worker_that_cannot_embed_says_why(tmp_path: Path) -> None:
    store(tmp_path, "A")
    done = refdesk(tmp_path, ["worker", "--until-idle", *KNOWLEDGE], REFDESK_EMBEDDER="gemini")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "REFDESK_GEMINI_API_KEY" in done.stderr


def test_what_never_failed_cannot_be_tried_again(tmp_path: Path) -> None:
    assert refdesk(tmp_path, ["embeddings", "list"]).stdout == "Nothing failed.\n"
    assert json.loads(refdesk(tmp_path, ["embeddings", "retry", "--json"]).stdout) == {"retried": 0}


def make_key(home: Path, *options: str) -> Result:
    return refdesk(home, ["keys", "create", "--agent", "ann", *options])


def test_a_key_is_printed_once_and_never_listed(tmp_path: Path) -> None:
    made = make_key(tmp_path, "--scope", "knowledge:read", "knowledge:write", "--org", "acme", "--expires", "30d")
    secret = made.stdout.strip()
    assert secret.startswith("refdesk_")
    assert secret not in made.stderr
    listed = refdesk(tmp_path, ["keys", "list"]).stdout
    as_json = refdesk(tmp_path, ["keys", "list", "--json"]).stdout
    [key] = json.loads(as_json)["keys"]
    assert (key["org"], key["agent"], key["scopes"]) == ("acme", "ann", ["knowledge:read", "knowledge:write"])
    assert key["expiresAt"] is not None
    assert "valid until" in listed
    assert secret[8:] not in listed + as_json


@pytest.mark.parametrize(
    "scopes",
    [
        ["--scope", "knowledge:read", "--scope", "admin"],
        ["--scope", "knowledge:read", "admin"],
        ["--scope", "knowledge:read,admin"],
        ["--scope", "knowledge:read admin"],
    ],
)
def test_scopes_can_be_said_in_every_usual_way(tmp_path: Path, scopes: list[str]) -> None:
    made = json.loads(make_key(tmp_path, *scopes, "--json").stdout)
    assert made["scopes"] == ["admin", "knowledge:read"]
    assert made["key"].startswith("refdesk_")
    assert (made["org"], made["expiresAt"]) == ("local", None)


def test_a_revoked_key_is_shown_as_such(tmp_path: Path) -> None:
    id = json.loads(make_key(tmp_path, "--scope", "admin", "--json").stdout)["id"]
    assert "opens nothing any more" in refdesk(tmp_path, ["keys", "revoke", id]).stdout
    assert "revoked" in refdesk(tmp_path, ["keys", "list"]).stdout
    assert refdesk(tmp_path, ["keys", "list", "--org", "other", "--json"]).stdout == '{"keys":[]}\n'
    assert refdesk(tmp_path, ["keys", "revoke", "nobody"]).exit_code == 2


def test_a_rotated_key_prints_its_successor_and_when_it_ends(tmp_path: Path) -> None:
    id = json.loads(make_key(tmp_path, "--scope", "knowledge:read", "--json").stdout)["id"]
    rotated = json.loads(refdesk(tmp_path, ["keys", "rotate", id, "--overlap", "2h", "--json"]).stdout)
    assert (rotated["agent"], rotated["scopes"], rotated["expiresAt"]) == ("ann", ["knowledge:read"], None)
    assert (rotated["replaced"]["id"], rotated["replaced"]["revokedAt"]) == (id, None)
    again = refdesk(tmp_path, ["keys", "rotate", rotated["id"], "--overlap", "0h"])
    assert "does not expire" in again.stderr
    assert again.stdout.startswith("refdesk_")
    assert again.stdout.strip() not in again.stderr
    assert refdesk(tmp_path, ["keys", "rotate", rotated["id"]]).exit_code == 2
    assert "such as 12h" in refdesk(tmp_path, ["keys", "rotate", id, "--overlap", "later"]).stderr


@pytest.mark.parametrize("when", ["soon", "2001-01-01", "0d", "-1d", "30", "99999d", "2026-13-01"])
def test_a_key_that_makes_no_sense_is_not_made(tmp_path: Path, when: str) -> None:
    done = make_key(tmp_path, "--scope", "admin", "--expires", when)
    assert done.exit_code == 2
    assert done.stdout == ""
