"""Titles and bodies as they are stored: compressed here, because the server does not shorten texts of this length.

The server only looks for repetitions, and gives up if that saves less than a quarter. Deflate also gives frequent
letters fewer bits, and halves a note of a hundred words. What searches compare of a text is in `entries`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.keeping.rows import Columns

_PLAIN, _DEFLATED = b"\0", b"\1"
"""The first byte says how the rest is packed."""

_BETWEEN = "\0"
"""Separates the title from the body; no text that can be stored holds it."""

_NO_HEADER = -zlib.MAX_WBITS


def pack(title: str, body: str) -> bytes:
    """Return both texts, which must be storable, packed into one."""
    plain = f"{title}{_BETWEEN}{body}".encode()
    deflate = zlib.compressobj(wbits=_NO_HEADER)
    deflated = deflate.compress(plain) + deflate.flush()
    return _DEFLATED + deflated if len(deflated) < len(plain) else _PLAIN + plain


def unpack(columns: Columns) -> list[Any]:
    """Return columns as `decode_document` and `decode_revision` read them.

    Args:
        columns: The same without title and body, followed by both texts packed into bytes, or these in hexadecimal.
    """
    *first, facets, spans, data, texts = columns
    title, body = _unpack(bytes.fromhex(texts) if isinstance(texts, str) else texts)
    return [*first, title, facets, spans, body, data]


def unpack_versions(rows: Sequence[Columns]) -> list[list[Any]]:
    """Return the same for the versions of one document.

    Args:
        rows: In order; texts that are `None` are those of the next version; the present version always has its own.
    """
    unpacked, texts = list[list[Any]](), None
    for *columns, own in reversed(rows):
        texts = texts if own is None else own
        unpacked.append(unpack([*columns, texts]))
    return unpacked[::-1]


def _unpack(packed: bytes) -> tuple[str, str]:
    plain = zlib.decompress(packed[1:], _NO_HEADER) if packed[:1] == _DEFLATED else packed[1:]
    title, _, body = plain.decode().partition(_BETWEEN)
    return title, body
