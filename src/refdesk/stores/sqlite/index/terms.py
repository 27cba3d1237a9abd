"""The analysed text of a document as bytes: enough to count terms and verify phrases."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from refdesk.core.search import analysis
from refdesk.core.search.analysis import Pieces, analyse_piece, inflect_document, split

ANALYSIS_VERSION = 2000 + analysis.VERSION
"""Goes up whenever `encode_terms` would give other bytes for some text, by a thousand if the layout changes; stored
bytes of another version are useless."""


def hash_term(term: str) -> int:
    """Return the 64-bit hash of a term, the same in every process."""
    return int.from_bytes(_digest(term), "little")


@lru_cache(maxsize=1 << 16)
def _digest(term: str) -> bytes:
    return hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def encode_terms(title: str, body: str) -> bytes:
    """Return the terms of a document, in order and with repetitions.

    They are little-endian uint64: the number of terms in the title, then `hash_term` of each term of the title and of
    the body, as `analyse_document` gives them.
    """
    pieces = split(body)
    of_title, of_body = inflect_document(title, body, pieces)
    in_title, in_body = _encode(split(title), of_title), _encode(pieces, of_body)
    return b"".join([(len(in_title) // 8).to_bytes(8, "little"), in_title, in_body])


def _encode(pieces: list[str], inflected: list[str]) -> bytes:
    return b"".join([*map(_pieces.__getitem__, pieces), *map(_digest, inflected)])


_pieces = Pieces(lambda piece: b"".join(map(_digest, analyse_piece(piece))))
