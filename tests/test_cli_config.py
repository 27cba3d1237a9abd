"""Settings from the config file: beside the environment, in whatever starts; and what is in effect, without secrets."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from refdesk import errors
from refdesk.forwarder import identity
from refdesk.settings import compose, load_settings
from tests.acceptance.processes import list_desks, run, shake_hands, start
from tests.conftest import REPOSITORY
from tests.test_cli import refdesk

SECRET = "hunter-2-hunter"


def write(folder: Path, text: str) -> str:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def show(home: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    done = refdesk(home, ["config", "--json", *arguments], **variables)
    assert done.exit_code == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["settings"]}


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    text = 'org = "acme"\nagent_rate = 7\ntools = ["a", "b"]\nread_only = true\n[azure_updates]\nstale_hours = 3\n'
    found = show(tmp_path, "--all", REFDESK_CONFIG=write(tmp_path, text), REFDESK_AGENT_RATE="9")
    told = {name: (each.get("value"), each["source"]) for name, each in found.items()}
    assert (told["org"], told["agent_rate"]) == (("acme", "file"), ("9", "environment"))
    assert (told["tools"], told["read_only"]) == (("a,b", "file"), ("true", "file"))
    assert (told["azure_updates_stale_hours"], told["org_rate"]) == (("3.0", "file"), ("24000", "default"))
    assert set(found) == set(compose().model_fields)


def test_a_file_may_begin_as_some_editors_begin_it(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufefforg = "acme"\r\n')
    assert show(tmp_path, REFDESK_CONFIG=path)["org"]["value"] == "acme"


def test_only_what_is_set_or_named_is_shown_unless_all_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, 'org = "acme"\n')
    shown = show(tmp_path, REFDESK_CONFIG=path)
    assert "org" in shown
    assert "org_rate" not in shown
    assert list(show(tmp_path, "org_rate", REFDESK_CONFIG=path)) == ["org_rate"]
    assert refdesk(tmp_path, ["config", "stroe"]).exit_code == 2


def test_no_secret_is_shown_whatever_says_it(tmp_path: Path) -> None:
    text = f'store = "postgresql://a:{SECRET}@db/x"\nopenai_base_url = "http://me:{SECRET}@models/v1"\n'
    variables = {"REFDESK_CONFIG": write(tmp_path, text), "REFDESK_GEMINI_API_KEY": SECRET}
    for arguments in (["config"], ["config", "--json"], ["config", "--all"], ["config", "store"]):
        done = refdesk(tmp_path, arguments, **variables)
        assert done.exit_code == 0
        assert SECRET not in done.output
    assert show(tmp_path, "store", **variables)["store"]["isSet"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('stor = "x"', "There is no setting stor, which the config file .* sets. Did you mean store?"),
        ("[azure_updates]\nulr = 1", "azure_updates_ulr.*Did you mean azure_updates_url?"),
        ("zzz = 1", "zzz.*reference of settings"),
        ('agent_rate = "many"', "agent_rate in the config file .* valid integer"),
        ("agent_rate =", "cannot be used: Invalid value"),
        ("org = 2026-01-01", "org is neither a text"),
        ("config = 'other.toml'", "no setting config"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    for command in (["config"], ["doctor"], ["keys", "list"]):
        done = refdesk(tmp_path, command, REFDESK_CONFIG=write(tmp_path, text))
        assert done.exit_code == 1, command
        assert re.search(words, done.output), command


def test_a_file_that_is_named_must_be_there_and_none_is_read_where_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "which REFDESK_CONFIG names" in refdesk(tmp_path, ["status"], REFDESK_CONFIG=str(tmp_path / "no")).output
    (tmp_path / "refdesk").mkdir()
    write(tmp_path / "refdesk", 'org = "acme"')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("REFDESK_CONFIG", raising=False)
    assert load_settings().org == "acme"
    monkeypatch.setenv("REFDESK_CONFIG", "none")
    assert load_settings().org == "local"


def test_what_the_file_says_makes_the_same_desk_as_if_the_environment_said_it(tmp_path: Path) -> None:
    path = write(tmp_path, 'home = "/data"\nembedder = "hashing"\nread_only = true\ntools = ["a", "b"]')
    filed = identity.read((), {"REFDESK_CONFIG": path})
    assert filed == identity.read(
        (), {"REFDESK_HOME": "/data", "REFDESK_EMBEDDER": "hashing", "REFDESK_READ_ONLY": "true"}
    )
    assert identity.read_settings({"REFDESK_CONFIG": path, "REFDESK_TOOLS": "c"})["TOOLS"] == "c"


def test_a_tilde_is_the_users_folder_wherever_a_path_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, elsewhere = tmp_path / "user", tmp_path / "elsewhere"
    user.mkdir()
    elsewhere.mkdir()
    (user / "c.toml").write_text('home = "~/kept"\nbackup_to = "~/copies"\nembedder = "hashing"\n', encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    variables = {"HOME": str(user), "USERPROFILE": str(user), "REFDESK_HOME": "", "REFDESK_CONFIG": "~/c.toml"}
    with start(["-m", "refdesk", "serve", "--stdio"], user / "kept", **variables) as client:
        shake_hands(client)
        assert len(list_desks(user / "kept")) == 1
        shown = {
            each["name"]: each for each in json.loads(run(["config", "--json"], user, **variables).stdout)["settings"]
        }
        assert shown["backup_to"]["value"] == str(user / "copies")
    variables |= {"REFDESK_HOME": "~/more", "REFDESK_STORE": "sqlite:///~/more/own.sqlite3"}
    stored = run(["knowledge", "store", "--title", "a", "--body", "b"], user, **variables)
    assert stored.returncode == 0, stored.stderr
    assert (user / "more" / "own.sqlite3").is_file()
    assert list(elsewhere.iterdir()) == []


def test_a_desk_that_a_client_starts_has_the_settings_of_the_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    path = write(tmp_path, f'home = "{kept}"\nembedder = "hashing"\norg = "acme"\nread_only = true')
    with start(["-m", "refdesk", "serve", "--stdio"], kept, REFDESK_HOME="", REFDESK_CONFIG=path) as client:
        shake_hands(client)
        assert len(list_desks(kept)) == 1
        offered = client.ask(2, "tools/list")["result"]["tools"]
        assert "store_knowledge" not in {tool["name"] for tool in offered}
        shown = json.loads(run(["status", "--json"], tmp_path, REFDESK_HOME="", REFDESK_CONFIG=path).stdout)
        assert [each["org"] for desk in shown["desks"] for each in desk["clients"]] == ["acme"]


def test_a_file_with_secrets_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    path = Path(write(tmp_path, f'gemini_api_key = "{SECRET}"'))
    for mode, status in ((0o644, "warn"), (0o600, "ok")):
        path.chmod(mode)
        done = refdesk(tmp_path, ["doctor", "--json"], REFDESK_CONFIG=str(path))
        [check] = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "config file"]
        assert check["status"] == status
        assert SECRET not in done.output


def test_the_file_that_the_how_to_shows_holds_settings_only(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/how-to/configure.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert examples
    for example in examples:
        assert tomllib.loads(example)
        done = refdesk(tmp_path, ["config"], REFDESK_CONFIG=write(tmp_path, example), REFDESK_HOME="")
        assert done.exit_code == 0, done.output


def test_the_error_of_a_setting_that_the_environment_gives_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_AGENT_RATE", "many")
    with pytest.raises(errors.ConfigurationError, match="REFDESK_AGENT_RATE"):
        load_settings()
