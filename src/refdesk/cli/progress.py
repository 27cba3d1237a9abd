"""Progress bars on a terminal; silent when the output is piped."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Show(Protocol):
    """Updates a progress bar."""

    def __call__(self, done: int, total: int | None, label: str | None = None) -> None:
        """Show how much is done, out of how much if that is known; a label replaces the bar's label from now on."""
        ...


@contextmanager
def show_progress(label: str) -> Generator[Show | None]:
    """Yield a function that updates a bar on stderr, or `None` off a terminal; the bar goes when the block ends."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)

        def show(done: int, total: int | None, label: str | None = None) -> None:
            nonlocal task
            if label is not None:
                progress.remove_task(task)
                task = progress.add_task(label, total=None)
            progress.update(task, completed=done, total=total)

        yield show
