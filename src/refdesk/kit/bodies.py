"""Reads an HTTP body with a size limit that also holds during decompression."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class BodyTooLargeError(Exception):
    """The body is larger than the limit."""


class BrokenBodyError(Exception):
    """The body is truncated, or not compressed as its header says."""


async def read_body(response: httpx2.Response, max_bytes: int) -> bytes:
    """Return the body, decompressed. Memory stays near `max_bytes`, however large the decompressed body would be.

    Raises:
        BodyTooLargeError: It is larger than `max_bytes`, compressed or decompressed.
        BrokenBodyError: It cannot be decompressed.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return await _read_plain(response, max_bytes)
    if encoding not in _WINDOW_BITS:
        raise BrokenBodyError("the answer is packed in a way that was not asked for")
    return await _read_packed(response, max_bytes, _WINDOW_BITS[encoding])


async def _read_plain(response: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise BodyTooLargeError
    return bytes(body)


async def _read_packed(response: httpx2.Response, max_bytes: int, window_bits: int) -> bytes:
    unpacker = zlib.decompressobj(window_bits)
    body = bytearray()
    async for chunk in response.aiter_raw():
        packed = chunk
        while packed:
            if unpacker.eof:
                # RFC 1952, section 2.2: members of gzip may follow each other; zeros behind them are padding.
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                unpacker = zlib.decompressobj(window_bits)
            try:
                body += unpacker.decompress(packed, max_bytes - len(body) + 1)
            except zlib.error:
                raise BrokenBodyError("the answer is not packed as it says") from None
            if len(body) > max_bytes:
                raise BodyTooLargeError
            packed = unpacker.unused_data
    if not unpacker.eof:
        raise BrokenBodyError("the packed answer is cut off")
    return bytes(body)
