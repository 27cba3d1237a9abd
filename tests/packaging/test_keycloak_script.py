"""The script that prepares a realm of Keycloak says in a sentence what is wrong; with a real one: `tests/engines`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.acceptance.test_sign_in import find_port
from tests.conftest import REPOSITORY

AUDIENCE = "https://desk.example.com/mcp"


def prepare(keycloak: str, audience: str = AUDIENCE, **variables: str) -> str:
    """Return what the script complains about."""
    options = ["--keycloak", keycloak, "--user", "admin", "--realm", "desk", "--audience", audience]
    done = subprocess.run(
        [sys.executable, "-I", str(REPOSITORY / "deploy" / "keycloak.py"), *options],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False), done.stderr
    return done.stderr.partition("error: ")[2]


def test_a_keycloak_that_does_not_answer() -> None:
    url = f"http://127.0.0.1:{find_port()}"
    assert prepare(url, KEYCLOAK_PASSWORD="x").startswith(f"{url} does not answer: ")


@pytest.mark.parametrize("keycloak", ["id.example.com", "127.0.0.1:8080"])
def test_an_address_without_a_scheme(keycloak: str) -> None:
    assert keycloak in prepare(keycloak, KEYCLOAK_PASSWORD="x")


def test_a_password_that_was_not_given() -> None:
    assert prepare("https://id.example.com").startswith("the variable KEYCLOAK_PASSWORD is missing")


@pytest.mark.parametrize("audience", [AUDIENCE + "/", "https://desk.example.com"])
def test_an_audience_that_is_not_the_address_of_mcp(audience: str) -> None:
    assert "ends with /mcp" in prepare("https://id.example.com", audience, KEYCLOAK_PASSWORD="x")
