"""The named tuples of the forwarder behave as those of `typing`, which it does not import."""

from __future__ import annotations

import pytest

from refdesk.forwarder.typed import NamedTuple


class Point(NamedTuple):
    x: int
    y: int
    name: str = "here"


def test_fields_are_given_by_place_by_name_or_by_default() -> None:
    point = Point(1, y=2)
    assert (point.x, point.y, point.name) == point == Point(1, 2, "here") != Point(1, 2, "there")
    assert hash(point) == hash(Point(1, 2))


def test_what_is_no_field_or_is_missing_is_refused() -> None:
    for values, named in (((1,), {}), ((1, 2, "a", 4), {}), ((1, 2), {"z": 3})):
        with pytest.raises(TypeError):
            Point(*values, **named)  # pyright: ignore


def test_a_value_cannot_be_changed() -> None:
    point = Point(1, 2)
    with pytest.raises(AttributeError):
        point.x = 3  # pyright: ignore
