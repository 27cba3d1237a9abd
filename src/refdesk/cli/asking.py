"""Asks whoever runs a command before it does what they may not want."""

from __future__ import annotations

import click

from refdesk.errors import InvalidInputError

NOBODY = "Nobody is there to answer, so nothing was done: say {} to go on without being asked."


def confirm(question: str, *, default: bool = False, option: str = "--yes") -> bool:
    """Return whether the answer is yes; the question goes to stderr.

    Args:
        question: What to ask.
        default: What an empty answer means.
        option: What a script says instead of answering.

    Raises:
        InvalidInputError: There is nobody to answer, as in a script whose stdin is empty.
    """
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            click.echo(err=True)
            raise InvalidInputError(NOBODY.format(option)) from None
        raise
