from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from refdesk.toolsets.salesforce_knowledge.failures import read_codes
from refdesk.toolsets.salesforce_knowledge.transport import Usage, parse_usage, read_retry_after


@pytest.mark.parametrize(
    ("header", "usage"),
    [
        ("api-usage=18/5000", Usage(18, 5000)),
        ("api-usage=25/5000; per-app-api-usage=17/250(appName=sample-connected-app)", Usage(17, 250)),
        ("api-usage=4900/5000; per-app-api-usage=17/250(appName=x)", Usage(4900, 5000)),
        ("api-usage=1/0", None),
        ("nonsense", None),
        ("", None),
        (None, None),
    ],
)
def test_the_allowance_used_most_is_read(header: str | None, usage: Usage | None) -> None:
    assert parse_usage(header) == usage


def test_four_fifths_are_much() -> None:
    assert Usage(4000, 5000).is_high
    assert not Usage(3999, 5000).is_high


@pytest.mark.parametrize("value", [None, "", "soon", "-1", "1e9", "99999999999", "²"])
def test_a_wait_that_is_none_is_none(value: str | None) -> None:
    assert read_retry_after({} if value is None else {"Retry-After": value}) is None


def test_a_wait_is_read_from_seconds_and_from_a_date() -> None:
    assert read_retry_after({"Retry-After": "7"}) == 7
    then = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < (read_retry_after({"Retry-After": then}) or 0) <= 3600
    assert read_retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


CODES: list[tuple[object, tuple[str, ...]]] = [
    ([{"errorCode": "INVALID_TYPE", "message": "x"}, {"errorCode": "INVALID_TYPE"}], ("INVALID_TYPE",)),
    ({"error": "invalid_grant", "error_description": "x"}, ("invalid_grant",)),
    ([{"errorCode": "SELECT Id FROM X"}], ()),
    ([{"errorCode": 5}, "x", None], ()),
    (None, ()),
    ([[]], ()),
]


@pytest.mark.parametrize(("data", "codes"), CODES)
def test_error_codes_are_read_and_nothing_else(data: object, codes: tuple[str, ...]) -> None:
    assert read_codes(data) == codes
