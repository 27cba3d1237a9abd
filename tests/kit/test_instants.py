from __future__ import annotations

import pytest

from refdesk.core.background.records import InvalidRecordError
from refdesk.kit.instants import read_instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-02T10:00:00+01:00", "2026-03-02T09:00:00+00:00"),
        ("2026-03-02", "2026-03-02T00:00:00+00:00"),
        ("Mon, 02 Mar 2026 09:00:00 GMT", "2026-03-02T09:00:00+00:00"),
        (" Mon, 02 Mar 2026 09:00:00 -0500 ", "2026-03-02T14:00:00+00:00"),
    ],
)
def test_instants_are_read_as_sources_write_them(text: str, instant: str) -> None:
    assert read_instant(text).isoformat() == instant


@pytest.mark.parametrize("text", ["", "soon", "0001-01-01T00:00:00+23:59", "Mon, 99 Mar 2026 09:00:00 GMT"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError, match="is no instant"):
        read_instant(text)
