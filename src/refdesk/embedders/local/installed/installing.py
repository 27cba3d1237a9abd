"""Installs an embedding model from a folder, an archive or a Hugging Face repository, and checks that it runs.

A model is complete in its folder or not there at all: it is assembled in a temporary folder and renamed at the end.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from refdesk import errors
from refdesk.embedders.local.installed.layout import CONFIGS, Layout, read_layout
from refdesk.embedders.local.installed.manifest import (
    FOLDER,
    IN_USE,
    MODEL_FILE,
    PACKAGED,
    RERANKS,
    TOKENIZER_FILE,
    Manifest,
    get_folder,
    write_manifest,
)

MOST_BYTES = 4 << 30
"""Most bytes of one file; a sentence encoder that can run on a CPU is far smaller."""

MOST_TOKENIZER_BYTES = 256 << 20
"""It is parsed whole; that of a hundred languages has 17 MB."""

MODELS = ("onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model.onnx", "model_quantized.onnx", "model.onnx")
"""Paths of the model in repositories: first the one in int8, which is as good and three times as fast."""

CHECKED_TEXT = "How do I reset my password?"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_ARCHIVES = (".zip", ".jar", ".whl", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a model by their paths within the source, each with a function that opens it, to be called once."""

    name: str
    files: dict[str, Callable[[], IO[bytes]]]


def install(source: str, home: Path, *, name: str | None = None, sha256: str | None = None) -> Manifest:
    """Install a model and return its manifest; an installed model of the same name is replaced.

    Args:
        source: A folder, an archive (zip, jar, wheel, tar), or `OWNER/NAME` of a Hugging Face repository.
        home: The data folder.
        name: The name to install it under; by default, derived from its source.
        sha256: The hex digest that the model's file must have.

    Raises:
        InvalidInputError: There is no model in the source, its digest is another, or it does not run.
        MissingDependencyError: The packages that run such models are not installed.
        SourceError: The repository cannot be read.
    """
    called = _choose_name(name, source)
    (home / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        _explaining(source),
        _open_source(source) as opened,
        tempfile.TemporaryDirectory(dir=home / FOLDER, prefix=".") as temporary,
    ):
        folder = Path(temporary) / called
        folder.mkdir(mode=0o700)
        digests = _copy(opened, folder)
        if sha256 is not None and digests[MODEL_FILE] != sha256.casefold():
            raise errors.InvalidInputError(f"The model's SHA-256 is {digests[MODEL_FILE]}, not {sha256}.")
        layout = _read_layout(opened, f"{called} {source}", folder)
        dimensions, made = _try(folder, layout)
        manifest = Manifest(
            name=called, source=source, dimensions=dimensions, sha256={**digests, **made}, **asdict(layout)
        )
        write_manifest(folder, manifest)
        _put_in_place(folder, get_folder(home, called))
    return manifest


def remove(home: Path, name: str) -> None:
    """Remove an installed model's folder."""
    shutil.rmtree(get_folder(home, name))


def _choose_name(name: str | None, source: str) -> str:
    base = re.split(r"[\\/]", source.rstrip("/\\"))[-1].casefold()
    for ending in _ARCHIVES:
        base = base.removesuffix(ending)
    called = name if name is not None else re.sub(r"[^a-z0-9._-]+", "-", base).strip("-._")
    if not _NAME.fullmatch(called) or called in (PACKAGED, IN_USE, RERANKS):
        raise errors.InvalidInputError(
            f"{called!r} cannot be a model's name: use letters, digits, dots and hyphens, such as --name bge-small."
        )
    return called


@contextmanager
def _explaining(source: str) -> Generator[None]:
    """Let what is wrong with an archive be an error of the input, of whichever class its library raises."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
        raise errors.InvalidInputError(
            f"{source} cannot be read ({error}): get it again, or unpack it and name the folder."
        ) from error


@contextmanager
def _open_source(source: str) -> Generator[Source]:
    path = Path(source).expanduser()
    if path.is_dir():
        yield _list_folder(source, path)
    elif path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield _list_zip(source, archive)
    elif path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            yield _list_tar(source, archive)
    elif path.exists():
        raise errors.InvalidInputError(f"{source} is neither a folder nor an archive (zip, jar, wheel or tar).")
    elif _REPOSITORY.fullmatch(source):
        yield _download(source)
    else:
        raise errors.InvalidInputError(
            f"There is no {source}: name a folder, an archive, or a Hugging Face repository as OWNER/NAME."
        )


def _list_folder(source: str, path: Path) -> Source:
    files = [each for each in path.rglob("*") if each.is_file()]
    return Source(source, {each.relative_to(path).as_posix(): partial(_open, each) for each in files})


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _list_zip(source: str, archive: zipfile.ZipFile) -> Source:
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    return Source(source, {name: partial(archive.open, name) for name in names})


def _list_tar(source: str, archive: tarfile.TarFile) -> Source:
    members = [each for each in archive.getmembers() if each.isfile()]
    return Source(source, {each.name.removeprefix("./"): partial(_extract, archive, each) for each in members})


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    opened = archive.extractfile(member)
    if opened is None:
        raise errors.InvalidInputError(f"{member.name} cannot be read from the archive.")
    return opened


def _download(repository: str) -> Source:
    """Download the files of a Hugging Face repository that a model needs to that library's cache, and return them."""
    try:
        from huggingface_hub import hf_hub_download  # pyright: ignore[reportUnknownVariableType]
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise errors.MissingDependencyError(
            f"To install from a repository takes the package {error.name}: install refdesk[models]."
        ) from error

    def fetch(names: Sequence[str]) -> Iterator[tuple[str, Path]]:
        for name in names:
            try:
                yield name, Path(hf_hub_download(repository, name))
            except LocalEntryNotFoundError:
                raise  # a subclass of the other: the service is out of reach, which says nothing of the file
            except EntryNotFoundError:
                continue

    try:
        model = next(fetch(MODELS), None)
        found = dict([*([model] if model else []), *fetch((TOKENIZER_FILE, *CONFIGS))])
    except Exception as error:  # the library raises whatever its HTTP client raises
        raise errors.SourceError(f"The repository {repository} cannot be read: {error}") from error
    return Source(repository, {name: partial(_open, path) for name, path in found.items()})


