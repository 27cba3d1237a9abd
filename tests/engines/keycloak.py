"""A real Keycloak of the test's own, from Maven Central, kept in memory; and a person with a browser who signs in.

The realm is made as the how-to says, by `deploy/keycloak.py` as an operator runs it.
"""

from __future__ import annotations

import fcntl
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from mcp.shared.auth import AuthorizationCodeResult

from tests.conftest import REPOSITORY
from tests.emulators.signing import Key
from tests.engines.servers import end_with_parent, find_free_port, read_up, spawn

VERSION = "26.7.3"
INSTALLATION = REPOSITORY / ".venv" / "keycloak"
FETCH_SECONDS = 900.0
PATIENCE_SECONDS = 600.0
PASSWORD = "an-Administrator-0123"
REDIRECT = "http://127.0.0.1:33418/callback"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"


class KeycloakServer:
    """One server, on a port of the loopback interface."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{find_free_port()}"
        self.http = httpx2.Client(timeout=120)
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread()

    def start(self) -> None:
        """Return when it takes requests."""
        options = ["--http-host=127.0.0.1", f"--http-port={urlsplit(self.url).port}", "--db=dev-mem"]
        variables = {
            "PATH": os.environ["PATH"],
            "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": PASSWORD,
            "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
        }
        command = [str(install() / "bin" / "kc.sh"), "start-dev", *options, "--cache=local"]
        self._process = process = spawn(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(end_with_parent, signal.SIGKILL),
        )
        alarm = threading.Timer(PATIENCE_SECONDS, self._kill)
        alarm.start()
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if "Listening on:" in line:
                break
        alarm.cancel()
        self._reader = read_up(process.stdout)
        assert "Listening on:" in "".join(said), "".join(said[-30:])

    def remove(self) -> None:
        """End it; nothing of it stays."""
        if self._process is not None:
            self._kill()
            self._process.wait(PATIENCE_SECONDS)
            self._reader.join(PATIENCE_SECONDS)
        self.http.close()

    def _kill(self) -> None:
        # The script has started Java beside itself.
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def administer(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """Ask the admin interface; fail where it refuses."""
        form = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": PASSWORD}
        token = self.http.post(f"{self.url}/realms/master/protocol/openid-connect/token", data=form).json()
        headers = {"authorization": f"Bearer {token['access_token']}"}
        answer = self.http.request(method, f"{self.url}/admin/realms{path}", json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def make(self, path: str, body: Mapping[str, Any]) -> str:
        """Make a thing and return its id."""
        return self.administer("POST", path, body).headers["location"].rpartition("/")[2]

    def prepare(self, realm: str, audience: str) -> str:
        """Prepare a realm as the how-to says, and return what the script says."""
        options = ["--keycloak", self.url, "--user", "admin", "--realm", realm, "--audience", audience]
        done = subprocess.run(
            [sys.executable, "-I", str(REPOSITORY / "deploy" / "keycloak.py"), *options],
            env={"KEYCLOAK_PASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make_user(self, realm: str, name: str, *roles: str) -> str:
        """Make a user whose password is the name."""
        facts = {"username": name, "email": f"{name}@example.com", "firstName": name, "lastName": name}
        password = {"type": "password", "value": name, "temporary": False}
        body = {**facts, "emailVerified": True, "enabled": True, "credentials": [password]}
        id = self.make(f"/{realm}/users", body)
        for role in roles:
            found = self.administer("GET", f"/{realm}/roles/{role}").json()
            self.administer("POST", f"/{realm}/users/{id}/role-mappings/realm", [found])
        return id

    def make_organization(self, realm: str, name: str, *members: str) -> None:
        """Make an organization of users."""
        domains = [{"name": f"{name}.example"}]
        id = self.make(f"/{realm}/organizations", {"name": name, "alias": name, "enabled": True, "domains": domains})
        for member in members:
            self.administer("POST", f"/{realm}/organizations/{id}/members", member)

    def sign_with(self, realm: str, key: Key) -> None:
        """Let a realm sign with a key that the test has, too."""
        parent = self.administer("GET", f"/{realm}").json()["id"]
        kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        settings = {
            "priority": ["1000"],
            "algorithm": [key.algorithm],
            "privateKey": [key.private.private_bytes(*kinds).decode()],
        }
        provider = {"name": "known", "providerId": "rsa", "providerType": "org.keycloak.keys.KeyProvider"}
        self.make(f"/{realm}/components", {**provider, "parentId": parent, "config": settings})


@cache
def install() -> Path:
    """Return the folder of the distribution, fetched by Maven when it is not there; one process at a time."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        _give_up("Keycloak needs Java 17 and Maven on the path")
    folder = INSTALLATION / f"keycloak-{VERSION}"
    INSTALLATION.mkdir(parents=True, exist_ok=True)
    with (INSTALLATION / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _fetch()
            for script in (folder / "bin").glob("*.sh"):
                script.chmod(0o755)
            (folder / "complete").touch()
    return folder


def _fetch() -> None:
    repository = INSTALLATION / "repository"
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    options = ["-B", "-q", _PLUGIN, f"-Dartifact={artifact}", "-Dtransitive=false", f"-Dmaven.repo.local={repository}"]
    done = subprocess.run(["mvn", *options], capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if done.returncode != 0:
        _give_up(f"Keycloak could not be fetched from Maven Central: {done.stdout[-2000:]}")
    [archive] = repository.rglob(f"keycloak-quarkus-dist-{VERSION}.zip")
    with zipfile.ZipFile(archive) as whole:
        whole.extractall(INSTALLATION)
    shutil.rmtree(repository)


def _give_up(reason: str) -> None:
    if "keycloak" in os.environ.get("REFDESK_TEST_ENGINES", ""):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def running() -> Generator[KeycloakServer]:
    """Yield a server that is nobody else's; remove it on leaving."""
    server = KeycloakServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Person:
    """Somebody with a browser: fills in the forms that Keycloak shows, until it is sent back to the client.

    Attributes:
        org: The organization that it chooses where it is asked.
        client: Where the client waits for it to come back.
        asked: The scopes that the client asked for last.
        back: Where it was sent back to, once it was.
    """

    def __init__(self, name: str, org: str = "", client: str = REDIRECT) -> None:
        self.name, self.org, self.client = name, org, client
        self.asked: list[str] = []
        self.back = ""

    async def visit(self, url: str) -> None:
        """Follow a client's link to sign in."""
        self.asked = parse_qs(urlsplit(url).query)["scope"][0].split()
        cookies: dict[str, str] = {}
        answer = await self._fetch(cookies, "GET", url)
        for _ in range(12):
            if answer.is_redirect:
                url = urljoin(str(answer.url), answer.headers["location"])
                if url.startswith(self.client):
                    self.back = url
                    return
                answer = await self._fetch(cookies, "GET", url)
            else:
                answer = await self._fetch(cookies, "POST", *self._fill_in(answer))
        pytest.fail(f"{answer.url}: {answer.text[:300]}")

    async def _fetch(
        self, cookies: dict[str, str], method: str, url: str, form: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Ask as a browser does, which sends secure cookies to this machine over plain HTTP, too."""
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        async with httpx2.AsyncClient(timeout=120) as http:
            answer = await http.request(method, url, data=form, headers=headers)
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            cookies[name] = value
        return answer

    async def come_back(self) -> AuthorizationCodeResult:
        """Return what the client is told."""
        told = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        if "code" not in told:
            raise PermissionError(told)
        return AuthorizationCodeResult(code=told["code"], state=told.get("state"), iss=told.get("iss"))

    def _fill_in(self, page: httpx2.Response) -> tuple[str, dict[str, str]]:
        """Return where the form goes that asks for something, and what it is filled with."""
        fields = {"username": self.name, "password": self.name, "accept": "Yes", "kc.org": self.org}
        for form in re.findall(r"<form.*?</form>", page.text, re.DOTALL):
            known = {name: value for name, value in fields.items() if f'name="{name}"' in form}
            action = re.search(r'action="([^"]+)"', form)
            if known and action is not None:
                hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
                return urljoin(str(page.url), html.unescape(action[1])), hidden | known
        pytest.fail(f"{page.status_code} {page.url}: {page.text[:300]}")


if __name__ == "__main__":
    install()
