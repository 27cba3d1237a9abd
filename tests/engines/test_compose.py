"""What `compose.yaml` puts together, without containers: its settings, its script, real engines, real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.processes import run, start
from tests.conftest import REPOSITORY
from tests.engines import neo4j, postgres, redis
from tests.engines.redis import until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(240)]

PASSWORD = "a-Secret-0123"
SETTING = re.compile(r"^ +(REFDESK_[A-Z_]+): (\S.*)$", re.MULTILINE)
TALK = """\
Customer: The label printer feeds two labels at a time.
Agent: Please clean the gap sensor with a dry cloth.
Customer: That helped, thank you.
"""


def read_settings(addresses: dict[str, str]) -> dict[str, str]:
    """Return the settings of `compose.yaml`, with the addresses of the engines that run here."""
    found = dict(SETTING.findall((REPOSITORY / "compose.yaml").read_text()))
    assert {"REFDESK_STORE", "REFDESK_SKILLS_STORE", "REFDESK_REDIS"} <= set(found)
    return {name: fill(value, addresses) for name, value in found.items()}


def fill(value: str, addresses: dict[str, str]) -> str:
    value = re.sub(r"\$\{[A-Z0-9_]*PASSWORD[^}]*\}", PASSWORD, value)
    value = re.sub(r"\$\{[A-Z_]+:-\}", "", value)
    for service, address in addresses.items():
        value = value.replace(service, address)
    return value


def make_database(server: postgres.PostgresServer) -> None:
    """Make the database as PostgreSQL's image does: the image itself makes it, then it runs our script."""
    with psycopg.connect(server.get_url(role="postgres", database="postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE refdesk")
    path = f"{postgres.find_package() / 'pginstall' / 'bin'}:{os.defpath}"
    variables = {"PATH": path, "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "POSTGRES_PASSWORD": PASSWORD}
    script = REPOSITORY / "deploy" / "postgres.sh"
    subprocess.run(["bash", str(script)], env=variables, check=True, capture_output=True, timeout=60)


@contextmanager
def running_command(home: Path, settings: dict[str, str], *arguments: str, says: str) -> Generator[dict[str, Any]]:
    """Yield the entry of its log that says that it is up; it must end well when it is told to stop."""
    with start(["-m", "refdesk", *arguments], home, REFDESK_EMBEDDER="hashing", **settings) as running:
        yield running.read_log(says)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=30) == 0


async def test_a_server_and_workers_serve_a_team_on_all_three_engines(tmp_path: Path) -> None:
    with ExitStack() as stack:
        database = postgres.PostgresServer(is_empty=True)
        stack.callback(database.remove)
        database.make_cluster()
        database.start()
        make_database(database)
        graph = stack.enter_context(neo4j.running(has_auth=True))
        graph.set_password(PASSWORD)
        queue = stack.enter_context(redis.running())
        settings = read_settings(
            {
                "postgres:5432": f"127.0.0.1:{database.port}",
                "neo4j:7687": f"127.0.0.1:{graph.port}",
                "redis:6379": f"127.0.0.1:{queue.port}",
            }
        )
        for number in range(2):
            home = tmp_path / f"worker{number}"
            stack.enter_context(running_command(home, settings, "worker", says="working"))
        serve = running_command(tmp_path / "server", settings, "serve", "--port", "0", says="listening")
        url = stack.enter_context(serve)["url"]
        made = run(["keys", "create", "--org", "acme", "--agent", "ann", *SCOPES, "--json"], tmp_path, **settings)
        assert made.returncode == 0, made.stderr
        await use(url, json.loads(made.stdout)["key"])
        assert graph.query("MATCH (d:Document {toolset: 'skills'}) RETURN count(d)") == [[1]]
        with psycopg.connect(database.get_url(role="postgres")) as connection:
            kept = postgres.fetch(connection, "SELECT DISTINCT org, toolset FROM documents")
        assert kept == [("acme", "knowledge")]
        assert "bull:embeddings:meta" in queue.list_keys()
        await until(partial(is_healthy, url))


async def is_healthy(url: str) -> bool:
    """Return whether nothing is wrong but the feed, which nobody serves here; a busy machine may answer late first."""
    async with httpx2.AsyncClient(timeout=60) as client:
        problems = (await client.get(f"{url}/health")).json()["problems"]
    return all("azure-updates" in problem for problem in problems)


SCOPES = [
    word
    for scope in ("knowledge:read", "knowledge:write", "skills:read", "skills:write")
    for word in ("--scope", scope)
]


async def use(url: str, key: str) -> None:
    """Write and search both kinds as an agent does."""
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):

        async def call(tool: str, **arguments: object) -> dict[str, Any]:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            assert answer.structured_content is not None
            return answer.structured_content

        stored = await call("store_knowledge", title="Refund limit", body="Above 500 EUR a lead approves.")
        learned = await call("create_skill", conversation=TALK)

        async def is_embedded() -> bool:
            return (await call("get_knowledge", id=stored["id"]))["embeddingStatus"] == "ready"

        await until(is_embedded)
        found = await call("search_knowledge", query="who approves refunds")
        assert [each["id"] for each in found["results"]] == [stored["id"]]
        skills = await call("search_skills", query="the printer feeds two labels")
        assert [each["skill_id"] for each in skills["matches"]] == [learned["skill"]["skill_id"]]