def _copy(source: Source, folder: Path) -> dict[str, str]:
    """Copy the model and its tokenizer; return the digest of each file by its name in the folder."""
    chosen = {MODEL_FILE: _find_model(source), TOKENIZER_FILE: _find(source, TOKENIZER_FILE)}
    for file, name in chosen.items():
        if name is None:
            raise errors.InvalidInputError(
                f"{source.name} holds no {file}: a sentence encoder in ONNX with its tokenizer.json is needed."
            )
    return {file: _copy_file(source.files[name], folder / file) for file, name in chosen.items() if name is not None}


def _find_model(source: Source) -> str | None:
    known = next((name for wanted in MODELS for name in source.files if f"/{name}".endswith(f"/{wanted}")), None)
    others = [name for name in source.files if name.endswith(".onnx")]
    return known or (others[0] if len(others) == 1 else None)


def _find(source: Source, wanted: str) -> str | None:
    """Return the path whose file name ends as wanted; if there are several, the shortest."""
    fitting = [name for name in source.files if PurePosixPath(name).name.endswith(wanted)]
    return min(fitting, key=lambda name: (len(name), name), default=None)


def _copy_file(open_file: Callable[[], IO[bytes]], target: Path) -> str:
    most = MOST_TOKENIZER_BYTES if target.name == TOKENIZER_FILE else MOST_BYTES
    digest, left = hashlib.sha256(), most
    target.touch(mode=0o600)
    with open_file() as source, target.open("wb") as copy:
        while block := source.read(1 << 20):
            left -= len(block)
            if left < 0:
                raise errors.InvalidInputError(f"{target.name} is larger than {most >> 20:,} MB.")
            digest.update(block)
            copy.write(block)
    return digest.hexdigest()


def _read_layout(source: Source, name: str, folder: Path) -> Layout:
    configs: dict[str, str] = {}
    for config in CONFIGS:
        found = next((each for each in source.files if f"/{each}".endswith(f"/{config}")), None)
        if found is not None:
            with source.files[found]() as file:
                configs[config] = file.read(1 << 20).decode(errors="replace")
    return read_layout(name, configs, _count_pieces(folder))


def _count_pieces(folder: Path) -> int:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise errors.MissingDependencyError("To install a model takes refdesk[models]: install that first.") from error
    try:
        return Tokenizer.from_file(str(folder / TOKENIZER_FILE)).get_vocab_size()
    except Exception as error:  # the library raises no narrower class
        raise errors.InvalidInputError(f"The tokenizer cannot be read: {error}") from error


def _try(folder: Path, layout: Layout) -> tuple[int, dict[str, str]]:
    """Try the model; return the width of its vectors, which is 1 for a re-ranker, and the digests of further files that
    were made with it, by name."""
    from refdesk.embedders.local.installed.centring import write_centres
    from refdesk.embedders.local.installed.encoder import OnnxEncoder, OnnxPairReader

    try:
        if layout.kind == "reranker":
            OnnxPairReader(folder, layout.most_pieces).judge(CHECKED_TEXT, CHECKED_TEXT)
            return 1, {}
        encoder = OnnxEncoder(folder, layout.pooling, layout.most_pieces)
        width = len(encoder.encode(layout.query_prefix + CHECKED_TEXT, layout.most_pieces))
        return width, write_centres(folder, layout, lambda text: encoder.encode(text, layout.most_pieces))
    except errors.EmbedderError as error:
        raise errors.InvalidInputError(error.message) from error


def _put_in_place(folder: Path, target: Path) -> None:
    if target.exists():
        old = folder.with_name(f"{folder.name}-replaced")
        target.rename(old)
    folder.rename(target)
