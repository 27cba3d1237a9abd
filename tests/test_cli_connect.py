"""`refdesk connect`: what it writes for each client, what it leaves alone, and that what it writes works."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from refdesk.cli import cli, config_files
from refdesk.cli.clients import CLIENTS
from tests.acceptance.processes import kill_desks, run, start

FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "vscode": ".config/Code/User/mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "gemini-cli": ".gemini/settings.json",
}
COMMENTED = """// Mine.
{
    "theme": "dark", // at night
    "mcpServers": {
        /* the other one */
        "other": { "command": "x", },
    },
}
"""
KEY = "REFDESK_KEY"


def connect(home: Path, client: str, *options: str, **variables: str) -> Result:
    environment = {"HOME": str(home), "XDG_CONFIG_HOME": "", "REFDESK_HOME": str(home), **variables}
    return CliRunner().invoke(cli, ["connect", client, *options], env=environment)


def read(home: Path, client: str) -> dict[str, Any]:
    text = (home / FILES[client]).read_text()
    return tomllib.loads(text) if client == "codex" else json.loads(text)


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_gets_its_own_file_and_form(tmp_path: Path, client: str) -> None:
    done = connect(tmp_path, client, "--dry-run", "--toolset", "knowledge")
    assert done.exit_code == 0, done.stderr
    assert str(tmp_path / FILES[client]) in done.stdout
    assert done.stdout.endswith("Nothing was written.\n")
    assert not (tmp_path / FILES[client]).exists()
    added = "\n".join(line[1:] for line in done.stdout.splitlines()[3:] if line.startswith("+"))
    shown = tomllib.loads(added) if client == "codex" else json.loads(added)
    [(section, servers)] = shown.items()
    assert section == CLIENTS[client].section
    assert servers["refdesk"]["args"][-4:] == ["serve", "--stdio", "--toolset", "knowledge"]
    assert os.access(servers["refdesk"]["command"], os.X_OK)


def test_what_is_written_answers_and_is_taken_out_again(tmp_path: Path) -> None:
    file = tmp_path / FILES["cursor"]
    file.parent.mkdir()
    file.write_text(COMMENTED)
    try:
        options = ["--yes", "--toolset", "knowledge", "--agent", "editor"]
        # A process of its own: what the client starts shares its stderr.
        done = run(["connect", "cursor", *options], tmp_path, HOME=str(tmp_path), XDG_CONFIG_HOME="")
    finally:
        kill_desks(tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"answers with [1-9]\d* tools", done.stdout)
    written = config_files.read_json(file.read_text())
    assert written["mcpServers"]["refdesk"]["env"]["REFDESK_HOME"] == str(tmp_path)
    assert (file.parent / "mcp.json.before-refdesk").read_text() == COMMENTED
    assert connect(tmp_path, "cursor", "--remove", "--yes").exit_code == 0
    assert file.read_text() == COMMENTED
    assert "needs no change" in connect(tmp_path, "cursor", "--remove").stdout


def test_over_http_the_key_stays_in_the_environment(tmp_path: Path) -> None:
    made = run(["keys", "create", "--agent", "ann", "--scope", "knowledge:read"], tmp_path)
    assert made.returncode == 0, made.stderr
    key = made.stdout.split()[0]
    serve = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
    with start(serve, tmp_path) as server:
        url = server.read_log("listening")["url"] + "/mcp"
        wrong = connect(tmp_path, "codex", "--yes", "--url", url, **{KEY: "no-key"})
        assert "nothing was written" in wrong.stderr
        assert not (tmp_path / FILES["codex"]).exists()
        right = connect(tmp_path, "codex", "--yes", "--url", url, **{KEY: key})
    assert right.exit_code == 0, right.stderr
    assert read(tmp_path, "codex") == {"mcp_servers": {"refdesk": {"url": url, "bearer_token_env_var": KEY}}}


def test_a_server_that_does_not_answer_is_not_written(tmp_path: Path) -> None:
    done = connect(tmp_path, "vscode", "--yes", "--url", "http://127.0.0.1:1/mcp")
    assert done.exit_code == 1
    assert "nothing was written" in done.stderr
    assert not (tmp_path / FILES["vscode"]).exists()


def test_no_secret_is_written(tmp_path: Path) -> None:
    variables = {"REFDESK_OPENAI_API_KEY": "sk-very-secret", "REFDESK_AGENT": "ann"}
    done = connect(tmp_path, "claude-code", "--dry-run", **variables)
    assert "sk-very-secret" not in done.stdout + done.stderr
    assert "REFDESK_OPENAI_API_KEY" in done.stderr
    assert '"REFDESK_AGENT": "ann"' in done.stdout


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", "{"),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": 1}'),
        ("codex", "a = "),
        ("codex", "mcp_servers = {}"),
    ],
)
def test_a_file_that_cannot_be_edited_stays_and_the_error_says_what_to_write(
    tmp_path: Path, client: str, text: str
) -> None:
    file = tmp_path / FILES[client]
    file.parent.mkdir()
    file.write_text(text)
    done = connect(tmp_path, client, "--write")
    assert done.exit_code == 2
    assert "was left as it is" in done.stderr
    read_as = tomllib.loads if client == "codex" else json.loads
    [(section, servers)] = read_as(done.stderr.partition("add this:")[2]).items()
    assert (section, servers["refdesk"]["args"]) == (CLIENTS[client].section, ["serve", "--stdio"])
    assert file.read_text() == text


def test_the_tools_that_a_client_is_to_have_are_offered(tmp_path: Path) -> None:
    file, counts = tmp_path / "mcp.json", list[int]()
    for more in ([], ["--tools", "all"]):
        try:
            done = run(["connect", "cursor", "--write", "--file", str(file), *more], tmp_path)
        finally:
            kill_desks(tmp_path)
        found = re.search(r"answers with (\d+) tools", done.stdout)
        assert found is not None, done.stderr
        counts.append(int(found[1]))
    assert counts[0] < counts[1]
    written = config_files.read_json(file.read_text())
    assert written["mcpServers"]["refdesk"]["args"] == ["serve", "--stdio", "--tools", "all"]
    assert "leave them out beside --url" in connect(tmp_path, "cursor", "--url", "http://x", "--tools", "all").stderr


def test_the_usage_names_every_client_whole() -> None:
    shown = CliRunner().invoke(cli, ["connect", "--help"], terminal_width=80).stdout
    assert all(client in shown for client in CLIENTS)


def test_a_client_that_has_no_such_thing_says_so(tmp_path: Path) -> None:
    assert "local servers only" in connect(tmp_path, "claude-desktop", "--url", "https://desk.example.com/mcp").stderr
    assert "leave out --project" in connect(tmp_path, "windsurf", "--project").stderr


BLANKS = st.sampled_from(["", " ", "\n", "\n  ", " // a note\n", " /* , { */ "])
NAMES = st.sampled_from(["a", "servers", "refdesk", "x\u0301", 'q"', "//"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@st.composite
def make_text(draw: st.DrawFn, depth: int = 2) -> str:
    """An object in JSON with comments and trailing commas."""
    members: list[str] = []
    for name in draw(st.lists(NAMES, unique=True, max_size=3)):
        is_object = depth > 0 and (name == "servers" or draw(st.booleans()))
        value = draw(make_text(depth=depth - 1)) if is_object else json.dumps(draw(LEAVES))
        members.append(draw(BLANKS) + json.dumps(name) + draw(BLANKS) + ":" + draw(BLANKS) + value + draw(BLANKS))
    trailing = "," + draw(BLANKS) if members and draw(st.booleans()) else ""
    return "{" + ",".join(members) + trailing + draw(BLANKS) + "}"


@given(make_text(), st.sampled_from(["refdesk", "other"]))
def test_an_edit_changes_one_entry_and_nothing_else(text: str, name: str) -> None:
    before = config_files.read_json(text)
    if not isinstance(before.get("servers", {}), dict):
        return
    entry = {"command": "refdesk", "args": ["serve"]}
    put = config_files.edit_json(text, "servers", name, entry)
    assert config_files.read_json(put) == {**before, "servers": {**before.get("servers", {}), name: entry}}
    assert config_files.edit_json(put, "servers", name, entry) == put
    left = config_files.read_json(config_files.edit_json(put, "servers", name, None))
    expected = {key: value for key, value in before.get("servers", {}).items() if key != name}
    assert left.get("servers", {}) == expected
    # Comments stay, but for those inside an entry that is replaced.
    if name not in before.get("servers", {}):
        assert put.count("// a note") == text.count("// a note")


def test_toml_keeps_comments_and_other_tables() -> None:
    table = '[mcp_servers.refdesk]\ncommand = "old"\n[mcp_servers.refdesk.env]\nA = "1"\n'
    text = f'model = "o" # mine\n\n{table}\n[z]\nb = 1\n'
    edited = config_files.edit_toml(text, "mcp_servers", "refdesk", {"command": "new", "env": {"B": "2"}})
    assert "# mine" in edited
    assert tomllib.loads(edited) == {
        "model": "o",
        "mcp_servers": {"refdesk": {"command": "new", "env": {"B": "2"}}},
        "z": {"b": 1},
    }
    assert config_files.edit_toml(edited, "mcp_servers", "refdesk", None) == 'model = "o" # mine\n\n[z]\nb = 1\n'


ENTRY = {"command": "refdesk", "args": ["serve"], "env": {"A": "1"}}
PIECES = st.sampled_from(
    ["# a note\n", "\n", "\n\n", "a = 1\n", "[z]\nb = 1\n", '[x.y]\nc = """\n# none\n"""\n', "[[w]]\n"]
)


