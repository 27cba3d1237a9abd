"""Embedding models installed in addition to the packaged one: any sentence encoder in ONNX with its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from refdesk.embedders.local import Encoder, LocalEmbedder
from refdesk.embedders.local.installed.manifest import CENTRES_FILE, Manifest, check_files, get_folder
from refdesk.errors import MissingDependencyError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from refdesk.model import EmbeddingModel, Vector


class InstalledEmbedder(LocalEmbedder):
    """Embeds in worker threads like the packaged model, but with another model."""

    def __init__(self, home: Path, manifest: Manifest) -> None:
        super().__init__()
        self._folder = get_folder(home, manifest.name)
        self._manifest = manifest
        self._centres: NDArray[float32] | None = None

    @property
    def model(self) -> EmbeddingModel:
        """Named after the model and its digest."""
        return self._manifest.model

    def reads(self, text: str) -> bool:
        """Whether the model was made for the text's script."""
        return self._manifest.languages == "all" or super().reads(text)

    def knows(self, language: str | None) -> bool:
        """Whether its card names the language; without that, always if it reads any script, else for English."""
        if self._manifest.known:
            return language is None or language in self._manifest.known
        return self._manifest.languages == "all" or super().knows(language)

    def _to_passage(self, text: str) -> str:
        return self._manifest.passage_prefix + text

    def _to_query(self, text: str) -> str:
        return self._manifest.query_prefix + text

    def _finish(self, vector: Vector, *, as_query: bool) -> Vector:
        """Remove what all vectors of the model have in common, if that is much."""
        if self._centres is None:
            return vector
        from refdesk.embedders.local.installed.centring import centre

        return centre(vector, self._centres[0 if as_query else 1])

    def _open(self) -> Encoder:
        try:
            from numpy import load

            from refdesk.embedders.local.installed.encoder import OnnxEncoder
        except ImportError as error:
            raise MissingDependencyError(
                f"The embedding model {self._manifest.name} needs the package {error.name}: install refdesk[models]."
            ) from error
        check_files(self._folder, self._manifest)
        if CENTRES_FILE in self._manifest.sha256:
            self._centres = load(self._folder / CENTRES_FILE)
        return OnnxEncoder(self._folder, self._manifest.pooling, self._manifest.most_pieces)
