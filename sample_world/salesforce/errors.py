"""The errors of the REST API, and where in a statement they point."""

from __future__ import annotations

from dataclasses import dataclass

_CONTEXT = 40


@dataclass(frozen=True, slots=True)
class ApiError(Exception):
    """A request is refused; on the wire a JSON array with one object."""

    status: int
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class StatementError(Exception):
    """A statement is wrong at `position`, counted from 0 in code points. `code` is the errorCode; SOSL has its own."""

    code: str
    message: str
    position: int


def point_at(statement: str, position: int, message: str, *, first_column: int = 1) -> str:
    """Return the message under the line that it is about, with a caret, as the service writes it.

    The service counts the columns of a query from 1 and those of a search from 0.
    """
    row = statement.count("\n", 0, position) + 1
    column = position - (statement.rfind("\n", 0, position) + 1)
    start = max(position - _CONTEXT, position - column)
    line = statement[start : position + _CONTEXT].split("\n", 1)[0]
    caret = " " * (position - start)
    return f"\n{line}\n{caret}^\nERROR at Row:{row}:Column:{column + first_column}\n{message}"
