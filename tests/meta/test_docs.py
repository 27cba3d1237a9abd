"""What the docs show is true: links lead somewhere, commands are ones that there are, snippets are what they say."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import click
import pytest
import yaml

from refdesk.cli import cli
from refdesk.model import JsonValue
from refdesk.settings import compose, variable
from tests.conftest import REPOSITORY

NOT_RUN = {
    *("claude", "codex", "code", "gemini"),  # clients
    *("curl", "npx", "openssl", "psql", "redis-cli", "sqlite3", "createdb", "pg_dump", "cypher-shell", "aws", "rclone"),
    *(
        "pip",
        "pipx",
        "uv",
        "uvx",
        "python",
        "python3",
        "source",
        "export",
        "cp",
        "chmod",
        "sudo",
        "systemctl",
        "cd",
        "age",
    ),
    *(
        "docker",
        "helm",
        "kubectl",
        "cosign",
        "sha256sum",
        "git",
        "ls",
        "cat",
        "echo",
        "eval",
        "mkdir",
        "scp",
        "cmp",
        "jq",
    ),
}
"""Programs of others, and words of the shell: what follows them is looked at only where refdesk is started by it."""

SHELLS = {"console", "sh", "bash"}
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<to>[^)\s]+)\)")
NAMED = re.compile(r"(?P<name>[A-Z][A-Z0-9_]*)=")
OF_EXAMPLES = {"REFDESK_KEY", "REFDESK_COMPANY_GLOSSARY_FILE", "REFDESK_OUR_NEWS_URL"}
SETTINGS = {variable(name) for name in compose().model_fields} | OF_EXAMPLES


class Snippet(NamedTuple):
    """A fenced block of a page."""

    page: str
    kind: str
    text: str


def list_pages() -> list[Path]:
    folders = [REPOSITORY / name for name in ("docs", "src", "examples", "deploy")]
    return sorted([*REPOSITORY.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def read_snippets(page: Path) -> Iterator[Snippet]:
    name = page.relative_to(REPOSITORY).as_posix()
    for found in FENCE.finditer(page.read_text(encoding="utf-8")):
        indent = len(found["indent"])
        yield Snippet(name, found["kind"], "\n".join(line[indent:] for line in found["text"].splitlines()))


SNIPPETS = [snippet for page in list_pages() for snippet in read_snippets(page) if "CHANGELOG" not in page.name]


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title)).strip().lower().replace(" ", "-") for title in titles}


def find_dead_links(page: Path) -> list[str]:
    dead: list[str] = []
    for found in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = unquote(found["to"]).partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in found["to"] or found["to"].startswith("mailto:"):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in list_anchors(target)):
            dead.append(f"{page.name}: {found['to']}")
    return dead


def test_no_link_is_dead() -> None:
    assert [dead for page in list_pages() for dead in find_dead_links(page)] == []


def test_a_planted_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A title, `with` marks\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md) [b](there.md#a-title-with-marks) [c](gone.md) [d](there.md#gone)\n")
    assert find_dead_links(page) == ["page.md: gone.md", "page.md: there.md#gone"]


def list_commands(snippet: Snippet) -> Iterator[str]:
    """Yield the commands of a snippet, each on one line; of a console, what is typed."""
    text = re.sub(r"\\\n", " ", snippet.text)
    lines = (line.strip() for line in text.splitlines())
    for line in lines:
        typed = line.removeprefix("$ ") if snippet.kind == "console" else line
        if typed and not typed.startswith("#") and (snippet.kind != "console" or line.startswith("$ ")):
            yield typed


def find_faults(command: str) -> Iterator[str]:
    """Yield what is wrong with a line of a shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in [*lexer, "|"]:
        if set(word) <= set("|&;"):
            yield from _find_faults_of(words, command)
            words = []
        else:
            words.append(word)


def _find_faults_of(words: list[str], command: str) -> Iterator[str]:
    for redirection in [place for place, word in enumerate(words) if set(word) <= set("<>")]:
        words = words[:redirection]
        break
    while words and (words[0] == "export" or (NAMED.match(words[0]))):
        named = NAMED.match(words[0])
        if named and named["name"].startswith("REFDESK_") and named["name"] not in SETTINGS:
            yield f"{named['name']} is no setting: {command}"
        words = words[1:]
    place = next((at for at, word in enumerate(words) if at == 0 or words[at - 1] == "--" if _is_refdesk(word)), None)
    if words and words[0] == "make":
        yield from _find_faults_of_make(words[1:])
    elif place is not None:
        yield from _find_faults_of_refdesk(words[place + 1 :], command)
    elif words and words[0] not in NOT_RUN and not set(words[0]) & set("$…"):
        yield f"{words[0]} is neither refdesk nor known: {command}"