def as_windows_has_it(text: str) -> str:
    return "\ufeff" + text.replace("\n", "\r\n")


def is_longer_by_one_piece(text: str, longer: str) -> bool:
    """Whether a text is another one with something put in at one place."""
    same = next((place for place, pair in enumerate(zip(text, longer, strict=False)) if pair[0] != pair[1]), len(text))
    return longer.endswith(text[same:]) and len(longer) >= len(text)


@given(make_text())
def test_an_edit_of_json_keeps_every_other_byte_and_how_lines_end(text: str) -> None:
    before = config_files.read_json(text)
    if not isinstance(before.get("servers", {}), dict) or "new" in before.get("servers", {}):
        return
    put = config_files.edit_json(text, "servers", "new", ENTRY)
    assert is_longer_by_one_piece(text, put)
    assert is_longer_by_one_piece(config_files.edit_json(put, "servers", "new", None), put)
    marked = as_windows_has_it(text)
    assert is_longer_by_one_piece(marked, config_files.edit_json(marked, "servers", "new", ENTRY))
    if "\n" in text:
        assert config_files.edit_json(marked, "servers", "new", ENTRY) == as_windows_has_it(put)
        left = config_files.edit_json(as_windows_has_it(put), "servers", "new", None)
        assert left == as_windows_has_it(config_files.edit_json(put, "servers", "new", None))


