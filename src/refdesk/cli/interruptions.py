"""Ends a command at SIGTERM and SIGHUP as at Ctrl-C: what is open is closed, and a sentence says what was left."""

from __future__ import annotations

import logging
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, cast

import click

if TYPE_CHECKING:
    from types import FrameType

CODE = "ABORTED"
_TEXT = (
    "Interrupted by {}: what it was doing may be done in part. Look before you give the command again; learning, "
    "importing, migrating and syncing go on where they stopped."
)
_OTHERS = tuple(signal.Signals(number) for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)))


@dataclass(slots=True)
class _Caught:
    """The signal that arrived last, whether others are heard like it, and whether it has ended the command."""

    number: signal.Signals = signal.SIGINT
    is_listening: bool = False
    has_ended: bool = False


_caught = _Caught()


class InterruptedCommand(click.ClickException):
    """A command that a signal ended, as it is reported to the caller."""

    code = CODE
    exit_code = 130

    def __init__(self) -> None:
        super().__init__(_TEXT.format(_caught.number.name))
        if _caught.is_listening:
            _caught.has_ended = True
            for number in (signal.SIGINT, *_OTHERS):  # an impatient second one would break into the report
                signal.signal(number, signal.SIG_IGN)

    def show(self, file: object = None) -> None:
        """Write the sentence to stderr, on a line of its own."""
        click.echo(f"{os.linesep if sys.stderr.isatty() else ''}{self.format_message()}", err=True)


def is_interruption(error: BaseException) -> bool:
    """Return whether an exception is that of Ctrl-C, also within a group of what concurrent tasks raised."""
    return isinstance(error, KeyboardInterrupt) or any(is_interruption(each) for each in list_inner(error))


def list_inner(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions in a group; none for any other."""
    return cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()


def listen() -> None:
    """Have SIGTERM and SIGHUP end the command as SIGINT does, unless they are ignored, as under `nohup`."""
    _caught.is_listening = True
    for number in _OTHERS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def end() -> None:
    """End the process by the signal that ended its command, so that shells and supervisors see it; return if none did.

    Threads still at work on what nobody waits for end with it.
    """
    if _caught.has_ended:
        _end_by(_caught.number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _caught.number = signal.Signals(number)
    as_at_ctrl_c = signal.getsignal(signal.SIGINT)  # an event loop has set its own, which ends its tasks first
    if not callable(as_at_ctrl_c):
        raise KeyboardInterrupt
    as_at_ctrl_c(signal.SIGINT, frame)


def _end_by(number: signal.Signals) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform != "win32":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(128 + number)
