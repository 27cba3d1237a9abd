"""The shipped server, held to the protocol by the protocol's own suite and inspector."""

from __future__ import annotations

import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.acceptance.processes import start
from tests.protocol.suite import Suite, find_failed, install_suite, read_list

FIXTURES = ["-m", "tests.protocol.fixture_server"]
SERVE = ["-m", "refdesk", "serve", "--no-auth", "--sse", "--port", "0"]
REVISIONS = ("2025-11-25", "2026-07-28")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def suite(request: pytest.FixtureRequest) -> Suite:
    return install_suite(request.config.cache.mkdir("protocol"))  # pyright: ignore[reportOptionalMemberAccess]


@pytest.fixture
def url(suite: Suite, tmp_path: Path) -> Generator[str]:
    del suite
    with start(SERVE, tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_AZURE_UPDATES_URL="http://127.0.0.1:9") as server:
        yield str(server.read_log("listening")["url"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_fails_but_what_the_written_list_names_and_all_of_that_does(
    suite: Suite, url: str, revision: str, tmp_path: Path
) -> None:
    found = suite.run_scenarios(f"{url}/mcp", tmp_path / "results", "--requirements", revision)
    failed, listed = find_failed(found), read_list(revision)
    assert failed - listed == set(), "these fail and no reason is written for them"
    assert listed - failed == set(), "these do not fail: take them off the list"
    passed = sum(status == "SUCCESS" for checks in found.values() for status in checks.values())
    assert passed >= 20


@pytest.mark.parametrize("revision", REVISIONS)
def test_with_the_suites_fixtures_the_adapter_holds_all_that_is_offered(
    suite: Suite, revision: str, tmp_path: Path
) -> None:
    with start(FIXTURES, tmp_path) as server:
        url = server.read_line()
        found = suite.run_scenarios(f"{url}/mcp", tmp_path / "results", "--requirements", revision)
    failed, listed = find_failed(found), read_list(f"{revision}, with the suite's fixtures")
    assert failed - listed == set(), "these fail and no reason is written for them"
    assert listed - failed == set(), "these do not fail: take them off the list"
    passed = sum(status == "SUCCESS" for checks in found.values() for status in checks.values())
    assert passed >= 75


def test_the_suite_notices_a_server_that_does_not_hold_the_protocol(suite: Suite, tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Nonsense) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/mcp"
        found = suite.run_scenarios(address, tmp_path, "--scenario", "server-initialize")
        server.shutdown()
    assert find_failed(found)


class _Nonsense(BaseHTTPRequestHandler):
    """Answers whatever is asked with an empty object."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.mark.parametrize("address", ["/mcp", "/sse"])
def test_every_schema_is_portable_over_http(suite: Suite, url: str, address: str) -> None:
    done = suite.inspect([url + address])
    assert done.returncode == 0, done.stderr
    assert '"search_everything"' in done.stdout


def test_every_schema_is_portable_over_stdio(suite: Suite) -> None:
    done = suite.inspect(["--", sys.executable, "-m", "refdesk", "serve", "--stdio", "--isolated"])
    assert done.returncode == 0, done.stderr
    assert '"search_everything"' in done.stdout


def test_the_inspector_notices_a_schema_that_is_not_portable(suite: Suite) -> None:
    done = suite.inspect(["--", sys.executable, str(Path(__file__).parent / "unportable_server.py")])
    assert done.returncode == 6
