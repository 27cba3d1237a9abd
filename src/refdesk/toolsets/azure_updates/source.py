"""The client of the release communications API, the upstream of the feed: this toolset's only module with I/O.

It trusts nothing it receives: page offsets are computed, never followed, and a page that does not overlap the one
before is detected, so no record is silently skipped. The rest of the distrust is the kit's.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn, cast

import anyio

from refdesk import errors
from refdesk.core.clock import SystemClock
from refdesk.core.retrying import PassingError
from refdesk.kit.http import HttpReader, check_url
from refdesk.protocols import SourcePage

if TYPE_CHECKING:
    import httpx2

    from refdesk.model import JsonObject
    from refdesk.protocols import Clock

logger = logging.getLogger(__name__)

VARIABLE = "REFDESK_AZURE_UPDATES_URL"
MAX_READINGS = 2


class _PagesShiftedError(Exception):
    """The feed changed while it was read, so that records may have been passed over."""


@dataclass(frozen=True, slots=True)
class _Page:
    records: tuple[JsonObject, ...]
    total: int | None


@dataclass(frozen=True, slots=True)
class AzureUpdatesSource:
    """See `Source`. Each record may come more than once; a record that is no JSON object comes as `{"value": it}`.

    Attributes:
        url: Of the set of updates. HTTPS, or plain HTTP on this machine.
        page_size: Records requested at a time, 2 or more; the server may return fewer.
        request_seconds: How long one request may take, answer included.
        total_seconds: How long one reading may take.
        max_pages: How many pages one reading may have.
        max_body_bytes: How large an answer may be once unpacked.
        first_wait: Upper bound of the wait before the second try, in seconds; it doubles from try to try.
        max_wait: The longest wait between tries, also where the server asks for more.
        sleep: Waits that many seconds.
        chance: Where the jitter comes from.

    Raises:
        ConfigurationError: The URL is not one to read from.
    """

    url: str
    page_size: int = 100
    connect_seconds: float = 10.0
    request_seconds: float = 60.0
    total_seconds: float = 1800.0
    max_pages: int = 5000
    max_body_bytes: int = 32 * 2**20
    first_wait: float = 1.0
    max_wait: float = 60.0
    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        check_url(self.url, VARIABLE)

    @property
    def is_complete(self) -> bool:
        """The feed holds every update there is."""
        return True

    async def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        """Yield the records modified at or after `since` (ISO 8601), or all, by id. See `Source.read`.

        When the feed changes underneath so that pages no longer join, it is read once more from the start.
        """
        async with self._reader.open() as client:
            for reading in range(1, MAX_READINGS + 1):
                try:
                    async for page in self._read_once(client, since):
                        yield page
                except _PagesShiftedError as error:
                    logger.info("feed read again", extra={"reason": str(error), "reading": reading})
                    if reading == MAX_READINGS:
                        raise errors.SourceError(
                            f"The feed changed while it was read: {error}. What was read is kept; sync again."
                        ) from None
                else:
                    return

    @property
    def _reader(self) -> HttpReader:
        return HttpReader(
            url=self.url,
            variable=VARIABLE,
            connect_seconds=self.connect_seconds,
            request_seconds=self.request_seconds,
            max_body_bytes=self.max_body_bytes,
            first_wait=self.first_wait,
            max_wait=self.max_wait,
            clock=self.clock,
            sleep=self.sleep,
            chance=self.chance,
        )

    async def _read_once(self, client: httpx2.AsyncClient, since: str | None) -> AsyncGenerator[SourcePage]:
        """Yield pages up to the end. Each page but the first begins with the last record of the one before."""
        deadline = time.monotonic() + self.total_seconds
        position, nameless, largest = 0, 0, 0
        seen: set[str] = set()
        last: JsonObject | None = None
        for _ in range(self.max_pages):
            page = await self._get_page(client, since, max(0, position - 1), deadline)
            if last is not None and (not page.records or page.records[0].get("id") != last.get("id")):
                raise _PagesShiftedError("a page did not join the one before")
            fresh = page.records if last is None else page.records[1:]
            largest = max(largest, page.total or 0)
            if fresh:
                seen.update(id for record in fresh if isinstance(id := record.get("id"), str))
                nameless += sum(not isinstance(record.get("id"), str) for record in fresh)
                position += len(fresh)
                last = fresh[-1]
                yield SourcePage(fresh, page.total)
            if not fresh or (len(page.records) < self.page_size and position >= (page.total or position + 1)):
                _check_count(len(seen) + nameless, largest)
                return
        raise errors.SourceError(f"The feed has more than {self.max_pages} pages: it may never end.")

    async def _get_page(self, client: httpx2.AsyncClient, since: str | None, skip: int, deadline: float) -> _Page:
        if time.monotonic() > deadline:
            raise errors.SourceError(f"Reading the feed took longer than {self.total_seconds:.0f} seconds.")
        return await self._reader.get(client, _parse_page, self._get_parameters(since, skip), deadline=deadline)

    def _get_parameters(self, since: str | None, skip: int) -> dict[str, str]:
        parameters = {"$count": "true", "$orderby": "id asc", "$top": str(self.page_size), "$skip": str(skip)}
        if since is not None:
            parameters["$filter"] = f"modified ge {_format_instant(since)}"
        return parameters


def _check_count(read: int, total: int) -> None:
    if read < total:
        raise _PagesShiftedError(f"it says that it holds {total} records and gave {read}")


def _format_instant(text: str) -> str:
    """Return the instant as the service writes it, in UTC with seven fractional digits."""
    instant = datetime.fromisoformat(text).astimezone(UTC)
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def _parse_page(body: bytes) -> _Page:
    try:
        page = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise PassingError("the answer is not JSON") from None
    records = cast("dict[str, object]", page).get("value") if isinstance(page, dict) else None
    if not isinstance(records, list):
        raise PassingError("the answer holds no list of records")
    total = cast("dict[str, object]", page).get("@odata.count")
    return _Page(
        tuple(_as_object(record) for record in cast("list[object]", records)),
        total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
    )


def _as_object(record: object) -> JsonObject:
    return cast("JsonObject", record if isinstance(record, dict) else {"value": record})


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
