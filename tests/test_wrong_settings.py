"""Whatever is wrong with a setting, `serve`, `doctor` and every other command say so in a line that names it."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from refdesk import errors
from refdesk.cli import cli
from refdesk.factories.bases import check_opening
from refdesk.settings import compose, load_settings, variable
from tests.acceptance.processes import NOWHERE
from tests.acceptance.processes import run as launch

NUMBER = ("many", "-1")
TRUTH = ("perhaps",)
ADDRESS = ("nonsense", "ftp://desk.example", "http://[", "https://desk.example:port")
FILE, TEXT, ABSENT = "{home}", "{home}/text", "{home}/absent"

REFUSED: dict[str, tuple[str, ...]] = {
    "config": (ABSENT, TEXT, FILE),
    "store": ("nonsense", "mysql://desk.example", "sqlite://"),
    "store_read": ("nonsense",),
    "org": ("No Such Org", "x" * 65),
    "agent": ("x" * 65,),
    "embedder": ("magic",),
    "gemini_base_url": ADDRESS,
    "gemini_embedding_dimensions": NUMBER,
    "openai_base_url": ADDRESS,
    "openai_embedding_dimensions": NUMBER,
    "openai_embedding_is_cut": TRUTH,
    "language_model": ("magic",),
    "stdio_era": ("ancient",),
    "allowed_hosts": ("https://desk.example", "a b"),
    "allowed_origins": ("desk.example", "https://desk.example/x"),
    "public_url": ADDRESS,
    "oauth_issuer": ADDRESS,
    "oauth_jwks_url": ADDRESS,
    "oauth_org": ("No Such Org",),
    "oauth_org_claim": (" ",),
    "oauth_agent_claim": (" ",),
    "oauth_agent_prefix": ("a b",),
    "oauth_scope_claims": (",",),
    "oauth_scope_prefix": ("a b",),
    "oauth_asked_scope_prefix": ("a b",),
    "oauth_server_scopes": TRUTH,
    "audit_reads": TRUTH,
    "request_timeout_seconds": (*NUMBER, "inf"),
    "read_only": TRUTH,
    "max_org_bytes": NUMBER,
    "max_connections": NUMBER,
    "max_sessions": NUMBER,
    "max_address_connections": NUMBER,
    "header_timeout_seconds": (*NUMBER, "inf"),
    "body_timeout_seconds": (*NUMBER, "inf"),
    "write_timeout_seconds": (*NUMBER, "inf"),
    "key_check_seconds": (*NUMBER, "inf"),
    "trusted_proxies": ("proxy.example", "10.0.0.0/99"),
    "agent_rate": NUMBER,
    "org_rate": NUMBER,
    "concurrent_requests": NUMBER,
    "desk_idle": (*NUMBER, "inf"),
    "desk_socket": ("pipe",),
    "backup_every": ("often", "24"),
    "backup_keep": NUMBER,
    "log_level": ("loud",),
    "otlp_endpoint": ADDRESS,
    "azure_updates_url": ADDRESS,
    "azure_updates_feeds": ("gcp", "m365"),
    "azure_updates_m365_url": ADDRESS,
    "azure_updates_stale_hours": (*NUMBER, "inf"),
    "azure_updates_full_hours": (*NUMBER, "inf"),
    "supersede": ("nobody",),
    "knowledge_fusion": ("cold",),
    "knowledge_org_quota": NUMBER,
    "knowledge_agent_quota": NUMBER,
    "skills_org_quota": NUMBER,
    "skills_agent_quota": NUMBER,
    "skills_explore": TRUTH,
    "salesforce_user_sessions": ("forbidden",),
    "salesforce_timeout_seconds": (*NUMBER, "inf"),
    "gaps": TRUTH,
    "gaps_days": NUMBER,
    "gaps_most": NUMBER,
    "watches_agent_quota": NUMBER,
    "webhook_private": ("a b", "10.0.0.0/99"),
}
"""What no command goes on with."""

NOT_SERVED: dict[str, tuple[str, ...]] = {
    "store": ("neo4j://desk.example:port",),
    "redis": ("nonsense", "http://desk.example", "redis://desk.example:port"),
    "embedder": ("gemini",),
    "language_model": ("gemini",),
    "skills_store": ("nonsense", "mysql://desk.example"),
    "public_url": ("https://desk.example/a%20b", "https://desk.example/?x", "https://desk.example/knowledge/x"),
    "tools": ("no_such_tool", "search_knowlege"),
    "oauth_issuer": ("https://id.example",),
    "oauth_audience": ("https://desk.example/mcp",),
    "oauth_jwks_url": ("https://id.example/keys",),
    "oauth_org": ("acme",),
    "oauth_orgs": ("acme",),
    "oauth_more_scopes": ("a b",),
    "oauth_console_client_id": ("console",),
    "oauth_console_client_secret": ("secret",),
    "oauth_console_more_scopes": ("a b",),
    "keys_file": (ABSENT, TEXT, FILE),
    "salesforce_instance_url": ("nonsense", "http://acme.my.salesforce.com"),
    "salesforce_orgs": (ABSENT, TEXT),
    "salesforce_access_token": ("a b",),
    "salesforce_api_version": ("newest",),
    "salesforce_body_fields": ("a b",),
    "salesforce_language": ("Old English",),
}
"""What no server starts with; other commands go on where they do not need it."""

TOLD: dict[str, tuple[str, ...]] = {
    "home": (TEXT,),
    "embedder_model_path": (ABSENT, TEXT),
    "backup_to": (TEXT,),
}
"""What a server starts with, for it may pass, or harms a part; doctor tells of it."""

FREE = {
    *("gemini_api_key", "gemini_embedding_model", "gemini_language_model"),
    *("openai_api_key", "openai_embedding_model", "openai_language_model"),
    *("salesforce_client_id", "salesforce_client_secret", "salesforce_username", "salesforce_private_key_file"),
}
"""What only the service that it is for can judge, or what is read when that has answered."""

SALESFORCE = {
    "REFDESK_SALESFORCE_INSTANCE_URL": "https://127.0.0.1:9",
    "REFDESK_SALESFORCE_CLIENT_ID": "app",
    "REFDESK_SALESFORCE_USERNAME": "ann@example.com",
    "REFDESK_SALESFORCE_PRIVATE_KEY_FILE": "/absent",
}
"""What makes the other settings of Salesforce matter."""


def list_cases(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, value) for name, values in table.items() for value in values]


@pytest.fixture
def taken_port() -> Generator[int]:
    """A port on which nothing can listen: a server that overlooks what is wrong ends there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def run(home: Path, arguments: list[str], name: str, value: str) -> Result:
    (home / "text").write_text("nonsense\n")
    others = {
        **{variable(other): "" for other in compose().model_fields},
        "REFDESK_HOME": str(home / "data"),
        "REFDESK_CONFIG": "none",
        "REFDESK_EMBEDDER": "hashing",
        "REFDESK_AZURE_UPDATES_URL": NOWHERE,
        "REFDESK_BACKUP_EVERY": "24h",
    }
    if name.startswith("salesforce_"):
        others |= SALESFORCE
    if name == "embedder_model_path":
        others["REFDESK_EMBEDDER"] = "local"
    return CliRunner().invoke(cli, arguments, env={**others, variable(name): value.format(home=home)})


