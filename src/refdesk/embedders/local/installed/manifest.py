"""What is known about an installed embedding model: a manifest next to its files, in a folder of its own.

The folder is `models/NAME` in the data folder. The file `models/in-use` names the model that makes vectors; without it,
the packaged one does. `models/re-ranks` names the one that re-ranks, if any does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from refdesk import errors
from refdesk.kit.files import write_atomically
from refdesk.model import EmbeddingModel

FOLDER = "models"
IN_USE = "in-use"
RERANKS = "re-ranks"
MANIFEST = "manifest.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
CENTRES_FILE = "centres.npy"
"""The centres of a model, which only models with narrow vectors have; see `centring`."""

PACKAGED = "all-minilm-l6-v2-int8"

Pooling: TypeAlias = Literal["mean", "cls", "last"]
Kind: TypeAlias = Literal["encoder", "reranker"]
Languages: TypeAlias = Literal["latin", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """An installed model.

    Attributes:
        source: What it was installed from.
        dimensions: The width of its vectors.
        pooling: How the vectors of a text's pieces become one.
        most_pieces: Most pieces of a text that are read.
        query_prefix: The text put before a question, as in the model's training; likewise `passage_prefix`.
        languages: With `latin`, texts in other scripts are not embedded, because their vectors would mislead.
        sha256: The hex digest of each file.
        known: The ISO 639-1 codes of the languages that it knows according to its card; in others its vectors count
            less. `None` if the card does not say: then English if `languages` is `latin`, else any.
        kind: Whether it makes vectors, or reads a question and a text together, in which case `dimensions` is 1.
    """

    name: str
    source: str
    dimensions: int
    pooling: Pooling
    most_pieces: int
    query_prefix: str
    passage_prefix: str
    languages: Languages
    sha256: dict[str, str]
    known: list[str] | None = None
    kind: Kind = "encoder"

    @property
    def model(self) -> EmbeddingModel:
        """The model under which vectors are stored: another file, or another way to use it, makes another model."""
        said = [self.pooling, self.most_pieces, self.query_prefix, self.passage_prefix, *sorted(self.sha256.values())]
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        return EmbeddingModel(f"{self.name}@{digest[:12]}", self.dimensions)


def get_folder(home: Path, name: str) -> Path:
    """Return the folder of a model, which need not exist."""
    return home / FOLDER / name


def list_installed(home: Path) -> list[Manifest]:
    """Return the installed models, sorted by name; folders without a readable manifest are skipped."""
    paths = sorted((home / FOLDER).glob(f"*/{MANIFEST}"))
    return [manifest for path in paths if (manifest := _read(path)) is not None]


def find_installed(home: Path, name: str) -> Manifest | None:
    """Return an installed model, or `None` if none has the name."""
    return next((each for each in list_installed(home) if each.name == name), None)


def read_in_use(home: Path) -> str:
    """Return the name of the model that makes vectors."""
    try:
        return (home / FOLDER / IN_USE).read_text(encoding="utf-8").strip() or PACKAGED
    except (FileNotFoundError, NotADirectoryError):
        return PACKAGED


def write_in_use(home: Path, name: str) -> None:
    """Let a model make vectors, from the next start of each process."""
    (home / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(home / FOLDER / IN_USE, [f"{name}\n"])


def find_reranker(home: Path) -> Manifest | None:
    """Return the re-ranker in use; `None` if none is in use, or it is not installed."""
    try:
        name = (home / FOLDER / RERANKS).read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return find_installed(home, name)


def write_reranker(home: Path, name: str) -> None:
    """Let a model re-rank, from the next start of each process."""
    write_atomically(home / FOLDER / RERANKS, [f"{name}\n"])


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside the model's files."""
    write_atomically(folder / MANIFEST, [json.dumps(asdict(manifest), indent=2, ensure_ascii=False), "\n"])


def check_files(folder: Path, manifest: Manifest) -> None:
    """Check that every file is the one that was installed.

    Raises:
        EmbedderError: A file is missing or has changed.
    """
    for name, digest in manifest.sha256.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            found = ""
        if found != digest:
            raise errors.EmbedderError(
                f"The embedding model {manifest.name} is not as it was installed ({name}): install it again with "
                f"`refdesk models install {manifest.source} --name {manifest.name}`."
            )


def _read(path: Path) -> Manifest | None:
    try:
        return Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
