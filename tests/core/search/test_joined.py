from __future__ import annotations

import pytest

from refdesk.core.search.joined import list_parts


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("CrashLoopBackOff", "Crash Loop Back Off"),
        ("HTTPSConnectionPool", "HTTPS Connection Pool"),
        ("OAuthTokenStore", "Auth Token Store"),
        ("calculateTotals", "calculate Totals"),
        ("PAY1234", "PAY 1234"),
        ("25MB", "25 MB"),
        ("0x80070005", "80070005"),
    ],
)
def test_an_identifier_a_code_and_a_quantity_have_parts(word: str, parts: str) -> None:
    assert list_parts(word) == tuple(parts.split())


@pytest.mark.parametrize(
    "word", ["GitHub", "iPhone", "PDFs", "k8s", "S3", "IPv6", "word", "WORD", "1234", "", "a1b2c3", "é"]
)
def test_a_name_a_plain_word_and_a_hash_have_none(word: str) -> None:
    assert list_parts(word) == ()