def check(done: Result, name: str) -> None:
    said = done.output
    assert done.exit_code in (1, 2), said
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert variable(name) in said
    assert "Internal error" not in said


def test_every_setting_has_a_wrong_value_here() -> None:
    assert compose().model_fields.keys() == REFUSED.keys() | NOT_SERVED.keys() | TOLD.keys() | FREE


@pytest.mark.parametrize(("name", "value"), list_cases(REFUSED))
def test_what_is_wrong_in_itself_ends_every_command(name: str, value: str, tmp_path: Path, taken_port: int) -> None:
    for arguments in (["serve", "--port", str(taken_port)], ["doctor"], ["knowledge", "list"]):
        check(run(tmp_path, arguments, name, value), name)


@pytest.mark.parametrize(("name", "value"), list_cases(NOT_SERVED))
def test_no_server_starts_with_what_it_cannot_serve(name: str, value: str, tmp_path: Path, taken_port: int) -> None:
    for arguments in (["serve", "--port", str(taken_port)], ["doctor"]):
        check(run(tmp_path, arguments, name, value), name)
    other = run(tmp_path, ["knowledge", "list"], name, value)
    if other.exit_code != 0:
        check(other, name)


@pytest.mark.parametrize(("name", "value"), list_cases(TOLD))
def test_the_doctor_tells_of_what_harms_a_part(name: str, value: str, tmp_path: Path) -> None:
    done = run(tmp_path, ["doctor", "--json"], name, value)
    assert done.exit_code == 1, done.output
    failed = [each for each in json.loads(done.stdout)["checks"] if each["status"] == "fail"]
    assert any(variable(name) in f"{each['found']} {each['advice']}" for each in failed)


