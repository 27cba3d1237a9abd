"""An installed re-ranker: a cross-encoder in ONNX, which reads a question and a text together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from refdesk.embedders.local.installed.manifest import Manifest, check_files, get_folder
from refdesk.errors import MissingDependencyError

if TYPE_CHECKING:
    from refdesk.embedders.local.installed.encoder import OnnxPairReader


class InstalledReranker:
    """Judges texts in a worker thread; the model is loaded at the first call."""

    def __init__(self, home: Path, manifest: Manifest) -> None:
        self._folder = get_folder(home, manifest.name)
        self._manifest = manifest
        self._reader: OnnxPairReader | None = None
        self._loading = threading.Lock()

    async def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the model's score for each text, in order.

        Raises:
            EmbedderError: The model's files have changed since it was installed, or cannot be run.
            MissingDependencyError: The packages that run it are not installed.
        """
        return await anyio.to_thread.run_sync(self._judge, question, texts, abandon_on_cancel=True)

    def _judge(self, question: str, texts: Sequence[str]) -> list[float]:
        reader = self._reader or self._load()
        return [reader.judge(question, text) for text in texts]

    def _load(self) -> OnnxPairReader:
        with self._loading:
            if self._reader is None:
                check_files(self._folder, self._manifest)
                self._reader = _open(self._folder, self._manifest.most_pieces)
            return self._reader


def _open(folder: Path, most_pieces: int) -> OnnxPairReader:
    try:
        from refdesk.embedders.local.installed.encoder import OnnxPairReader
    except ImportError as error:
        raise MissingDependencyError(f"A re-ranker needs the package {error.name}: install refdesk[models].") from error
    return OnnxPairReader(folder, most_pieces)
