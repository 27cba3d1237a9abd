"""The analysed text of a document as bytes: enough to count terms and verify phrases."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from refdesk.core.search import analysis
from refdesk.core.search.analysis import analyse_document

ANALYSIS_VERSION = 2000 + analysis.VERSION
"""Goes up, by a thousand for another layout, when `encode_terms` would give other bytes for some text; stored bytes of
another version are useless."""


def hash_term(term: str) -> int:
    """Return the 64-bit hash of a term, the same in every process."""
    return int.from_bytes(_digest(term), "little")


@lru_cache(maxsize=1 << 16)
def _digest(term: str) -> bytes:
    return hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def encode_terms(title: str, body: str) -> bytes:
    """Return the terms of a document, in order and with repetitions.

    They are little-endian uint64: how many the title has, then `hash_term` of each of the title's and of the body's.
    """
    in_title, in_body = analyse_document(title, body)
    return b"".join([len(in_title).to_bytes(8, "little"), *map(_digest, in_title), *map(_digest, in_body)])
