"""What mem0's `get_all` returns, as JSON: a list of memories, or an object with them under `results`.

A memory becomes an entry: its text is the body, the beginning of the text is the title, its categories are the tags,
and the agent it belongs to is the author. A memory is valid through the day of its `expiration_date`, so the entry
expires on the next day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from refdesk.core import visible
from refdesk.errors import InvalidInputError
from refdesk.kit.strict_values import (
    RefusedError,
    decode_text,
    parse_json,
    read_string,
    read_strings,
)
from refdesk.toolsets.knowledge.transfer.foreign import ForeignRecord, list_unknown, read_date, shorten, take_in
from refdesk.toolsets.knowledge.transfer.reports import printable, quote

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue
    from refdesk.toolsets.knowledge.transfer.intake import Intake

LONGEST_TITLE = 80

_KNOWN = ("id", "memory", "created_at", "updated_at", "categories", "agent_id", "expiration_date")


def read(data: bytes, intake: Intake) -> None:
    """Take in every memory.

    Raises:
        InvalidInputError: It is not JSON, or holds no list of memories.
    """
    for number, item in enumerate(_list_memories(data, intake)):
        place = f"memory {number + 1}"
        try:
            take_in(intake, _make_record(item, place, intake))
        except RefusedError as error:
            intake.refuse(place, printable(str(error)))


def _list_memories(data: bytes, intake: Intake) -> Sequence[JsonValue]:
    try:
        value = parse_json(decode_text(data))
    except RefusedError as error:
        raise InvalidInputError(
            f"The file cannot be read: it {printable(str(error))}. Send what get_all exports, as JSON."
        ) from None
    if isinstance(value, Mapping):
        _note_rest(value, intake)
        value = value.get("results")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidInputError("The file holds no list of memories: export it with get_all, or choose its format.")
    return value


def _note_rest(answer: JsonObject, intake: Intake) -> None:
    results, relations = answer.get("results"), answer.get("relations")
    if isinstance(relations, Sequence) and relations:
        intake.leave_out("relations", f"{len(relations)} of them join names, and not memories")
    count = answer.get("count")
    if answer.get("next") or (isinstance(results, Sequence) and isinstance(count, int) and count > len(results)):
        intake.leave_out("the end", "the file is one page of several: export and import the others, too")
    rest = list_unknown(answer, ("results", "relations", "count", "next", "previous"))
    if rest:
        intake.leave_out("the file", f"its fields {quote(', '.join(rest))} belong to no memory")


def _make_record(item: JsonValue, place: str, intake: Intake) -> ForeignRecord:
    if not isinstance(item, Mapping):
        raise RefusedError("is not an object")
    memory = read_string(item, "memory")
    if not visible.is_seen(memory):
        raise RefusedError("memory is blank")
    return ForeignRecord(
        place=place,
        origin_id=read_string(item, "id"),
        title=shorten(next(filter(visible.is_seen, memory.splitlines()), memory), LONGEST_TITLE),
        body=memory,
        tags=_read_categories(item, place, intake),
        author=read_string(item, "agent_id") if item.get("agent_id") else None,
        created_at=read_date(intake, place, item, "created_at"),
        modified_at=read_date(intake, place, item, "updated_at"),
        expires_at=_read_expiry(item, place, intake),
        fields=list_unknown(item, _KNOWN),
    )


def _read_categories(item: JsonObject, place: str, intake: Intake) -> list[str]:
    try:
        return read_strings(item.get("categories") or [], "categories")
    except RefusedError as error:
        intake.leave_out(place, str(error))
        return []


def _read_expiry(item: JsonObject, place: str, intake: Intake) -> datetime | None:
    value = item.get("expiration_date")
    if value is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(str(value)) + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError):
        intake.leave_out(place, "expiration_date is not a day, written YYYY-MM-DD")
        return None
