"""What is asked of everybody who is compared: how it is started, and how it is spoken to."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.client import Client

REPOSITORY = Path(__file__).resolve().parents[2]
DOORS = Path(__file__).with_name("doors")


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept. The key is found again in what a search returns."""

    key: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Found:
    """A result: the key where the rival returns one, and its text."""

    key: str
    text: str


class Rival(ABC):
    """One of those that are compared; everything a rival keeps is below the folder that it is given.

    Attributes:
        name: How it is called on the page, and its environment's folder.
        package: What is installed, as its registry calls it.
        door: How it is spoken to.
        settings: What was set, for people.
        corrects: How a note is corrected with what it offers; empty where it offers nothing.
        python: The least version it needs.
        is_server: Whether an agent's host starts it; else it is a library behind a line protocol.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    door: ClassVar[str] = "MCP over stdio"
    settings: ClassVar[str]
    corrects: ClassVar[str]
    python: ClassVar[str] = "3.11"
    is_server: ClassVar[bool] = True

    def __init__(self, environment: Path) -> None:
        self.environment = environment

    @abstractmethod
    def command(self, home: Path) -> Sequence[str]:
        """Return what starts it."""

    def variables(self, home: Path) -> Mapping[str, str]:
        """Return what its environment has."""
        return {"HOME": str(home), "PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{DOORS}", "PEER_HOME": str(home)}

    def start(self, home: Path, mark: str | None = None, **more: str) -> Client:
        """Return a client that has not yet shaken hands."""
        return Client(self.command(home), {**self.variables(home), **more}, mark)

    def open(self, home: Path, mark: str | None = None, **more: str) -> Client:
        """Return a client that is ready to be asked."""
        client = self.start(home, mark, **more)
        try:
            client.open()
            self.prepare(client)
        except BaseException:
            client.kill()
            raise
        return client

    def prepare(self, client: Client) -> None:  # noqa: B027  most need nothing
        """Do what has to be done before the first note, once the hands are shaken."""

    @abstractmethod
    def store(self, client: Client, note: Note) -> str:
        """Keep a note, and return what it is corrected by, once the rival says that it is kept."""

    def correct(self, client: Client, handle: str, note: Note) -> str:
        """Put a note in an earlier one's place with what the rival offers for that."""
        return self.store(client, note)

    @abstractmethod
    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        """Return what is found, best first."""

    def ask_words(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        """Return what is found for a question; other than `search` where one call cannot take a whole question."""
        return self.search(client, query, limit)

    @abstractmethod
    def list_keys(self, home: Path) -> set[str]:
        """Return the keys of all notes that are kept in a folder where nothing runs."""

    @abstractmethod
    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        """Keep many notes by the fastest way that the rival offers, ready to be searched.

        Args:
            vectors: Where vectors that another has made are found; `None` where it is to make its own.

        Raises:
            PeerError: It could not, or not in so many seconds.
            TimeoutExpired: Likewise.
        """

    def read_version(self) -> str:
        """Return the version that is installed."""
        found = sorted(self.environment.glob(f"lib/python*/site-packages/{self.package.replace('-', '_')}-*.dist-info"))
        return found[-1].name.removesuffix(".dist-info").rpartition("-")[2] if found else "?"

    @property
    def interpreter(self) -> str:
        """The Python of its environment."""
        return str(self.environment / "bin" / "python")


def keep_vectors(vectors: Path | None) -> Mapping[str, str]:
    """Return what tells a door where vectors are kept and found again."""
    return {"REFDESK_PEERS_VECTORS": str(vectors)} if vectors is not None else {}


def as_text(note: Note) -> str:
    """Return a note as one text, for those that have no titles."""
    return f"{note.title}\n\n{note.body}"


def as_lines(notes: Sequence[Note]) -> str:
    """Return notes as lines of JSON."""
    return "".join(json.dumps({"key": n.key, "title": n.title, "body": n.body}) + "\n" for n in notes)


def structured(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the structured part of an answer."""
    return answer["structuredContent"]
