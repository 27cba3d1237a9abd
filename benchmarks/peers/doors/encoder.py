"""The same sentence encoder for every rival: refdesk's own, run inside the rival's process.

Doors are run by the Python of a rival's environment, with `src` of this repository on its path. While a rival is filled
(`REFDESK_PEERS_VECTORS` names a file) vectors are kept and found again there, so that a text is embedded once for all
of them; while anything is timed every vector is made anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.embedders.local.model import SentenceEncoder

PIECES = 256
"""What all-MiniLM-L6-v2 reads of a text by default."""

DIMENSIONS = 384
KEPT = os.environ.get("REFDESK_PEERS_VECTORS")


@cache
def _get_encoder() -> SentenceEncoder:
    from refdesk.embedders.local.model import SentenceEncoder

    return SentenceEncoder()


@cache
def _get_kept() -> sqlite3.Connection:
    database = sqlite3.connect(KEPT or ":memory:", check_same_thread=False, isolation_level=None, timeout=60)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE IF NOT EXISTS vector (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
    return database


def encode(texts: Sequence[str]) -> np.ndarray:
    """Return one float32 row at unit length for each text."""
    return np.stack([_encode(text) for text in texts]) if texts else np.empty((0, DIMENSIONS), np.float32)


def _encode(text: str) -> np.ndarray:
    if KEPT is None:
        return _get_encoder().encode(text, PIECES)
    key = hashlib.blake2b(text.encode(), digest_size=16).digest()
    found = _get_kept().execute("SELECT vector FROM vector WHERE text = ?", (key,)).fetchone()
    if found is not None:
        return np.frombuffer(found[0], np.float32)
    vector = _get_encoder().encode(text, PIECES)
    _get_kept().execute("INSERT OR IGNORE INTO vector VALUES (?, ?)", (key, vector.astype(np.float32).tobytes()))
    return vector
