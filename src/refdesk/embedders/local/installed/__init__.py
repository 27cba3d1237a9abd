"""Embedding models that were installed beside the packaged one: any sentence encoder in ONNX with its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from refdesk.embedders.local import Encoder, LocalEmbedder
from refdesk.embedders.local.installed.manifest import Manifest, check_files, get_folder
from refdesk.errors import MissingDependencyError

if TYPE_CHECKING:
    from refdesk.model import EmbeddingModel


class InstalledEmbedder(LocalEmbedder):
    """Embeds as the packaged model does, in worker threads, by another model."""

    def __init__(self, home: Path, manifest: Manifest) -> None:
        super().__init__()
        self._folder = get_folder(home, manifest.name)
        self._manifest = manifest

    @property
    def model(self) -> EmbeddingModel:
        """Named after the model and its digest."""
        return self._manifest.model

    def reads(self, text: str) -> bool:
        """Whether the model was made for the text's script."""
        return self._manifest.languages == "all" or super().reads(text)

    def knows(self, language: str | None) -> bool:
        """Those of its card; without one, any where its script is any, else English."""
        if self._manifest.known:
            return language is None or language in self._manifest.known
        return self._manifest.languages == "all" or super().knows(language)

    def _to_passage(self, text: str) -> str:
        return self._manifest.passage_prefix + text

    def _to_query(self, text: str) -> str:
        return self._manifest.query_prefix + text

    def _open(self) -> Encoder:
        try:
            from refdesk.embedders.local.installed.encoder import OnnxEncoder
        except ImportError as error:
            raise MissingDependencyError(
                f"The embedding model {self._manifest.name} needs the package {error.name}: install refdesk[models]."
            ) from error
        check_files(self._folder, self._manifest)
        return OnnxEncoder(self._folder, self._manifest.pooling, self._manifest.most_pieces)
