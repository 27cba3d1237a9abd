"""Where a desk and its clients meet: a folder in the data folder that only its owner can enter.

For each desk that folder has a lock that the running desk holds, a lock for the process that starts one, a log, and a
file that says where the desk listens. Their names are keyed digests, since what distinguishes desks contains secrets.
"""

from __future__ import annotations

import _socket as socket  # see hello
import errno
import json
import os
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from refdesk.forwarder.identity import Identity
from refdesk.forwarder.locking import FileLock
from refdesk.forwarder.typed import NamedTuple, cast

try:
    from _blake2 import blake2b  # hashlib would load OpenSSL, a tenth of a forwarder's memory
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "desk"
SECRET_BYTES = 32
MOST_SOCKET_PATH = 100
"""Systems allow 104 to 108 bytes, including the zero at the end."""

DESCRIPTORS = "/proc/self/fd"
"""On systems that have this, the length of the data folder's path does not matter."""

LOOPBACK = "127.0.0.1"
UNSAFE = "its folder can be entered by others"


class UnusableError(Exception):
    """No desk can be reached here: the folder cannot be created, or the system has no suitable sockets. The message
    says why."""


class Found(NamedTuple):
    """A desk as its file describes it; it may have ended.

    Attributes:
        address: The path of its socket, or its port on loopback.
        kind: `desk`, or `http` for a server that serves over HTTP too.
    """

    pid: int
    version: str
    address: str | int
    kind: str
    key: str
    started: float

    def to_json(self) -> dict[str, object]:
        """Return the contents of its file."""
        return {name: getattr(self, name) for name in ("pid", "version", "address", "kind", "key", "started")}


class Place(NamedTuple):
    """The files of one desk.

    Attributes:
        folder: The folder that holds them.
        secret: Known only to those who can read the folder.
        key: Stands for the desk in the names of files.
    """

    folder: str
    secret: bytes
    key: str

    def path(self, suffix: str) -> str:
        """Return the path of one of the files."""
        return os.path.join(self.folder, self.key + suffix)

    def get_life_lock(self) -> FileLock:
        """Return the lock that the running desk holds."""
        return FileLock(self.path(".lock"))

    def get_start_lock(self) -> FileLock:
        """Return the lock that a process holds while it starts a desk."""
        return FileLock(self.path(".start"))

    def find(self) -> Found | None:
        """Return the desk that has announced itself here, if one has."""
        return _read(self.path(".json"), self.key)

    def announce(self, found: Found) -> None:
        """Say where the desk listens; readers see the whole announcement or none."""
        path = self.path(f".json-{os.getpid()}")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found.to_json(), file)
        os.replace(path, self.path(".json"))

    def withdraw(self) -> None:
        """Remove the announcement if it is this process's."""
        found = self.find()
        if found is not None and found.pid == os.getpid():
            remove(self.path(".json"))

    def prove(self, role: str, nonce: str) -> str:
        """Return a proof that this process knows the secret."""
        return _digest(self.secret, "proof", role, nonce)


def open_place(desk: Identity) -> Place:
    """Return the place of a desk; create its folder if it does not exist.

    Raises:
        UnusableError: The folder cannot be created, or exists and is not a folder of this user.
    """
    folder = os.path.join(desk.home, FOLDER)
    try:
        os.makedirs(desk.home, exist_ok=True)
        make_private(folder)
        secret = _get_secret(os.path.join(folder, "secret"))
    except OSError as error:
        raise UnusableError(error.strerror or str(error)) from None
    return Place(folder, secret, _digest(secret, "desk", desk.home, *desk.facts)[:16])


def find_place(desk: Identity) -> Place | None:
    """Return the place of a desk if its folder exists already; create nothing."""
    folder = os.path.join(desk.home, FOLDER)
    if not os.path.exists(os.path.join(folder, "secret")):
        return None
    try:
        return open_place(desk)
    except UnusableError:
        return None


def open_known_place(home: str, key: str) -> Place:
    """Return the place of a desk whose key is known; raise OSError if its folder is gone."""
    folder = os.path.join(home, FOLDER)
    return Place(folder, _get_secret(os.path.join(folder, "secret")), key)


def list_places(home: str) -> Iterator[tuple[Place, Found]]:
    """Yield the desks that have announced themselves in a data folder, whatever their settings."""
    folder = os.path.join(home, FOLDER)
    try:
        secret = _get_secret(os.path.join(folder, "secret"))
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return
    for name in names:
        place = Place(folder, secret, name.removesuffix(".json"))
        found = place.find()
        if found is not None:
            yield place, found


def connect(found: Found) -> socket.socket:
    """Return a connection to a desk.

    Raises:
        OSError: The desk is gone, or belongs to another user.
    """
    is_local = isinstance(found.address, str)
    connection = socket.socket(socket.AF_UNIX if is_local else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if isinstance(found.address, str):
            with shorten(found.address) as short:
                connection.connect(short)
            require_own(connection)
        else:
            connection.connect((LOOPBACK, found.address))
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def shorten(path: str) -> Generator[str]:
    """Yield a path to the same file that is short enough for a socket, by way of a descriptor of its folder."""
    if len(os.fsencode(path)) <= MOST_SOCKET_PATH:
        yield path
        return
    folder, name = os.path.split(path)
    number = os.open(folder, os.O_RDONLY)
    try:
        yield f"{DESCRIPTORS}/{number}/{name}"
    finally:
        os.close(number)


def require_own(connection: socket.socket) -> None:
    """Check that the other end of a Unix socket is a process of the same user, as far as the system can tell.

    Raises:
        PermissionError: It belongs to another user.
    """
    if connection.family == socket.AF_INET or not hasattr(socket, "SO_PEERCRED"):
        return  # the folder's mode, or the secret, protects it
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    owner = int.from_bytes(credentials[4:8], sys.byteorder)
    if owner != os.getuid():
        raise PermissionError(errno.EPERM, f"the other end belongs to user {owner}")


def make_private(folder: str) -> None:
    """Create a folder that only its owner can enter; one that exists is made so.

    Raises:
        OSError: It cannot be created.
        UnusableError: It exists and is not a folder of this user.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if sys.platform != "win32":
            _require_private(folder)


def _require_private(folder: str) -> None:
    there = os.lstat(folder)
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid():
        raise UnusableError(f"{folder} is no folder of this user's")
    if stat.S_IMODE(there.st_mode) & 0o077:
        os.chmod(folder, 0o700)


def _get_secret(path: str) -> bytes:
    """Return the folder's secret; the first process that asks creates it."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        pass
    draft = f"{path}-{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(SECRET_BYTES))
    try:
        os.link(draft, path)  # unlike a rename, this fails if another process was faster
    except FileExistsError:
        pass
    finally:
        remove(draft)
    with open(path, "rb") as file:
        return file.read()


def _read(path: str, key: str) -> Found | None:
    try:
        with open(path, encoding="utf-8") as file:
            said = cast("dict[str, Any]", json.load(file))
        return Found(said["pid"], said["version"], said["address"], said["kind"], key, said["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove(path: str) -> None:
    """Delete a file, if it is there and can be deleted."""
    try:
        os.unlink(path)
    except OSError:
        return


def _digest(secret: bytes, *parts: str) -> str:
    digest = blake2b(key=secret, digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
