from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk import errors
from refdesk.server import strict_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner, max_size=3
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_json_can_write_is_read_as_it_was(value: object) -> None:
    assert strict_json.parse(json.dumps(value).encode()) == value
    assert strict_json.parse(strict_json.dump(value).encode()) == value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b'{"\\udc00": 1}', "half a surrogate pair"),
        (b'{"a": ["\\u0000"]}', "`a[0]` holds a NUL"),
        (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "byte order mark"),
        ('{"a": 1}'.encode("utf-16-le"), "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 33 + b"]" * 33, "deeper than 32"),
        (b"[" * 200_000 + b"]" * 200_000, "deeper than 32"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "deeper than 32"),
        (b"", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1} x', "not JSON"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_reason(body: bytes, words: str) -> None:
    with pytest.raises(errors.InvalidInputError, match=re.escape(words)):
        strict_json.parse(body)


def test_depth_is_allowed_up_to_the_limit() -> None:
    strict_json.parse(b"[" * 32 + b"]" * 32)


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    body = b'"' + b"x" * (strict_json.MAX_BYTES - 2) + b'"'
    assert len(str(strict_json.parse(body))) == len(body) - 2
    with pytest.raises(errors.TooLargeError, match="1048576 bytes"):
        strict_json.parse(body + b" ")


def test_numbers_that_are_not_finite_are_refused_wherever_they_come_from() -> None:
    with pytest.raises(errors.InvalidInputError, match=r"`a\.b` is not a finite number"):
        strict_json.check({"a": {"b": float("nan")}})


def test_a_reason_never_shows_the_text() -> None:
    with pytest.raises(errors.InvalidInputError) as caught:
        strict_json.parse(b'{"password": "hunter2\\u0000"}')
    assert "hunter2" not in caught.value.message
