"""The client of the release communications API, the upstream of the feed: this toolset's only module with I/O.

It trusts nothing it receives: page offsets are computed, never followed, and a page that does not overlap the one
before is detected, so no record is silently skipped. A count that two readings do not confirm is passed on as the
feed's own claim. The kit takes all other precautions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.kit.http import HttpReader
from refdesk.sources import SourcePage
from refdesk.toolsets.azure_updates.pages import Page, read_page

if TYPE_CHECKING:
    import httpx2

    from refdesk.model import JsonObject, JsonValue

logger = logging.getLogger(__name__)

VARIABLE = "REFDESK_AZURE_UPDATES_URL"
MAX_READINGS = 2


class _PagesShiftedError(Exception):
    """The feed changed while it was read, so that records may have been passed over."""


class _TooFewError(_PagesShiftedError):
    """The pages joined up to the end but held fewer records than the feed says it has."""


def make_reader(url: str, variable: str = VARIABLE) -> HttpReader:
    """Return the reader of the set of updates at a URL, which comes from the given variable.

    Raises:
        ConfigurationError: The URL cannot be read from.
    """
    return HttpReader(url=url, variable=variable)


@dataclass(frozen=True, slots=True)
class AzureUpdatesSource:
    """See `Source`. Each record may come more than once; a record that is no JSON object comes as `{"value": it}`.

    Attributes:
        reader: The reader of the set of updates.
        page_size: Records requested at a time, 2 or more; the server may return fewer.
        total_seconds: How long one reading may take.
        max_pages: How many pages one reading may have.
        adapt: Gives each record the id that it has here; `None` leaves it as received.
    """

    reader: HttpReader
    page_size: int = 500
    total_seconds: float = 1800.0
    max_pages: int = 5000
    adapt: Callable[[JsonObject], JsonObject] | None = None

    @property
    def is_complete(self) -> bool:
        """The feed holds every update there is."""
        return True

    def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        """Yield the records modified at or after `since` (ISO 8601), or all, by id. See `Source.read`.

        If the feed changes meanwhile so that pages no longer join, or gives fewer records than it says, it is read once
        more from the start. If it gives too few again, its count is taken to be wrong.
        """
        return self.read_with({}, since)

    async def read_with(self, known: Mapping[str, JsonValue], since: str | None) -> AsyncIterator[SourcePage]:
        """Yield the same as `read`, without parsing the records of pages that are identical to earlier ones."""
        async with self.reader.open() as client:
            for reading in range(1, MAX_READINGS + 1):
                try:
                    async for page in self._read_once(client, known, since):
                        yield page
                except _PagesShiftedError as error:
                    logger.info("pages did not add up", extra={"reason": str(error), "reading": reading})
                    if reading == MAX_READINGS:
                        if isinstance(error, _TooFewError):
                            return
                        raise errors.SourceError(
                            f"The feed changed while it was read: {error}. What was read is kept; sync again."
                        ) from None
                else:
                    return

    async def _read_once(
        self, client: httpx2.AsyncClient, known: Mapping[str, JsonValue], since: str | None
    ) -> AsyncGenerator[SourcePage]:
        """Yield pages up to the end. Each page but the first begins with the last record of the one before."""
        deadline = time.monotonic() + self.total_seconds
        position, repeats, largest = 0, 0, 0
        seen: set[str] = set()
        last: Page | None = None
        for _ in range(self.max_pages):
            page = await self._get_page(client, known, since, max(0, position - 1), deadline)
            if last is not None and (not page.ids or page.ids[0] != last.ids[-1]):
                raise _PagesShiftedError("a page did not join the one before")
            start = 0 if last is None else 1
            fresh = page.ids[start:]
            largest = max(largest, page.total or 0)
            if fresh:
                repeated = _find_repeated(seen, fresh)
                seen.update(id for id in fresh if isinstance(id, str))
                repeats += len(repeated)
                position += len(fresh)
                last = page
                yield page.to_source_page(start, frozenset(repeated), repeats)
            if not fresh or (len(page.ids) < self.page_size and position >= (page.total or position + 1)):
                if position < largest:
                    # A page always begins with the last record of the one before, so an empty page is not the end.
                    kind = _TooFewError if page.ids else _PagesShiftedError
                    raise kind(f"it says that it holds {largest} records and gave {position}")
                return
        raise errors.SourceError(f"The feed has more than {self.max_pages} pages: it may never end.")

    async def _get_page(
        self, client: httpx2.AsyncClient, known: Mapping[str, JsonValue], since: str | None, skip: int, deadline: float
    ) -> Page:
        if time.monotonic() > deadline:
            raise errors.SourceError(
                f"Reading the feed took longer than {self.total_seconds:.0f} seconds: sync again later."
            )
        parameters = self._get_parameters(since, skip)
        return await self.reader.get(client, partial(read_page, known, adapt=self.adapt), parameters, deadline=deadline)

    def _get_parameters(self, since: str | None, skip: int) -> dict[str, str]:
        parameters = {"$count": "true", "$orderby": "id asc", "$top": str(self.page_size), "$skip": str(skip)}
        if since is not None:
            parameters["$filter"] = f"modified ge {_format_instant(since)}"
        return parameters


def _find_repeated(seen: Set[str], ids: Sequence[JsonValue]) -> list[str]:
    """Return the ids seen before, on this or an earlier page, once for each repetition."""
    repeated: list[str] = []
    here: set[str] = set()
    for id in ids:
        if isinstance(id, str):
            if id in here or id in seen:
                repeated.append(id)
            here.add(id)
    return repeated


def _format_instant(text: str) -> str:
    """Return the instant as the service writes it, in UTC with seven fractional digits."""
    instant = datetime.fromisoformat(text).astimezone(UTC)
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