def test_several_wrong_settings_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_GAPS", "perhaps")
    done = CliRunner().invoke(cli, ["doctor"], env={"REFDESK_HOME": str(tmp_path), "REFDESK_ORG": "No Such Org"})
    assert "REFDESK_GAPS" in done.output
    assert "REFDESK_ORG" in done.output


@pytest.mark.parametrize("name", ["tools", "keys_file"])
def test_the_doctor_names_what_a_server_would_not_start_with_and_goes_on(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, ["doctor", "--json"], name, "no_such_thing")
    checks = {each["name"]: each["status"] for each in json.loads(done.stdout)["checks"]}
    assert checks[name.replace("_", " ")] == "fail"
    assert checks["store"] == "ok"


@pytest.mark.parametrize(
    "command",
    [
        ["knowledge", "list"],
        ["search", "refunds"],
        ["serve"],
        ["serve", "--stdio"],
        ["serve", "--stdio", "--isolated"],
        ["keys", "make", "--scope", "knowledge:read"],
    ],
)
@pytest.mark.parametrize(("option", "value"), [("--org", "a b"), ("--org", ""), ("--agent", "x" * 65)])
def test_an_option_is_blamed_for_what_it_says(command: list[str], option: str, value: str, tmp_path: Path) -> None:
    other = ["--agent", "ann"] if option == "--org" else []
    done = launch([*command, *other, option, value], tmp_path, REFDESK_EMBEDDER="hashing")
    assert done.returncode == 2, done.stderr
    assert option in done.stderr
    assert "REFDESK_" not in done.stderr


def test_nothing_here_is_wrong_without_a_wrong_setting(tmp_path: Path) -> None:
    assert run(tmp_path, ["doctor"], "log_level", "info").exit_code == 0
    assert load_settings()


@pytest.mark.parametrize(
    ("name", "address", "module", "extra"),
    [
        ("REFDESK_REDIS", "redis://127.0.0.1:1", "bullmq", "redis"),
        ("REFDESK_STORE", "postgresql://x@127.0.0.1:1/x", "psycopg", "postgres"),
        ("REFDESK_SKILLS_STORE", "neo4j://x:x@127.0.0.1:1", "neo4j", "neo4j"),
    ],
)
def test_a_driver_that_is_not_installed_is_named_before_anything_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, address: str, module: str, extra: str
) -> None:
    """As with `pip install refdesk` alone."""
    for loaded in [each for each in sys.modules if each == module or each.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("REFDESK_HOME", str(tmp_path))
    monkeypatch.setenv(name, address)
    with pytest.raises(errors.MissingDependencyError, match=rf"^{name} .*pip install 'refdesk\[{extra}\]'"):
        check_opening(load_settings())