def _is_refdesk(word: str) -> bool:
    return word.rpartition("/")[2] == "refdesk"


def _find_faults_of_make(words: list[str]) -> Iterator[str]:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    yield from (
        f"no target {word}" for word in words if "=" not in word and not word.startswith("-") and word not in targets
    )


def _find_faults_of_refdesk(words: list[str], command: str) -> Iterator[str]:
    """Yield what the command line itself says of the arguments, without running anything."""
    try:
        _parse(cli, "refdesk", words)
    except click.exceptions.Exit:
        return
    except click.UsageError as error:
        if "does not exist" not in error.format_message():  # files of the reader's
            yield f"{error.format_message()} {command}"


def _parse(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """Return when the command takes the words; raises what click raises when not."""
    if not isinstance(command, click.Group):
        command.make_context(name, list(words), parent)
        return
    settings: dict[str, Any] = dict(command.context_settings)
    context = click.Context(command, parent, name, **settings)  # commands keep the flags for help of the first context
    _, rest, _ = command.make_parser(context).parse_args(list(words))
    found = command.get_command(context, rest[0]) if rest else None
    if rest and found is None:
        raise click.UsageError(f"No such command {rest[0]!r}.")
    if found is not None:
        _parse(found, rest[0], rest[1:], context)


def test_every_command_that_is_shown_is_one_that_there_is() -> None:
    shown = [command for snippet in SNIPPETS if snippet.kind in SHELLS for command in list_commands(snippet)]
    assert len(shown) > 100
    assert [fault for command in shown for fault in find_faults(command)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "refdesk serach x",
        "refdesk search --tolset knowledge x",
        "REFDESK_STROE=x refdesk serve",
        "claude mcp add refdesk -- refdesk serve --studio",
        "make dmeo",
        "refdesk skills report 1 mended",
        "cat x | refdesk knowledge store --title T --bodi -",
    ],
)
def test_a_planted_command_that_there_is_not_is_found(planted: str) -> None:
    assert list(find_faults(planted))


def check_snippet(snippet: Snippet) -> None:
    """Return when a snippet is what it says it is; raises ValueError or SyntaxError otherwise."""
    if snippet.kind == "json":
        json.loads(re.sub(r"…|\.\.\.", "", snippet.text))
    elif snippet.kind == "toml":
        tomllib.loads(snippet.text)
    elif snippet.kind in {"yaml", "yml"}:
        list(yaml.safe_load_all(snippet.text))
    elif snippet.kind == "python":
        compile(snippet.text, snippet.page, "exec")


def test_every_snippet_parses_as_what_it_says_it_is() -> None:
    wrong: list[str] = []
    for snippet in SNIPPETS:
        try:
            check_snippet(snippet)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            wrong.append(f"{snippet.page}: {error}\n{snippet.text}")
    assert wrong == []


UNCHECKED = {"", "text", "markdown", "mermaid", "sql", "ini", "nginx", "cypher", "http"}
"""Kinds that nothing here reads: output, drawings, and languages of other programs."""


def test_the_kinds_of_snippets_are_known() -> None:
    assert {snippet.kind for snippet in SNIPPETS} <= SHELLS | UNCHECKED | {"json", "toml", "yaml", "python"}


def test_servers_in_snippets_are_started_by_commands_that_there_are() -> None:
    starts = [
        found for snippet in SNIPPETS if snippet.kind == "json" for found in _list_starts(json.loads(snippet.text))
    ]
    assert starts
    assert [fault for start in starts for fault in _find_faults_of_refdesk(start, " ".join(start))] == []


def _list_starts(value: JsonValue) -> Iterator[list[str]]:
    """Yield the arguments of refdesk wherever a client's configuration starts it."""
    if isinstance(value, Mapping) and str(value.get("command", "")).endswith("refdesk"):
        words = value.get("args")
        yield [str(word) for word in words] if isinstance(words, Sequence) else []
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in parts:
        yield from _list_starts(each)
