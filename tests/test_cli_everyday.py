"""Everyday commands: edit and list without a query, spans, what is there, the desk's log, the console."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner

from refdesk.cli import cli, desk_log, overview, views, views_of_status
from tests.acceptance.processes import WAIT_SECONDS, make_environment, run, shake_hands, start
from tests.acceptance.test_desk import HASHING, SERVE
from tests.test_cli import refdesk
from tests.test_cli_knowledge import get, store


def ask(home: Path, *arguments: str) -> str:
    done = refdesk(home, arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_an_edit_changes_what_is_said_and_keeps_the_rest(tmp_path: Path) -> None:
    old = store(tmp_path, "Limit", "--tag", "refunds", "--confidence", "90")["id"]
    told = ask(tmp_path, "knowledge", "edit", old, "--body", "200 EUR")
    new = told.split()[0]
    entry = get(tmp_path, new)
    assert (entry["title"], entry["body"], entry["tags"], entry["confidence"]) == ("Limit", "200 EUR", ["refunds"], 90)
    assert f"instead of {old}" in told
    assert json.loads(ask(tmp_path, "knowledge", "edit", new, "--no-tags", "--json"))["oldId"] == new
    again = refdesk(tmp_path, ["knowledge", "edit", old, "--body", "1"])
    assert (again.exit_code, "Edit that" in again.stderr) == (2, True)
    assert refdesk(tmp_path, ["knowledge", "edit", new]).exit_code == 2


def test_a_search_whose_model_cannot_be_loaded_goes_by_words_and_says_so(tmp_path: Path) -> None:
    store(tmp_path, "Gate hours", body="The gate opens at nine.")
    broken = {"REFDESK_EMBEDDER": "local", "REFDESK_EMBEDDER_MODEL_PATH": str(tmp_path / "absent.onnx")}
    done = refdesk(tmp_path, ["search", "gate", "--json"], **broken)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["title"] for each in found["results"]] == ["Gate hours"]
    notes = {each["toolset"]: each["note"] for each in found["coverage"]}
    assert "these are keyword matches" in notes["knowledge"]


def test_an_edit_without_options_opens_an_editor_on_a_terminal(tmp_path: Path) -> None:
    id = store(tmp_path, "Limit", body="500 EUR")["id"]
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/500/200/" "$1"\n')
    editor.chmod(0o755)
    first, second = pty.openpty()
    command = [sys.executable, "-m", "refdesk", "knowledge", "edit", id, "--json"]
    environment = make_environment(tmp_path, **HASHING, EDITOR=str(editor), TERM="dumb")
    done = subprocess.run(
        command, env=environment, stdin=second, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    os.close(first)
    os.close(second)
    assert done.returncode == 0, done.stderr
    assert get(tmp_path, json.loads(done.stdout)["id"])["body"] == "200 EUR"


def test_a_folder_that_is_named_from_here_is_measured_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path / "home", "Limit")
    monkeypatch.chdir(tmp_path)
    sizes = [json.loads(ask(home, "status", "--json"))["report"]["sizes"] for home in (Path("home"), tmp_path / "home")]
    assert sizes[0] == sizes[1]
    assert sizes[0]["home"] >= sizes[0]["store"] > 0


def test_a_span_counts_from_now_wherever_a_time_is_given(tmp_path: Path) -> None:
    entry = get(tmp_path, store(tmp_path, "Limit", "--expires-at", "90d")["id"])
    ahead = datetime.fromisoformat(entry["expiresAt"]) - datetime.now(UTC)
    assert timedelta(days=89) < ahead < timedelta(days=91)
    for name, toolset in (("dateFrom", "azure-updates"), ("modifiedTo", "azure-updates")):
        ask(tmp_path, "search", "--toolset", toolset, "--filter", f"{name}=90d", "x")
    ask(tmp_path, "search", "--filter", "since=2w", "--filter", "until=+1d", "limit")
    assert ask(tmp_path, "knowledge", "list", "--since", "1h", "--until", "+1d").endswith("1 to 1 of 1\n")
    assert ask(tmp_path, "knowledge", "list", "--until", "1h") == "No entries.\n"
    ask(tmp_path, "watch", "--once", "--since", "2w")
    ask(tmp_path, "impact", "--until", "90d")
    for command in (["knowledge", "list", "--since"], ["watch", "--once", "--since"], ["impact", "--until"]):
        refused = refdesk(tmp_path, [*command, "90x"])
        assert (refused.exit_code, "a span such as 12h, 30d or 8w" in refused.output) == (2, True), refused.output
    refused = refdesk(tmp_path, ["search", "--filter", "since=soon", "limit"])
    assert refused.exit_code == 2
    for mistyped in ("90x", "3 months"):
        refused = refdesk(tmp_path, ["search", "--filter", f"since={mistyped}", "limit"])
        assert (refused.exit_code, "a span such as 12h, 30d or 8w" in refused.output) == (2, True), refused.output


def test_skills_and_announcements_are_listed_without_a_query(tmp_path: Path) -> None:
    talk = tmp_path / "talk.txt"
    talk.write_text("Customer: My bill is wrong.\nAgent: I have corrected it.\nCustomer: Thanks, it works!\n")
    ask(tmp_path, "skills", "learn", str(talk), "--org", "acme")
    shown = ask(tmp_path, "skills", "list", "--org", "acme")
    assert "1 to 1 of 1" in shown
    assert json.loads(ask(tmp_path, "skills", "list", "--json"))["total"] == 0
    assert json.loads(ask(tmp_path, "updates", "list", "--json"))["total"] == 0
    assert json.loads(ask(tmp_path, "updates", "tags", "--json")) == {"facet": "tags", "values": []}
    assert ask(tmp_path, "updates", "tags").strip() == "No announcement has any."
    assert refdesk(tmp_path, ["updates", "show", "1"]).exit_code == 2


def test_refdesk_alone_says_what_is_there_and_what_comes_next(tmp_path: Path) -> None:
    assert "nothing is kept yet" in ask(tmp_path)
    assert not (tmp_path / "refdesk.sqlite3").exists()
    store(tmp_path, "Limit")
    shown = ask(tmp_path)
    assert "1 document\n" in shown
    assert "azure-updates" in shown
    assert "refdesk connect" in shown
    assert "refdesk sync azure-updates" in shown


def test_the_next_steps_are_those_that_are_not_done() -> None:
    desks = [{"clients": [{"client": "cursor"}]}]
    synced = {"toolset": "azure-updates", "lastSuccess": "2026-01-01T00:00:00+00:00"}
    report = {"syncs": [synced], "health": {"status": "ok", "toolsets": {"azure-updates": {"documents": 9}}}}
    commands = [command for command, _ in overview.list_steps(desks, report)]
    assert commands == [
        *("refdesk knowledge store --title … --body …", "refdesk search …"),
        *("refdesk open", "refdesk --help"),
    ]


def test_status_shows_clients_sizes_freshness_and_failures(tmp_path: Path) -> None:
    with start(SERVE, tmp_path, **HASHING) as client:
        shake_hands(client)
        store_one = ["knowledge", "store", "--title", "T", "--body", "B"]
        assert run(store_one, tmp_path, **HASHING).returncode == 0
        said = json.loads(run(["status", "--json"], tmp_path, **HASHING).stdout)
        [desk] = said["desks"]
        assert [each["client"] for each in desk["clients"]] == ["probe"]
        assert desk["memory"] > 10_000_000
        report = said["report"]
        assert report["sizes"]["home"] >= report["sizes"]["store"] > 0
        assert report["health"]["toolsets"]["knowledge"]["documents"] == 1
        assert [each["toolset"] for each in report["syncs"]] == ["azure-updates"]
        shown = run(["status"], tmp_path, **HASHING).stdout
        assert "1 document" in shown
        assert "azure-updates" in shown
    alone = json.loads(run(["status", "--json"], tmp_path, **HASHING).stdout)
    assert (alone["desks"], alone["report"]["health"]["toolsets"]["knowledge"]["documents"]) == ([], 1)


def test_a_report_tells_syncs_jobs_failures_and_backups() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    before = (now - timedelta(hours=3)).isoformat()
    sync = {"toolset": "a", "isDue": True, "isRunning": False, "read": None, "total": None}
    embedding = {"model": "m", "searchedBy": "m", "documents": 9, "embedded": 5, "waiting": 4, "failed": 2}
    report = {
        "sizes": {"store": 2_000_000, "home": 3_000_000_000},
        "health": {
            "status": "degraded",
            "problems": ["Something."],
            "toolsets": {"a": {"asOf": before, "documents": 1200}, "b": {"asOf": None}},
            "lastBackup": before,
        },
        "syncs": [{**sync, "lastSuccess": before, "lastError": "gone", "lastErrorAt": before}],
        "embedding": embedding,
        "orgs": {"acme": 900},
        "setAside": 3,
        "queue": {"isShared": True, "trouble": None},
    }
    shown = views_of_status.render_report("/data", report, now)
    for words in (
        "/data: 3.0 GB, the store 2.0 MB of it",
        "a  1,200 documents; synced 3 h ago, and due again; the last try failed 3 h ago",
        "b  asked live",
        "5 of 9 documents have their vectors",
        "2 could not be embedded",
        "3 records were set aside, for what a source gave could not be read",
        "through a queue",
        "backed up 3 h ago",
        "acme keeps 900 B",
        "Degraded: Something.",
    ):
        assert words in shown
    running = {**sync, "isRunning": True, "read": 40, "total": 300, "lastSuccess": None, "lastErrorAt": None}
    assert "being synced: 40 of 300 read" in views_of_status.render_report("/", {**report, "syncs": [running]}, now)


def test_the_desks_log_is_shown_for_people_and_as_it_is(tmp_path: Path) -> None:
    assert "there is no log" in run(["logs"], tmp_path).stderr
    with start(SERVE, tmp_path, **HASHING) as client:
        shake_hands(client)
        shown = run(["logs"], tmp_path).stdout
        assert "the desk serves" in shown
        entries = [json.loads(line) for line in run(["logs", "--json"], tmp_path).stdout.splitlines()]
        assert "the desk serves" in {entry["message"] for entry in entries}
        with start(["-m", "refdesk", "logs", "--follow", "--lines", "1"], tmp_path, PYTHONUNBUFFERED="1") as reader:
            reader.read_line()  # it follows
            missing = ["knowledge", "get", "01900000-0000-7000-8000-000000000000"]
            assert run(missing, tmp_path, **HASHING).returncode == 2
            while "get_knowledge" not in reader.read_line():
                pass


def test_a_server_over_http_is_said_to_write_its_log_elsewhere(tmp_path: Path) -> None:
    with start(["-m", "refdesk", "serve", "--no-auth", "--port", "0"], tmp_path, **HASHING) as server:
        server.read_log("listening")
        server.read_log("the desk serves")
        for arguments in (["logs"], ["logs", "--json"]):
            done = run(arguments, tmp_path)
            assert f"process {server.process.pid}" in done.stderr
            assert "standard error" in done.stderr
            assert "No desk" not in done.stderr
            assert done.stdout == ""


def test_a_log_is_followed_into_the_file_that_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("zero\none\n")
    following = desk_log.read_on(path, 1)
    assert [next(following), next(following)] == ["one", None]
    os.replace(path, tmp_path / "a.log.old")
    path.write_text("two\nthr")
    assert [next(following), next(following)] == ["two", None]
    with path.open("a") as file:
        file.write("ee\n")
    assert next(following) == "three"
    following.close()
    assert list(islice(desk_log.read_on(path, 3), 3)) == ["one", "two", "three"]


def test_lines_of_a_log_cannot_steer_the_terminal() -> None:
    line = json.dumps({"time": "2026-01-01T00:00:00", "level": "info", "message": "x\x1b[2J", "n": 3})
    assert desk_log.tell(line) == "2026-01-01 00:00:00  info     x [2J  n=3"
    assert desk_log.tell("no\x1bjson") == "no json"


def test_ids_stay_whole_in_a_narrow_terminal(tmp_path: Path) -> None:
    id = store(tmp_path, "A limit for refunds that has rather a long title")["id"]
    first, second = pty.openpty()
    fcntl.ioctl(second, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    command = [sys.executable, "-m", "refdesk", "search", "--toolset", "knowledge", "refunds"]
    environment = make_environment(tmp_path, **HASHING, TERM="xterm")
    done = subprocess.Popen(command, env=environment, stdout=second, stderr=subprocess.DEVNULL)
    os.close(second)
    shown = io.BytesIO()
    while piece := _read(first):
        shown.write(piece)
    os.close(first)
    assert done.wait(WAIT_SECONDS) == 0
    assert id.encode() in shown.getvalue()


def _read(number: int) -> bytes:
    try:
        return os.read(number, 65536)
    except OSError:  # how a terminal says that nobody writes to it any more
        return b""


@pytest.mark.parametrize("width", [10, 40, 110])
def test_facts_are_folded_between_and_never_within(width: int) -> None:
    facts = [str(uuid.UUID(int=1)), "2026-01-01", "ann", "a, b, c"]
    lines = views.fold_facts(facts, width)
    assert [fact for line in lines for fact in line.split(views.BETWEEN)] == facts
    assert all(len(line) <= width or line in facts for line in lines)


def test_open_gives_an_address_that_signs_in_once(tmp_path: Path) -> None:
    serve = ["-m", "refdesk", "serve", "--port", "0", "--toolset", "knowledge"]
    with start(serve, tmp_path, **HASHING) as server:
        url = server.read_log("listening")["url"]
        server.read_log("the desk serves")
        link = json.loads(run(["open", "--json"], tmp_path, **HASHING).stdout)["url"]
        assert link.startswith(f"{url}/console/sign-in?ticket=")
        with httpx2.Client(timeout=WAIT_SECONDS, follow_redirects=True) as browser:
            assert browser.get(f"{url}/?q=limit").url.path == "/console/sign-in"
            assert browser.get(link).url.path == "/"
            found = browser.get(f"{url}/?q=limit")
            assert (found.status_code, found.url.path) == (200, "/")
        with httpx2.Client(timeout=WAIT_SECONDS, follow_redirects=True) as other:
            assert other.get(link).url.path == "/console/sign-in"
        listed = json.loads(run(["keys", "list", "--json"], tmp_path, **HASHING).stdout)["keys"]
        assert [(key["agent"], key["expiresAt"] is not None) for key in listed] == [("console", True)]


def test_open_says_where_the_console_is_that_takes_everybody_and_how_to_start_one(tmp_path: Path) -> None:
    assert json.loads(run(["open", "--json"], tmp_path).stdout) == {"url": None}
    assert "refdesk serve --no-auth" in run(["open", "--print"], tmp_path).stdout
    with start(["-m", "refdesk", "serve", "--no-auth", "--port", "0"], tmp_path, **HASHING) as server:
        url = server.read_log("listening")["url"]
        server.read_log("the desk serves")
        assert run(["open", "--print"], tmp_path, **HASHING).stdout.strip() == f"{url}/"


def test_open_starts_a_server_where_none_runs_and_a_browser_on_it(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "xdg-open").symlink_to(browser)
    variables = {"BROWSER": f"{browser} %s", "PATH": path, "PYTHONUNBUFFERED": "1", **HASHING}
    with start(["-m", "refdesk", "open", "--port", "0"], tmp_path, **variables) as server:
        url = server.read_log("listening")["url"]
        assert httpx2.get(url, timeout=WAIT_SECONDS).status_code == 200
        assert "No server runs" in server.read_line()
        assert server.read_line() == f"{url}/"


@pytest.mark.parametrize("command", [["search", "x"], ["status"]])
def test_no_color_is_heeded_where_colours_would_be_seen(tmp_path: Path, command: list[str]) -> None:
    environment = {"REFDESK_HOME": str(tmp_path), "REFDESK_EMBEDDER": "hashing", "NO_COLOR": "1"}
    environment["REFDESK_AZURE_UPDATES_URL"] = "http://127.0.0.1:9/feed"
    assert "\x1b" not in CliRunner().invoke(cli, command, env=environment, color=True).output


def test_help_lists_every_command_with_all_that_is_said_of_it() -> None:
    def list_groups(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(command, click.Group):
            yield path
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from list_groups(found, (*path, name))

    groups = list(list_groups(cli, ()))
    assert {(), ("knowledge",), ("watches",)} <= set(groups)
    for path in groups:
        listed = CliRunner().invoke(cli, [*path, "--help"], terminal_width=80).stdout.partition("Commands:")[2]
        assert (listed != "", "..." in listed) == (True, False), path


@pytest.mark.parametrize("group", ["knowledge", "updates"])
def test_each_group_searches_what_it_is_about(tmp_path: Path, group: str) -> None:
    id = store(tmp_path, "Refund limit", body="500 EUR")["id"]
    found = json.loads(ask(tmp_path, group, "search", "refund", "limit", "--json"))
    assert [each["id"] for each in found["results"]] == ([id] if group == "knowledge" else [])


def test_a_search_is_hybrid_unless_keywords_alone_are_asked_for(tmp_path: Path) -> None:
    store(tmp_path, "Refund limit", body="500 EUR")
    for group in ("knowledge", "updates"):
        for options in ((), ("--semantic",)):
            done = refdesk(tmp_path, [group, "search", *options, "refund"], REFDESK_EMBEDDER="local")
            assert (done.exit_code, "still loading" in done.stdout) == (0, False), done.stderr
    assert json.loads(ask(tmp_path, "updates", "search", "--keyword", "--json", "refund"))["results"] == []
    for scope in (["knowledge", "search"], ["search"]):
        refused = refdesk(tmp_path, [*scope, "--keyword", "refund"])
        assert (refused.exit_code, "--keyword" in refused.stderr) == (2, True)


def test_a_misspelt_toolset_is_the_callers_to_mend_and_the_nearest_is_named(tmp_path: Path) -> None:
    refused = refdesk(tmp_path, ["search", "--toolset", "knowlege", "refunds"])
    assert (refused.exit_code, "Did you mean knowledge or" in refused.stderr) == (2, True)


def test_lists_without_anything_say_so_and_counts_agree_with_their_nouns(tmp_path: Path) -> None:
    assert ask(tmp_path, "knowledge", "list") == "No entries.\n"
    assert ask(tmp_path, "knowledge", "tags") == "No tags.\n"
    assert ask(tmp_path, "skills", "list") == "No skills.\n"
    store(tmp_path, "Limit", "--tag", "refunds")
    assert ask(tmp_path, "knowledge", "tags").endswith("\n1 tag\n")
    assert ask(tmp_path, "knowledge", "list", "--offset", "5") == "No further entries: there are 1 in all.\n"


def test_the_audit_log_names_a_few_records_of_each_act_and_counts_the_rest(tmp_path: Path) -> None:
    things = [{"type": "entity", "name": f"Limit {n}", "entityType": "rule", "observations": ["x"]} for n in range(5)]
    (tmp_path / "memory.jsonl").write_text("\n".join(json.dumps(thing) for thing in things))
    ask(tmp_path, "import", "knowledge", str(tmp_path / "memory.jsonl"), "--format", "mcp-memory")
    [told] = [line for line in ask(tmp_path, "audit", "show").splitlines() if "created" in line]
    assert (told.count("created knowledge/"), told.endswith(", and 2 more")) == (3, True)
    entries = json.loads(ask(tmp_path, "audit", "show", "--json"))["entries"]
    [act] = [each for each in entries if "created" in json.dumps(each)]
    assert len(act["act"]["records"]) == 5
    assert ask(tmp_path, "audit", "show", "--record", "nope") == "Nothing is on record.\n"
    assert ask(tmp_path, "audit", "show", "--record", "nope", "--json") == '{"entries":[]}\n'


def test_who_stores_what_is_there_already_is_told(tmp_path: Path) -> None:
    first = ask(tmp_path, "knowledge", "store", "--title", "Limit", "--body", "500 EUR")
    again = ask(tmp_path, "knowledge", "store", "--title", "Limit", "--body", "500 EUR")
    assert "says the same" not in first
    assert f"The entry {first.split()[1].rstrip('.')} says the same" in again


def test_restoring_a_version_says_which_one_it_takes_the_place_of(tmp_path: Path) -> None:
    old = store(tmp_path, "Limit", body="500 EUR")["id"]
    told = ask(tmp_path, "knowledge", "edit", old, "--body", "200 EUR")
    assert f"refdesk knowledge restore {old} undoes the edit" in told
    edit = told.split()[0]
    assert f"refdesk knowledge restore {edit} brings it back" in ask(tmp_path, "knowledge", "restore", old)
    assert ask(tmp_path, "knowledge", "restore", edit) == f"{edit} holds again.\n"
    assert f"what holds now is {edit}" in ask(tmp_path, "knowledge", "get", old)


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["search", "--json", "--nope"], 2, "INVALID_INPUT"),
        (["search", "--json"], 2, "INVALID_INPUT"),
        (["knowledge", "list", "--limit", "0", "--json"], 2, "INVALID_INPUT"),
        (["knowledge", "get", "01930000-0000-7000-8000-000000000001", "--json"], 2, "NOT_FOUND"),
        (["backup", "/nowhere/at/all", "--json"], 1, "CONFIGURATION_ERROR"),
        (["articles", "search", "refunds", "--json"], 1, "AUTH_ERROR"),
    ],
)
def test_who_asks_for_json_gets_errors_as_json_too(
    tmp_path: Path, arguments: list[str], status: int, code: str
) -> None:
    done = refdesk(tmp_path, arguments)
    told = json.loads(done.stdout)["error"]
    assert (done.exit_code, told["code"]) == (status, code)
    assert told["message"] in done.stderr


def test_who_searches_for_json_asks_for_none(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["search", "--nope", "--", "--json"])
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_title_that_a_pipe_cannot_encode_is_shown_all_the_same(tmp_path: Path) -> None:
    settings = {"REFDESK_HOME": str(tmp_path), "REFDESK_EMBEDDER": "hashing", "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "refdesk", "knowledge"]
    for arguments in (["store", "--title", "退款 limit", "--body", "x"], ["list"]):
        done = subprocess.run(
            [*command, *arguments], env={**os.environ, **settings}, capture_output=True, timeout=120, check=True
        )
    assert rb"\u9000\u6b3e limit" in done.stdout


def test_no_empty_path_means_the_folder_one_is_in(tmp_path: Path) -> None:
    for arguments in (["skills", "export", ""], ["export", "azure-updates", "--output", ""], ["backup", ""]):
        done = refdesk(tmp_path, arguments)
        assert (done.exit_code, "it is empty" in done.stderr) == (2, True), arguments


@pytest.mark.parametrize("command", ["knowledge", "skills", "updates"])
def test_an_empty_cursor_is_none_as_in_a_script_before_its_first_page(tmp_path: Path, command: str) -> None:
    assert json.loads(ask(tmp_path, command, "list", "--cursor", "", "--json"))["total"] == 0
