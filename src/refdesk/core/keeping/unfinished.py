"""Which moves of a store are not complete: out of it while it serves, or into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from refdesk.core.keeping.migrating import KIND, POSITION
from refdesk.core.keeping.moves import read_move
from refdesk.model import SHARED_ORG

if TYPE_CHECKING:
    from refdesk.model import Metadata
    from refdesk.protocols import Reader

_PHASES = {
    "copying": "what it holds is copied",
    "comparing": "all is copied, and compared",
    "catching up": "all is copied and compared, and what was written since is caught up with",
}
_STAGES = {
    "documents": "its documents are copied",
    "links": "its documents are there, its links are copied",
    "records": "its documents and links are there, its records are copied",
    "acts": "all but its audit log is there",
    "removing": "all of it is there and was compared, but it is not all removed from the store that it came from",
}
_OUT = "This store is being moved to {}: {}. Until that is through, it is the truth, and nothing is lost."
_GO_ON_OUT = (
    "If no process moves it any more: the same refdesk migrate --serving goes on, and --abort in its place gives it up."
)
_IN = "A move {}into this store is not through: {}."
_GO_ON_IN = "If no process moves it any more: the same refdesk migrate as before goes on from there."


@dataclass(frozen=True, slots=True)
class UnfinishedMove:
    """A move that was begun and is not complete.

    Attributes:
        found: Which one, and its progress.
        advice: What to do.
    """

    found: str
    advice: str


async def find_unfinished(reader: Reader) -> list[UnfinishedMove]:
    """Return the moves of a store that are not complete; whether a process is working on them is not known."""
    move, records = await read_move(reader), await reader.list_metadata(KIND, org=SHARED_ORG)
    out = [move] if move is not None and move.stage == "moving" else []
    into = [(record, stage) for record in records if (stage := str(record.value["stage"])) in _STAGES]
    # What an earlier refdesk removed has no mark of being through.
    into = [(record, stage) for record, stage in into if not record.value.get("is_through", stage == "removing")]
    return [
        *[UnfinishedMove(_OUT.format(name_store(each.target), _PHASES[each.phase]), _GO_ON_OUT) for each in out],
        *[UnfinishedMove(_IN.format(_name_org(record), _STAGES[stage]), _GO_ON_IN) for record, stage in into],
    ]


def _name_org(record: Metadata) -> str:
    org = record.key.name.removeprefix(f"{POSITION.name} of ")
    return "" if record.key == POSITION else f"of the org {org} "


def name_store(url: str) -> str:
    """Return the URL of a store without user name and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
