"""A real Neo4j Community Edition, from Maven Central: one for each process of tests, started when needed.

Maven fetches it once into the environment's folder. Stores are namespaces of the one database that this edition has.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, LiteralString

import pytest
from neo4j import Driver, GraphDatabase

from tests.conftest import REPOSITORY
from tests.engines.servers import find_free_port, read_up

PROJECT = Path(__file__).parent / "neo4j_server"
INSTALLATION = REPOSITORY / ".venv" / "neo4j"
FETCH_SECONDS = 900.0
PATIENCE_SECONDS = 300.0
MODULES = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
JAVA_OPTIONS = (
    "-Xmx768m",
    "-XX:+UseSerialGC",
    "-Xlog:disable",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(f"--add-opens=java.base/{module}=ALL-UNNAMED" for module in MODULES),
)
BRIEF = "-XX:TieredStopAtLevel=1"
"""Compiles quickly and not well: for a server that ends before more would pay."""

ARCHIVE = "classes.jsa"
FIRST_STATEMENTS: tuple[LiteralString, ...] = (
    "CREATE CONSTRAINT c IF NOT EXISTS FOR (n:A) REQUIRE (n.a, n.b) IS UNIQUE",
    "CREATE FULLTEXT INDEX f IF NOT EXISTS FOR (n:A) ON EACH [n.t] "
    "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}",
    "CREATE VECTOR INDEX v IF NOT EXISTS FOR (n:B) ON (n.v) "
    "OPTIONS {indexConfig: {`vector.dimensions`: 2, `vector.similarity_function`: 'cosine'}}",
    "CALL db.awaitIndexes(60)",
    "UNWIND [1, 2] AS x MERGE (n:A {a: x, b: 1}) SET n += {t: 'x y'} CREATE (n)-[:H]->(m:B) "
    "WITH m CALL db.create.setNodeVectorProperty(m, 'v', [0.6, 0.8])",
    "UNWIND [1] AS x MATCH (n:A {a: x, b: 1}) MERGE (n)-[r:$('R') {k: 'k'}]->(n) RETURN type(r), count(n)",
    "CALL db.index.fulltext.queryNodes('f', 'x') YIELD node AS n WITH DISTINCT n WHERE n.a IN [1] "
    "RETURN collect([n.a, all(word IN ['x'] WHERE word IN [n.t])])",
    "CALL db.index.vector.queryNodes('v', 2, [1.0, 0.0]) YIELD node AS m, score MATCH (n:A)-[:H]->(m) "
    "WITH n, max(vector.similarity.cosine(m.v, [1.0, 0.0])) AS s ORDER BY s DESC, n.a LIMIT 2 RETURN collect(n.a)",
    "SHOW VECTOR INDEXES YIELD name RETURN name",
)


class Neo4jServer:
    """One server in a folder of its own, on a port of the loopback interface. `start` after `kill` is a recovery."""

    def __init__(self, *, has_auth: bool = False, is_brief: bool = True, learns: Path | None = None) -> None:
        """Make a server that is not started yet.

        Args:
            has_auth: Whether users sign in.
            is_brief: Whether it is asked little; else its code is compiled as where people use it.
            learns: Where classes were fetched to: what the server loads is written there when it stops.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="refdesk-neo4j-"))
        self.port = find_free_port()
        self._installed = learns or install()
        self._options = (*JAVA_OPTIONS, *((BRIEF,) if is_brief else ()))
        self._share = f"-XX:{'ArchiveClassesAtExit' if learns else 'SharedArchiveFile'}={self._installed / ARCHIVE}"
        self._access = "auth" if has_auth else "open"
        self._user = ("neo4j", "neo4j") if has_auth else None
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread()

    def start(self, *settings: str) -> None:
        """Return when the server takes connections; `settings` are `name=value` as in its own configuration."""
        class_path = ":".join(str(path) for path in sorted(self._installed.rglob("*.jar")))
        configuration = self.folder / "neo4j.conf"
        configuration.write_text("\n".join(settings))
        arguments = (str(self.folder / "data"), str(self.port), self._access, str(configuration))
        self._process = process = subprocess.Popen(
            ["java", *self._options, self._share, "-cp", class_path, "Server", *arguments],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        alarm = threading.Timer(PATIENCE_SECONDS, process.kill)
        alarm.start()
        said = self._read_until_ready(process)
        alarm.cancel()
        assert process.stdout is not None
        self._reader = read_up(process.stdout)
        assert "ready\n" in said, "".join(said[-20:])

    def stop(self) -> None:
        """End the server in an orderly way."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._end(signal.SIGKILL)

    def kill(self) -> None:
        """End the server at once, as a power switch would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Keep the server from doing anything: it takes connections and does not answer."""
        self._signal(signal.SIGSTOP)

    def limit_files(self, most_bytes: int) -> None:
        """Let no file of the server grow beyond this: what it meets then is what a full disk does."""
        assert self._process is not None
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    def resume(self) -> None:
        """Let a paused server go on."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """End the server and remove its folder."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def get_url(self, namespace: str = "refdesk", *, scheme: str = "bolt", user: str = "", port: int = 0) -> str:
        """Return the URL of the store that is kept in a namespace; `port` leads through a proxy."""
        return f"{scheme}://{user and user + '@'}127.0.0.1:{port or self.port}?namespace={namespace}"

    def query(self, statement: LiteralString, **parameters: object) -> list[list[Any]]:
        """Return what a statement of the tests' own returns."""
        with self._connect() as driver:
            return [record.values() for record in driver.execute_query(statement, parameters).records]

    def set_password(self, password: str) -> None:
        """Give the first user, `neo4j`, a password in place of the one that everybody knows."""
        with self._connect() as driver:
            statement = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
            driver.execute_query(statement, {"password": password}, database_="system")
        self._user = ("neo4j", password)

    def _connect(self) -> Driver:
        return GraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]
            f"bolt://127.0.0.1:{self.port}", auth=self._user, notifications_min_severity="OFF"
        )

    def _read_until_ready(self, process: subprocess.Popen[str]) -> list[str]:
        said: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line == "ready\n":
                break
        return said

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_SECONDS)
            self._reader.join(PATIENCE_SECONDS)
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None


