"""What announcements change for a text that is not stored here: determined when the text is shown, and stored
nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio.to_thread

from refdesk.impact.change_reading import ChangeReader
from refdesk.impact.kinds import SEVERITY, THRESHOLD
from refdesk.impact.matching import read_passages
from refdesk.kit.cautions import tell_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.context import Context
    from refdesk.impact.known_changes import KnownChanges

MOST_READ = 20_000
"""How many characters of a text are read."""


@dataclass(slots=True)
class LiveCautions:
    """Matches texts against announced changes; one instance serves all calls."""

    _reader: ChangeReader | None = field(default=None)

    async def get(self, context: Context, texts: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return for each text, given as title and body, what to heed before relying on it, in a sentence.

        `None` means that there is nothing to heed.
        """
        stores = [base.store for base in context.bases.open.values()]
        if self._reader is None or [*map(id, self._reader.stores)] != [*map(id, stores)]:
            self._reader = ChangeReader(stores)
        known = await self._reader.get()
        if not known.by_id or not texts:
            return [None] * len(texts)
        return await anyio.to_thread.run_sync(lambda: [_find(known, title, text[:MOST_READ]) for title, text in texts])


def _find(known: KnownChanges, title: str, text: str) -> str | None:
    found = known.find(list(read_passages(title, text)))
    sure = [change for change, match in found if match.confidence >= THRESHOLD]
    if not sure:
        return None
    worst = min(sure, key=lambda change: SEVERITY.index(change.kind))
    return f"{tell_change(len(sure), worst.kind, worst.due)}: announcement {worst.id}."
