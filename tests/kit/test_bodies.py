from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from refdesk.kit.bodies import BodyTooLargeError, BrokenBodyError, read_body

TEXT = b"All that is announced. " * 1000


class Chunks(httpx2.AsyncByteStream):
    """A body as it comes off the wire, in pieces."""

    def __init__(self, body: bytes, size: int) -> None:
        self._pieces = [body[start : start + size] for start in range(0, len(body), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def make_response(body: bytes, encoding: str | None, size: int = 1000) -> httpx2.Response:
    headers = {} if encoding is None else {"Content-Encoding": encoding}
    return httpx2.Response(200, headers=headers, stream=Chunks(body, size))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        (None, TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        (" GZIP ", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:7000]) + gzip.compress(b"") + gzip.compress(TEXT[7000:]) + bytes(2500)),
        ("deflate", zlib.compress(TEXT)),
    ],
)
async def test_a_body_is_unpacked_as_its_header_says(encoding: str | None, body: bytes) -> None:
    assert await read_body(make_response(body, encoding), len(TEXT)) == TEXT


@pytest.mark.parametrize(("encoding", "body"), [(None, TEXT), ("gzip", gzip.compress(TEXT))])
async def test_a_body_beyond_the_bound_is_not_read(encoding: str | None, body: bytes) -> None:
    with pytest.raises(BodyTooLargeError):
        await read_body(make_response(body, encoding), len(TEXT) - 1)


async def test_a_bomb_takes_no_more_memory_than_the_bound() -> None:
    bomb = gzip.compress(bytes(64 * 2**20))
    tracemalloc.start()
    with pytest.raises(BodyTooLargeError):
        await read_body(make_response(bomb, "gzip", len(bomb)), 2**20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(TEXT)[:-9]), ("gzip", TEXT), ("deflate", gzip.compress(TEXT)), ("br", TEXT)],
)
async def test_a_body_that_is_not_packed_as_it_says_is_broken(encoding: str, body: bytes) -> None:
    with pytest.raises(BrokenBodyError):
        await read_body(make_response(body, encoding), len(TEXT))
