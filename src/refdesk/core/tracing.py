"""Traces: which parts a call is made of, reported to a tracer; without one, next to nothing is done.

Names and attributes of spans come from the code: operations, transports, toolsets, outcomes. They never contain what a
caller wrote, an id, a key or the message of an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from refdesk import errors

P = ParamSpec("P")
T = TypeVar("T")

Kind: TypeAlias = Literal["internal", "server", "client"]

OK = "ok"
CANCELLED = "CANCELLED"
BROKEN = "BROKEN"
"""The outcome of what ended by an exception that nobody expected: a bug."""

FAILED = "FAILED"
"""The outcome of a request that another service did not answer, or refused."""


@dataclass(slots=True)
class Ending:
    """How a span ends.

    Attributes:
        outcome: `ok`, or the code of an error.
        is_failure: Whether that is the fault of refdesk or of a service it asks, not of the caller.
        error_type: The class of an exception that has no code; empty where the outcome says it all.
    """

    outcome: str = OK
    is_failure: bool = False
    error_type: str = ""

    def note(self, error: BaseException, uncoded: str = BROKEN) -> None:
        """Note the error with which it ends; `uncoded` is the outcome if that has no code."""
        if isinstance(error, errors.RefdeskError):
            self.outcome, self.is_failure = error.code, not isinstance(error, errors.CallerError)
        elif isinstance(error, Exception):
            self.outcome, self.is_failure, self.error_type = uncoded, True, type(error).__name__
        else:
            self.outcome = CANCELLED


class Span(Protocol):
    """Something that is being done."""

    def begin(self, name: str, kind: Kind, attributes: Mapping[str, str]) -> Span:
        """Begin a part of it."""
        ...

    def end(self, ending: Ending) -> None:
        """Note that it has ended now."""
        ...

    def get_headers(self) -> dict[str, str]:
        """Return the headers of W3C Trace Context for a request that is a part of it."""
        ...


class Tracer(Protocol):
    """Begins traces. It neither waits nor raises."""

    def begin(self, name: str, kind: Kind, attributes: Mapping[str, str], traceparent: str | None = None) -> Span:
        """Begin a root span here; it is part of the caller's trace where a valid `traceparent` names one."""
        ...


_current: ContextVar[Span | None] = ContextVar("refdesk_span", default=None)


@contextmanager
def trace(
    tracer: Tracer | None, name: str, kind: Kind = "internal", traceparent: str | None = None, **attributes: str
) -> Generator[Ending]:
    """Record the block as the root span of a trace, unless there is no tracer; the block may set its ending."""
    ending = Ending()
    if tracer is None:
        yield ending
        return
    with _recording(tracer.begin(name, kind, attributes, traceparent), ending):
        yield ending


@contextmanager
def span(name: str, kind: Kind = "internal", **attributes: str) -> Generator[None]:
    """Record the block as a part of what is being traced, if anything is."""
    parent = _current.get()
    if parent is None:
        yield
        return
    with _recording(parent.begin(name, kind, attributes), Ending()):
        yield


def spanned(name: str, **attributes: str) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Record each call of a coroutine function as a part of what is being traced, if anything is."""

    def decorate(work: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(work)
        async def recorded(*arguments: P.args, **options: P.kwargs) -> T:
            with span(name, "internal", **attributes):
                return await work(*arguments, **options)

        return recorded

    return decorate


@contextmanager
def calling(service: str) -> Generator[dict[str, str]]:
    """Record the block as a request to another service; yield the headers that make it part of the trace."""
    parent = _current.get()
    if parent is None:
        yield {}
        return
    with _recording(parent.begin(f"call {service}", "client", {"service": service}), Ending(), FAILED):
        yield get_headers()


def get_headers() -> dict[str, str]:
    """Return the headers that make a request part of what is being traced; none where nothing is."""
    current = _current.get()
    return current.get_headers() if current is not None else {}


def is_traced() -> bool:
    """Return whether what is being done is part of a trace."""
    return _current.get() is not None


@contextmanager
def _recording(begun: Span, ending: Ending, uncoded: str = BROKEN) -> Generator[None]:
    token = _current.set(begun)
    try:
        yield
    except BaseException as error:
        if ending.outcome == OK:
            ending.note(error, uncoded)
        raise
    finally:
        _current.reset(token)
        begun.end(ending)
