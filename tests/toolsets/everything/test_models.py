from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from refdesk.core import contracts
from refdesk.core.search.providers import Period
from refdesk.factories.toolsets import describe_toolsets, list_names
from refdesk.toolsets.everything import TOOLSET_NAME
from refdesk.toolsets.everything.models import SearchInput, name_toolsets


def test_the_names_that_may_be_asked_for_are_those_of_the_toolsets_there_are() -> None:
    [operation] = next(toolset for toolset in describe_toolsets() if toolset.name == TOOLSET_NAME).operations
    properties: Any = contracts.get_input_schema(operation.input)["properties"]
    assert properties["toolsets"]["items"]["enum"] == list(list_names())
    assert operation.input.model_validate({"query": "x", "toolsets": list(list_names())})
    with pytest.raises(ValidationError, match="toolsets"):
        operation.input.model_validate({"query": "x", "toolsets": ["astrology"]})


def test_more_names_than_usual_may_be_asked_for_where_there_are_more() -> None:
    names = tuple(f"toolset-{number}" for number in range(20))
    assert name_toolsets(names).model_validate({"query": "x", "toolsets": list(names)})


def read_period(**filters: str) -> Period:
    return SearchInput.model_validate({"query": "x", "filters": filters}).filters.period


def test_a_day_is_a_whole_day_in_utc_and_an_instant_without_an_offset_is_in_utc() -> None:
    day = read_period(since="2026-03-01", until="2026-03-31")
    assert day == Period(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    assert read_period(since="2026-03-01T10:00:00+02:00").since == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert read_period(until="2026-03-01T10:00").until == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert read_period() == Period()
    assert read_period(since="2026-03-01", until="2026-03-01").is_bounded


def test_a_month_is_a_whole_month() -> None:
    month = read_period(since="2026-02", until="2026-02")
    assert month == Period(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "  "},
        {"query": "x" * 1001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "limit": "10"},
        {"query": "x", "deadlineMs": 99},
        {"query": "x", "deadlineMs": 10_001},
        {"query": "x", "deadlineMs": True},
        {"query": "x", "filters": {"tags": [" "]}},
        {"query": "x", "filters": {"tags": ["a"] * 17}},
        {"query": "x", "filters": {"since": "soon"}},
        {"query": "x", "filters": {"since": "2026-02-30"}},
        {"query": "x", "filters": {"until": "0001-01-01T00:00:00+23:59"}},
        {"query": "x", "filters": {"since": "2026-03-02", "until": "2026-03-01"}},
        {"query": "x", "filters": {"colour": "red"}},
        {"query": "x", "offset": 1},
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchInput.model_validate(arguments)
