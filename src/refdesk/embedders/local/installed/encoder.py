"""Any sentence encoder in ONNX with its tokenizer, run by ONNX Runtime on one thread per text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from refdesk.embedders.local.installed.manifest import MODEL_FILE, TOKENIZER_FILE
from refdesk.errors import EmbedderError

if TYPE_CHECKING:
    from refdesk.embedders.local.installed.manifest import Pooling
    from refdesk.model import Vector

# It is also off by the environment (see `refdesk/__init__.py`), which the build for Windows ignores.
onnxruntime.disable_telemetry_events()


class _Model:
    """A model with its tokenizer; raises `EmbedderError` if the files cannot be run."""

    def __init__(self, folder: Path, most_pieces: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
            path = str(folder / MODEL_FILE)
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise EmbedderError(f"The model cannot be run, so choose another with refdesk models: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(most_pieces)  # pyright: ignore[reportUnknownMemberType]
        self._inputs = {each.name for each in self._session.get_inputs()}

    def run(self, text: str, second: str | None = None) -> NDArray[np.float32]:
        """Return the first output for a text, or for two that are read together.

        Raises:
            EmbedderError: The model cannot take it, such as a piece that only its tokenizer knows.
        """
        try:
            return self._run(text, second)
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise EmbedderError(
                f"The model cannot be run on a text, so choose another with refdesk models: {error}"
            ) from error

    def _run(self, text: str, second: str | None) -> NDArray[np.float32]:
        read = self._tokenizer.encode(text, second)
        numbers = {
            "input_ids": np.array([read.ids], dtype=np.int64),
            "attention_mask": np.array([read.attention_mask], dtype=np.int64),
            "token_type_ids": np.array([read.type_ids], dtype=np.int64),
        }
        outputs = self._session.run(None, {name: numbers[name] for name in self._inputs & numbers.keys()})
        return np.asarray(outputs[0], dtype=np.float32)[0]


class OnnxPairReader:
    """A cross-encoder and its tokenizer in memory; safe to share between threads.

    Raises:
        EmbedderError: The files cannot be run.
    """

    def __init__(self, folder: Path, most_pieces: int) -> None:
        self._model = _Model(folder, most_pieces)

    def judge(self, question: str, text: str) -> float:
        """Return how well a text answers a question: the logit, or with two classes the second's minus the first's."""
        logits = self._model.run(question, text)
        if logits.ndim != 1 or len(logits) > 2 or not np.isfinite(logits).all():
            raise EmbedderError(
                "The model gives no value for a question and a text: choose another with refdesk models."
            )
        return float(logits[-1] - logits[0]) if len(logits) == 2 else float(logits[0])


class OnnxEncoder:
    """A model and its tokenizer in memory; safe to share between threads.

    Args:
        folder: The folder of the model's files.
        pooling: How the vectors of a text's pieces become one.
        most_pieces: Most pieces that are read.

    Raises:
        EmbedderError: The files cannot be run.
    """

    def __init__(self, folder: Path, pooling: Pooling, most_pieces: int) -> None:
        self._pooling = pooling
        self._model = _Model(folder, most_pieces)

    def encode(self, text: str, limit: int) -> Vector:
        """Return the vector of a text at unit length, read up to the model's own limit instead of `limit`."""
        del limit
        vector = self._pool(self._model.run(text))
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0.0:
            raise EmbedderError("The embedding model gave a text no direction: choose another with refdesk models.")
        vector = (vector / length).astype(np.float32)
        vector.flags.writeable = False
        return vector

    def _pool(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one vector made from those of the pieces; a model that pools by itself has already made one."""
        if states.ndim == 1:
            return states
        match self._pooling:
            case "cls":
                return states[0]
            case "last":
                return states[-1]
            case _:
                return states.mean(axis=0)
