"""The analysed text of a document as bytes: enough to count terms and verify phrases."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from refdesk.core.search import analysis
from refdesk.core.search.analysis import Pieces, analyse_piece, inflect_all, split
from refdesk.core.search.languages import recognise_document

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

    They are little-endian uint64: how many the title has, then `hash_term` of each of the title's and of the body's,
    as `analyse_document` gives them.
    """
    language = recognise_document(title, body)
    in_title, in_body = _encode(title, language), _encode(body, language)
    return b"".join([(len(in_title) // 8).to_bytes(8, "little"), in_title, in_body])


def _encode(text: str, language: str | None) -> bytes:
    return b"".join([*map(_pieces.__getitem__, split(text)), *map(_digest, inflect_all(text, language))])


_pieces = Pieces(lambda piece: b"".join(map(_digest, analyse_piece(piece))))
