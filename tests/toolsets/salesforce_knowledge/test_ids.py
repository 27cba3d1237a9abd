from __future__ import annotations

import pytest

from refdesk.errors import InvalidInputError
from refdesk.toolsets.salesforce_knowledge.ids import compute_checksum, parse_id


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("ka0000000000001", "ka0000000000001AAA", "version"),
        ("ka0000000000001AAA", "ka0000000000001AAA", "version"),
        ("kA0000000000001", "kA0000000000001CAA", "article"),
        ("ka15g00000KbCdE", "ka15g00000KbCdEAAV", "version"),
        ("ka15g00000kbcdeaav", "ka15g00000KbCdEAAV", "version"),
        ("KA15G00000KBCDEAAV", "ka15g00000KbCdEAAV", "version"),
        ("ka0000000000001caa", "kA0000000000001CAA", "article"),
        (" ka0000000000001AAA ", "ka0000000000001AAA", "version"),
    ],
)
def test_both_lengths_and_both_kinds_are_read(text: str, value: str, kind: str) -> None:
    id = parse_id(text)
    assert (id.value, id.kind) == (value, kind)


@pytest.mark.parametrize(
    "text",
    [
        *("", "ka0", "ka000000000000", "ka00000000000011", "ka0000000000001AAAA", "001000000000001", "KA0000000000001"),
        *("ka0000000000001aa6", "ka0000000000001'--", "ka0000000000001 AA", "ka000000000000é", "../ka0000000001"),
        *("ka0000000000001\n", "kb0000000000001", "ka0000000000001AA6"),
    ],
)
def test_what_is_no_article_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="article_id"):
        parse_id(text)


def test_a_damaged_id_is_told_from_a_right_one() -> None:
    with pytest.raises(InvalidInputError, match="damaged"):
        parse_id("ka0000000000001CAA")
    with pytest.raises(InvalidInputError, match="damaged"):
        parse_id("ka0000000000001qaa")


def test_the_checksum_counts_capitals_five_by_five() -> None:
    # A widely quoted record of both lengths: 001A0000006Vm9r is 001A0000006Vm9rIAC.
    assert compute_checksum("001A0000006Vm9r") == "IAC"
    assert compute_checksum("A" * 15) == "555"
