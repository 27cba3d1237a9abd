"""Every error refdesk raises on purpose, classified by who can fix it.

::

    RefdeskError                    code, message, details
    ├── CallerError                 the caller can fix it
    │   ├── InvalidInputError       an argument is wrong
    │   ├── UnauthenticatedError    no valid credential
    │   ├── PermissionDeniedError   the credential does not reach this far
    │   ├── NotFoundError           no such thing, as far as this caller may know
    │   ├── ConflictError           it changed since it was read, or is already otherwise
    │   ├── TooLargeError           the request is larger than is read
    │   ├── LimitExceededError      too many requests; may be tried again later
    │   └── QuotaExceededError      no more may be kept
    ├── WorldError                  something outside failed; may pass
    │   ├── StoreError
    │   ├── EmbedderError
    │   ├── SourceError
    │   └── LanguageModelError
    └── OperatorError               the operator must fix it
        ├── ConfigurationError      a setting is wrong
        └── MissingDependencyError  an extra is not installed

A message is read by a person or a model: one or two sentences that say what to do next. It never holds a secret, SQL,
a path of the server's machine or a stack trace. Anything else that escapes is a bug and reaches the caller only as
"internal error".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of values with which a call could go on; a person may be asked for one, if the client supports that.

    Attributes:
        path: Where in the arguments the value goes, by field; in a list it takes the place of `instead_of`.
        question: What to ask, in a sentence or two.
        options: At least one: each value, with a description for people.
        instead_of: The value that was given, which was not accepted.
    """

    path: tuple[str, ...]
    question: str
    options: Sequence[tuple[str, str]]
    instead_of: str

    def amend(self, arguments: Mapping[str, Any], chosen: str) -> dict[str, Any]:
        """Return the arguments with the chosen value."""
        return cast("dict[str, Any]", _put(arguments, self.path, self.instead_of, chosen))


def _put(value: object, path: Sequence[str], old: str, new: str) -> object:
    if path:
        fields = cast("Mapping[str, object]", value)
        return {**fields, path[0]: _put(fields.get(path[0]), path[1:], old, new)}
    if isinstance(value, list):
        return [new if each == old else each for each in cast("list[object]", value)]
    return new


class RefdeskError(Exception):
    """The root: a stable `code` for machines, a `message` for readers, optional `details`.

    With a `choice`, the call can go on after the user picks one of its options.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(
        self, message: str, *, details: Mapping[str, object] | None = None, choice: Choice | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details else None
        self.choice = choice


class CallerError(RefdeskError):
    """The caller can fix it by asking otherwise."""


class InvalidInputError(CallerError):
    """An argument is missing, of the wrong type, out of range or contradicts another."""

    code = "INVALID_INPUT"


class UnauthenticatedError(CallerError):
    """The request carries no credential, or one that is unknown, expired or revoked."""

    code = "UNAUTHENTICATED"


class PermissionDeniedError(CallerError):
    """The caller is known but lacks a scope or does not own what it would change."""

    code = "PERMISSION_DENIED"


class NotFoundError(CallerError):
    """No such thing in the caller's org; what belongs to another org looks the same.

    `unknown` is the id that was not found, if the nearest known one may be what was meant.
    """

    code = "NOT_FOUND"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        choice: Choice | None = None,
        unknown: str | None = None,
    ) -> None:
        super().__init__(message, details=details, choice=choice)
        self.unknown = unknown


class ConflictError(CallerError):
    """The thing changed since it was read, or is already bound otherwise."""

    code = "CONFLICT"


class TooLargeError(CallerError):
    """The request is larger than the server reads."""

    code = "TOO_LARGE"


class LimitExceededError(CallerError):
    """A rate is used up; `retry_after_seconds` says when to try again, where that is known."""

    code = "LIMIT_EXCEEDED"

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        self.retry_after_seconds = retry_after_seconds


class QuotaExceededError(CallerError):
    """No more may be kept; trying again does not help. `details` has `used` and `limit`."""

    code = "QUOTA_EXCEEDED"


class WorldError(RefdeskError):
    """Something outside refdesk failed; the same call may succeed later."""

    code = "UNAVAILABLE"


class StoreError(WorldError):
    """The storage engine failed or refused."""

    code = "STORE_UNAVAILABLE"


class EmbedderError(WorldError):
    """The embedding model or its service failed."""

    code = "EMBEDDER_UNAVAILABLE"


class SourceError(WorldError):
    """The service a toolset reads from failed or answered nonsense."""

    code = "SOURCE_UNAVAILABLE"


class LanguageModelError(WorldError):
    """The language model's service failed, refused or answered nonsense."""

    code = "LANGUAGE_MODEL_UNAVAILABLE"


class OperatorError(RefdeskError):
    """Whoever runs the server must fix it; raised while starting or by a command."""

    code = "OPERATOR_ERROR"


class ConfigurationError(OperatorError):
    """A setting is missing, malformed or contradicts another; the message names it."""

    code = "CONFIGURATION_ERROR"


class MissingDependencyError(OperatorError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    code = "MISSING_DEPENDENCY"
