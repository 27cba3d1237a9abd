"""Progress on a terminal; nothing is shown elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

Show: TypeAlias = Callable[[int, int | None], None]
"""Called with how much is done, and of how much where that is known."""


@contextmanager
def show_progress(label: str) -> Generator[Show | None]:
    """Yield what moves a bar on stderr, or `None` where nobody sees one; the bar goes when the block ends."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield show
