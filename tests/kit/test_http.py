"""What a service says of itself beside its answers: no header breaks who reads it."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refdesk import errors
from refdesk.kit.http import HttpReader

PARTS = st.sampled_from(
    ["http:", "//", "h", ":", "ab", "/", "[", "]", "::1", "@", "%", "xn--", "-", ".", "\\", "é", "²"]
)
LOCATIONS = st.one_of(st.text(max_size=40), st.lists(PARTS, max_size=8).map("".join))


async def read_redirect(location: str) -> str:
    """Return what is told of a redirect to there."""

    def redirect(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(302, headers=[(b"Location", location.encode("utf-8", "surrogatepass"))])

    reader = HttpReader(url="https://feed.example/updates", variable="REFDESK_AZURE_UPDATES_URL")
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(redirect)) as client:
        with pytest.raises(errors.SourceError) as caught:
            await reader.get(client, bytes)
    return caught.value.message


@given(LOCATIONS)
@example("http://h:ab/")
@example("http://99999xn--ab\\http:/")
@example("//hxn-- ")
def test_a_redirect_to_anything_is_refused_as_one(location: str) -> None:
    assert "redirects to" in anyio.run(read_redirect, location)


@pytest.mark.parametrize(
    ("location", "host"),
    [("https://other.example/x", "other.example"), ("/x", "feed.example"), ("http://h:ab/", "elsewhere")],
)
async def test_a_redirect_names_the_host_where_there_is_one(location: str, host: str) -> None:
    assert f"redirects to {host}," in await read_redirect(location)