@given(st.lists(PIECES, max_size=6, unique=True).map("".join))
def test_an_edit_of_toml_keeps_every_other_byte_and_how_lines_end(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    put = config_files.edit_toml(text, "mcp_servers", "refdesk", ENTRY)
    assert put.startswith(text)
    assert config_files.edit_toml(put, "mcp_servers", "refdesk", None).rstrip("\n") == text.rstrip("\n")
    changed = config_files.edit_toml(f"{put}\n# of z\n[zz]\n", "mcp_servers", "refdesk", {**ENTRY, "command": "b"})
    assert changed == f"{put}\n# of z\n[zz]\n".replace('"refdesk"', '"b"')
    if "\n" in text:
        marked = config_files.edit_toml(as_windows_has_it(text), "mcp_servers", "refdesk", ENTRY)
        assert marked == as_windows_has_it(put)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{\n\t"mcpServers": {\n\t\t"other": {"command": "x"}  // mine\n\t}\n}'),
        ("codex", '# Mine.\nmodel = "o"\n\n# The other.\n[mcp_servers.other]\ncommand = "x"\n'),
    ],
)
def test_a_file_of_windows_stays_one(tmp_path: Path, client: str, text: str) -> None:
    file = tmp_path / "config" / ("mcp.toml" if client == "codex" else "mcp.json")
    file.parent.mkdir()
    before = as_windows_has_it(text).encode()
    file.write_bytes(before)
    options = [client, "--file", str(file), "--yes"]
    try:
        done = run(["connect", *options, "--toolset", "knowledge"], tmp_path, REFDESK_EMBEDDER="hashing")
        assert done.returncode == 0, done.stderr
        written = file.read_bytes()
        assert b"refdesk" in written
        assert written.count(b"\n") == written.count(b"\r\n")
        assert written.startswith(before[:20])
        done = run(["connect", *options, "--remove"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert file.read_bytes() == before
    finally:
        kill_desks(tmp_path)