@cache
def install() -> Path:
    """Return the folder with the server's classes, fetched by Maven when they are not there; one process at a time."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        _give_up("Neo4j needs Java 17 and Maven on the path")
    INSTALLATION.mkdir(parents=True, exist_ok=True)
    sources = [Path(__file__), *sorted(path for path in PROJECT.rglob("*") if path.is_file())]
    content = hashlib.blake2b(b"\0".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()
    made = INSTALLATION / content
    with (INSTALLATION / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "complete").exists():
            _fetch(made)
            _learn(made)
            (made / "complete").touch()
    return made


def _fetch(folder: Path) -> None:
    options = (
        "-B",
        "-q",
        "-f",
        str(PROJECT),
        f"-Dmaven.repo.local={INSTALLATION / 'repository'}",
        f"-Doutput={folder}",
    )
    fetched = subprocess.run(
        ["mvn", *options, "compile", "dependency:copy-dependencies"],
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS,
        check=False,
    )
    if fetched.returncode != 0:
        _give_up(f"Neo4j could not be fetched from Maven Central: {fetched.stdout[-2000:]}")

    shutil.make_archive(str(folder / "server"), "zip", folder / "classes")
    (folder / "server.zip").rename(folder / "server.jar")


def _learn(folder: Path) -> None:
    """Have Java keep what it loads for a server's first statements: every later start takes half as long."""
    server = Neo4jServer(learns=folder)
    try:
        server.start()
        for statement in FIRST_STATEMENTS:
            server.query(statement)
        server.stop()
    finally:
        server.remove()


def _give_up(reason: str) -> None:
    if "neo4j" in os.environ.get("REFDESK_TEST_ENGINES", ""):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def running(*settings: str, has_auth: bool = False, is_brief: bool = True) -> Generator[Neo4jServer]:
    """Yield a server that is nobody else's; remove it on leaving. For `settings` see `Neo4jServer.start`."""
    server = Neo4jServer(has_auth=has_auth, is_brief=is_brief)
    try:
        server.start(*settings)
        yield server
    finally:
        server.remove()


@cache
def get_server() -> Neo4jServer:
    """Return the server that the tests of this process share."""
    server = Neo4jServer()
    atexit.register(server.remove)
    server.start()
    return server


def get_namespace(folder: Path) -> str:
    """Return the name of the namespace that stands for a folder."""
    return "t-" + hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()


def get_store_url(folder: Path, server: Neo4jServer | None = None, *, port: int = 0) -> str:
    """Return the URL of the store that stands for a folder: the same folder is the same store."""
    return (server or get_server()).get_url(get_namespace(folder), port=port)


if __name__ == "__main__":
    install()
