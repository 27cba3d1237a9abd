from __future__ import annotations

import csv
import gc
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import click
import pytest
from click.testing import CliRunner, Result

from refdesk import __version__
from refdesk.cli import cli, views
from refdesk.cli.doctor import Check, render
from refdesk.errors import ConfigurationError
from refdesk.kit.files import write_atomically
from sample_world.azure_updates.process import running_emulator

FEED = ["--toolset", "azure-updates"]
NOWHERE = "http://127.0.0.1:9/feed"


def refdesk(home: Path, arguments: Sequence[str], *, answer: str = "", **variables: str) -> Result:
    """Run the command line in this process, with `answer` as its stdin."""
    environment = {
        "REFDESK_HOME": str(home),
        "REFDESK_STORE": "",
        "REFDESK_EMBEDDER": "hashing",
        "REFDESK_AZURE_UPDATES_URL": NOWHERE,
        "REFDESK_LOG_LEVEL": "",
        **variables,
    }
    return CliRunner().invoke(cli, list(arguments), input=answer, env=environment)


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose store holds the sample world."""
    home = tmp_path_factory.mktemp("home")

    async def sync() -> Result:
        async with running_emulator() as emulator:
            arguments = ["sync", "azure-updates", "--json"]
            return await anyio.to_thread.run_sync(
                lambda: refdesk(home, arguments, REFDESK_AZURE_UPDATES_URL=emulator.url)
            )

    done = anyio.run(sync)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["added"] > 250
    return home


def test_help_needs_neither_the_models_nor_the_protocol() -> None:
    script = "import sys, refdesk.cli; print(sorted({'pydantic', 'mcp', 'rich', 'anyio', 'apsw'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_a_command_imports_no_other() -> None:
    script = (
        "import sys, click; from refdesk.cli import cli; cli.get_command(click.Context(cli), 'serve');"
        "print(*sorted(name for name in sys.modules if name.startswith('refdesk.cli')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert set(done.stdout.split()) <= {
        "refdesk.cli",
        "refdesk.cli.groups",
        "refdesk.cli.interruptions",
        "refdesk.cli.serve",
        "refdesk.cli.invocation",
    }


def test_every_command_explains_itself(tmp_path: Path) -> None:
    listed = refdesk(tmp_path, ["--help"])
    assert listed.exit_code == 0
    for name in cli.list_commands(click.Context(cli)):
        assert name in listed.stdout
        assert refdesk(tmp_path, [name, "--help"]).exit_code == 0


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert refdesk(tmp_path, ["--version"]).stdout.strip() == f"refdesk, version {__version__}"


def test_a_search_before_any_sync_says_so(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["search", *FEED, "storage"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Nothing found.")
    assert "No sync has succeeded yet" in done.stdout


def test_a_search_says_how_many_have_no_vectors(synced: Path) -> None:
    done = refdesk(synced, ["search", "storage"])
    assert re.search(r"^NOT_EMBEDDED: \d+ documents have no vectors yet, so only keyword search finds", done.stderr)
    assert refdesk(synced, ["search", *FEED, "--keyword", "storage"]).stderr == ""


def test_results_are_plain_text_when_piped(synced: Path) -> None:
    done = refdesk(synced, ["search", *FEED, "storage", "--limit", "2"])
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert any(line.startswith("1 to 2 of ") for line in done.stdout.splitlines())
    assert all(len(line) <= views.PIPED_WIDTH and line == line.rstrip() for line in done.stdout.splitlines())


def test_one_toolset_in_json_is_what_its_tool_answers(synced: Path) -> None:
    done = refdesk(synced, ["search", *FEED, "--json", "storage"])
    answer = json.loads(done.stdout)
    assert answer["total"] > 0
    assert answer["limit"] == 10


def test_filters_narrow_a_search(synced: Path) -> None:
    done = refdesk(synced, ["search", *FEED, "--json", "--filter", "tags=Retirements", "--filter", "status=Launched"])
    results = json.loads(done.stdout)["results"]
    assert all("Retirements" in result["tags"] for result in results)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search", "--filter", "colour=red", "x"], "NAME is one of"),
        (["search", "--filter", "tags", "x"], "NAME=VALUE"),
        (["search", "x" * 1001], "at most 1000"),
        (["search", "a\x00b"], "NUL"),
        (["search", "--limit", "0", "x"], "--limit"),
        (["export", "azure-updates", "--filter", "dateFrom=soon"], "YYYY-MM-DD"),
    ],
)
def test_a_mistake_of_the_caller_is_one_sentence_and_exit_status_2(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = refdesk(tmp_path, arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"REFDESK_EMBEDDER": "magic"}, "REFDESK_EMBEDDER"),
        ({"REFDESK_STORE": "oracle://x"}, "not served;"),
        ({"REFDESK_STORE": "somewhere"}, "no URL"),
        ({"REFDESK_STORE": "sqlite://"}, "names no file"),
        ({"REFDESK_EMBEDDER": "gemini"}, "REFDESK_GEMINI_API_KEY"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_status_1(
    tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    done = refdesk(tmp_path, ["search", "x"], **variables)
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_toolset_is_named_with_those_there_are(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["search", "--toolset", "astrology", "x"])
    assert done.exit_code == 2
    assert "azure-updates" in done.stderr


def test_a_feed_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["sync", "azure-updates"], REFDESK_AZURE_UPDATES_URL="http://203.0.113.1/feed")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_an_export_holds_all_that_matches(synced: Path, tmp_path: Path, form: str) -> None:
    found = json.loads(refdesk(synced, ["search", *FEED, "--json", "--limit", "1", "storage"]).stdout)["total"]
    path = tmp_path / f"updates.{form}"
    arguments = ["export", "azure-updates", "--format", form, "--query", "storage", "--output", str(path)]
    done = refdesk(synced, arguments)
    assert done.exit_code == 0, done.stderr
    assert f"{found} updates written" in done.stderr
    text = path.read_text("utf-8")
    counts = {
        "json": lambda: len(json.loads(text)),
        "csv": lambda: len(list(csv.DictReader(io.StringIO(text)))),
        "md": lambda: sum(line.startswith("## ") for line in text.splitlines()),
    }
    assert counts[form]() >= found
    printed = refdesk(synced, arguments[:-2]).stdout_bytes
    assert printed.decode() == path.read_bytes().decode()


def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def pieces() -> list[str]:
        raise RuntimeError("broke off")

    with pytest.raises(RuntimeError):
        write_atomically(path, (piece for _ in [0] for piece in pieces()))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_into_no_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_atomically(tmp_path / "none" / "out", ["x"])


def test_the_doctor_finds_a_synced_desk_well(synced: Path) -> None:
    done = refdesk(synced, ["doctor", "--json"])
    report = json.loads(done.stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert (done.exit_code, report["ok"]) == (0, True)
    assert checks["azure-updates"]["status"] == "ok"
    assert checks["quarantine"]["status"] == "warn"
    assert checks["feed"]["status"] == "warn"
    assert checks["feed"]["advice"]


def test_the_doctor_says_what_to_do_in_an_empty_home(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["doctor"])
    assert done.exit_code == 0
    assert "was never synced" in done.stdout
    assert "Run refdesk sync azure-updates." in done.stdout


def test_the_doctor_fails_on_a_home_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = refdesk(tmp_path / "file" / "home", ["doctor", "--json"])
    failed = [check["name"] for check in json.loads(done.stdout)["checks"] if check["status"] == "fail"]
    assert done.exit_code == 1
    assert failed == ["data folder", "store"]


def test_the_doctor_fails_on_a_wrong_setting(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["doctor"], REFDESK_STDIO_ERA="ancient")
    assert done.exit_code == 1
    assert "REFDESK_STDIO_ERA" in done.stdout


def test_a_check_is_one_line_and_its_advice_another() -> None:
    assert render(Check("store", "ok", "opens")).count("\n") == 0
    assert render(Check("store", "fail", "broken", "Mend it.")).endswith("\n" + " " * 21 + "Mend it.")


def test_control_characters_of_a_result_never_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hit = {"id": "1\x1b[2J", "title": "a\x1b]0;title\x07b", "description": "c\x9b31md\u202e", "tags": ["\x1b[0m"]}
    line = {"toolset": "x", "status": "late", "note": "Wait\x1b[2J."}
    views.show({"results": [hit], "total": 1, "coverage": [line]}, "a")
    printed = capsys.readouterr().out
    assert not any(character in printed for character in "\x1b\x07\x9b\u202e")


def test_a_desk_moves_to_another_store_and_answers_alike(synced: Path, tmp_path: Path) -> None:
    old, new = f"sqlite:///{synced / 'refdesk.sqlite3'}", f"sqlite:///{tmp_path / 'new.sqlite3'}"
    moved = refdesk(tmp_path, ["migrate", "--from", old, "--to", new, "--json"])
    assert moved.exit_code == 0, moved.stderr
    assert json.loads(moved.stdout)["documents"] > 250
    asked = ["search", *FEED, "--json", "kubernetes"]
    expected = json.loads(refdesk(synced, asked).stdout)
    assert expected["total"] > 0
    assert json.loads(refdesk(tmp_path, asked, REFDESK_STORE=new).stdout)["results"] == expected["results"]
    again = refdesk(tmp_path, ["migrate", "--from", old, "--to", new])
    assert again.stdout.startswith("Moved and compared: ")


def test_a_source_that_does_not_exist_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    old, new = f"sqlite:///{tmp_path / 'mistyped.sqlite3'}", f"sqlite:///{tmp_path / 'new.sqlite3'}"
    refused = refdesk(tmp_path, ["migrate", "--from", old, "--to", new])
    assert (refused.exit_code, "does not exist" in refused.stderr) == (1, True)
    assert not list(tmp_path.glob("*.sqlite3*"))


def test_a_target_that_is_in_use_is_left_alone(synced: Path, tmp_path: Path) -> None:
    old, new = f"sqlite:///{synced / 'refdesk.sqlite3'}", f"sqlite:///{tmp_path / 'new.sqlite3'}"
    note = ["knowledge", "store", "--title", "Ours", "--body", "Keep it."]
    assert refdesk(tmp_path, note, REFDESK_STORE=new).exit_code == 0
    refused = refdesk(tmp_path, ["migrate", "--from", old, "--to", new])
    assert (refused.exit_code, "not empty" in refused.stderr) == (2, True)


def test_a_server_that_does_not_start_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    assert refdesk(tmp_path, ["serve", "--port", "0", "--host", "0.0.0.0", "--no-auth"]).exit_code != 0
    assert gc.isenabled()


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_the_doctor_shows_colours_unless_they_are_not_wanted(tmp_path: Path, no_color: str, is_coloured: bool) -> None:
    environment = {"REFDESK_HOME": str(tmp_path), "REFDESK_EMBEDDER": "hashing", "NO_COLOR": no_color}
    environment["REFDESK_AZURE_UPDATES_URL"] = NOWHERE
    shown = CliRunner().invoke(cli, ["doctor"], env=environment, color=True)
    assert "data folder" in shown.stdout
    assert ("\x1b[" in shown.stdout) is is_coloured
