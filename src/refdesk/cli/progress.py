"""Progress bars on a terminal; silent when the output is piped."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Show(Protocol):
    """Moves a bar."""

    def __call__(self, done: int, total: int | None, label: str | None = None) -> None:
        """Show how much is done, and of how much where that is known; with a label, of something else from now on."""
        ...


@contextmanager
def show_progress(label: str) -> Generator[Show | None]:
    """Yield what moves a bar on stderr, or `None` where nobody sees one; the bar goes when the block ends."""
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
