"""A null where none may stand is named as one, and a time that cannot be read is answered with one that can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from refdesk.core import contracts
from refdesk.core.operations import Operation
from refdesk.errors import InvalidInputError
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import calls

OPERATIONS = [operation for toolset in describe_toolsets() for operation in toolset.operations]


def list_cases() -> Iterator[Any]:
    for operation in OPERATIONS:
        schema: Any = contracts.get_input_schema(operation.input)
        for name in schema.get("properties", {}):
            yield pytest.param(operation, name, id=f"{operation.name}-{name}")


@pytest.mark.parametrize(("operation", "name"), list(list_cases()))
def test_a_null_is_named_or_means_that_nothing_was_given(operation: Operation, name: str) -> None:
    arguments = {**(operation.examples[0] if operation.examples else {}), name: None}
    try:
        calls.validate(operation, arguments)
    except InvalidInputError as error:
        told = (f"`{name}` must not be null: give a value", f"`{name}` is required.")
        assert f"`{name}`" not in error.message or error.message.startswith(told)  # noqa: PT017


@pytest.mark.parametrize(
    "instant", ["2090-01-01T24:00:00Z", "2090-12-31T23:59:60Z", "2090-02-30", "2090-01-01T00:00:00+25:00"]
)
def test_a_time_that_cannot_be_read_is_answered_with_one_that_can(instant: str) -> None:
    [store] = [operation for operation in OPERATIONS if operation.name == "store_knowledge"]
    with pytest.raises(InvalidInputError, match="`expiresAt` is no instant: write 2026-03-31T12:00:00Z"):
        calls.validate(store, {"title": "t", "body": "b", "expiresAt": instant})
