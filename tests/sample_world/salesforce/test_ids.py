"""Ids and their checksums, against ids that the documentation shows."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_world.salesforce.ids import add_checksum, is_id, make_id, to_long

DOCUMENTED = ["001D000000IqhSLIAZ", "001D000000IomazIAB", "kA03t00000063w2CAA", "00337000003VbP1AAK"]
ALPHABET = string.digits + string.ascii_letters


@pytest.mark.parametrize("id", DOCUMENTED)
def test_the_checksum_of_a_documented_id_is_the_documented_one(id: str) -> None:
    assert add_checksum(id[:15]) == id
    assert to_long(id[:15]) == to_long(id) == id


@given(st.text(ALPHABET, min_size=15, max_size=15))
def test_ids_that_differ_only_in_case_differ_in_their_checksum(id: str) -> None:
    swapped = id.swapcase()
    assert (add_checksum(id)[15:] == add_checksum(swapped)[15:]) == (id == swapped)


@given(st.text(ALPHABET, min_size=15, max_size=15), st.integers(15, 17))
def test_a_wrong_checksum_makes_no_id(id: str, place: int) -> None:
    long = add_checksum(id)
    wrong = long[:place] + ("6" if long[place] != "6" else "7") + long[place + 1 :]
    assert is_id(long)
    assert not is_id(wrong)


@pytest.mark.parametrize("text", ["", "ka0", "ka05g0000004CP", "ka05g0000004CPBAA", "ka05g0000004CPé", " " * 15])
def test_what_has_not_15_or_18_letters_and_digits_is_no_id(text: str) -> None:
    assert to_long(text) is None


def test_numbers_make_different_ids_of_18_characters() -> None:
    ids = {make_id("ka0", number) for number in range(5000)}
    assert len(ids) == 5000
    assert {len(id) for id in ids} == {18}
    assert len({id.casefold() for id in ids}) == 5000
