"""Idempotency keys: a repeated call returns the first call's result instead of running again.

The record is written in the call's own transaction, so a call whose reply got lost can always be answered again, and a
call that failed leaves no record. While a call runs, its repetition waits for the store's write lock.

Where processes share a scratchpad, a note there lets repetitions wait without holding anything. Only the record
answers: a note may be lost at any time, may outlive what a store lost when it was restored or failed over, and may be
that of another deployment which shares the scratchpad.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio

from refdesk.errors import ConflictError
from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from refdesk.model import JsonObject
    from refdesk.protocols import Clock, Reader, Scratchpad, Transaction

KIND = "idempotency"
WINDOW = timedelta(seconds=60)
REPEATED = timedelta(minutes=10)
"""How long after it was first sent a call may be repeated by itself, because the process that ran it ended. Whoever
repeats it says when it was first sent, and answers are kept this long for that."""

SWEEP = 100
"""Most expired tokens that one call deletes."""

WAIT_SECONDS = 5.0
"""How long a repetition waits for the first call to end."""

CLAIM_SECONDS = 3.0
"""How long the note of a running call lasts without being renewed, so that a call that died keeps nobody waiting."""

RENEW_SECONDS = 1.0
LOOK_SECONDS = 0.05

_OTHER_REQUEST = (
    "This clientToken was used for another request less than 60 seconds ago. Use a new token for a new request."
)
_RUNNING = "The first request with this clientToken is still being done. Send it again in a few seconds."


@dataclass(frozen=True, slots=True)
class Token:
    """A caller's promise that two calls with the same token are the same call.

    Attributes:
        operation: Short name of the operation, as in `idem:k.store:…`.
        payload: The whole request; another payload under the same token is a conflict.
    """

    org: str
    agent: str
    operation: str
    token: str
    payload: JsonObject

    @property
    def key(self) -> MetadataKey:
        """Where the answer is kept."""
        return MetadataKey(self.org, KIND, f"{self.operation}:{self.agent}:{self.token}")

    @property
    def note_key(self) -> str:
        """Where it is noted that the call runs, or has ended."""
        return find_note_key(self.key)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the payload."""
        text = json.dumps(self.payload, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def find_note_key(key: MetadataKey) -> str:
    """Return where it is noted that the call runs, or has ended, whose answer is kept under a key."""
    operation, _, rest = key.name.partition(":")
    return f"idem:{operation}:{key.org}:{rest}"


async def recall(reader: Reader, token: Token, asked_at: datetime) -> JsonObject | None:
    """Return the first call's answer within `WINDOW` of it, or `None` when this is the first call.

    Args:
        reader: The transaction of the call, or the store before that begins.
        token: The call's.
        asked_at: When the call was first sent: now, or up to `REPEATED` ago for one that is repeated by itself.

    Raises:
        ConflictError: The token was used for another payload within the window.
    """
    record = await reader.get_metadata(token.key)
    if record is None or record.due_at is None or record.due_at <= asked_at:
        return None
    if record.value["fingerprint"] != token.fingerprint:
        raise ConflictError(_OTHER_REQUEST)
    answer = record.value["answer"]
    assert isinstance(answer, dict)
    return answer


async def remember(transaction: Transaction, token: Token, answer: JsonObject, now: datetime) -> None:
    """Keep the answer for `WINDOW`, and delete tokens that nobody may ask for any more."""
    expired = await transaction.list_metadata(KIND, org=token.org, due_until=now - REPEATED, limit=SWEEP)
    await transaction.remove_metadata([record.key for record in expired])
    value = {"fingerprint": token.fingerprint, "answer": answer}
    await transaction.put_metadata([Metadata(token.key, value, due_at=now + WINDOW)])


class AnsweredBefore(Exception):
    """Ends a call that is a repetition.

    Attributes:
        answer: The first call's.
    """

    def __init__(self, answer: JsonObject) -> None:
        super().__init__("answered before")
        self.answer = answer


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Once(Generic[Result]):
    """Lets a call that may be a repetition check for that before it writes, and keep its answer with what it writes.

    Attributes:
        token: `None` for a call without one: then nothing is checked or kept.
        clock: Tells the time.
        dump: Turns the result of a call into its answer.
        asked_at: When the call was first sent, if it is repeated by itself.
    """

    token: Token | None
    clock: Clock
    dump: Callable[[Result], JsonObject]
    asked_at: datetime | None = None

    async def check(self, reader: Reader) -> None:
        """Check that this is the first call.

        Raises:
            AnsweredBefore: It is a repetition.
            ConflictError: The token was used for another payload within the window.
        """
        if self.token is None:
            return
        answer = await recall(reader, self.token, self.asked_at or self.clock.now())
        if answer is not None:
            raise AnsweredBefore(answer)

    async def note(self, transaction: Transaction, result: Result) -> None:
        """Keep the answer to the call, in the transaction that does its work."""
        if self.token is not None:
            await remember(transaction, self.token, self.dump(result), self.clock.now())


async def act_once(
    scratchpad: Scratchpad | None, once: Once[Result], act: Callable[[Once[Result]], Awaitable[Result]]
) -> JsonObject:
    """Return the answer to a call; for a repetition that of the first call, with `replayed` set."""

    async def answer() -> JsonObject:
        try:
            return once.dump(await act(once))
        except AnsweredBefore as known:
            return {**known.answer, "replayed": True}

    return await answer_once(scratchpad, once.token, once.clock, answer)


async def answer_once(
    scratchpad: Scratchpad | None, token: Token | None, clock: Clock, act: Callable[[], Awaitable[JsonObject]]
) -> JsonObject:
    """Return what `act` answers; for a repetition, once the first call has ended.

    `act` must itself recall and remember, in its transaction: here it is only kept from running twice at a time.

    Raises:
        ConflictError: The token was used for another payload, or the first call took longer than `WAIT_SECONDS`.
    """
    if scratchpad is None or token is None:
        return await act()
    claim = json.dumps({"fingerprint": token.fingerprint})
    if not await _claim(scratchpad, token, clock, claim):
        return await act()
    until = clock.now() + WINDOW
    try:
        answer = await _act_while_claimed(scratchpad, token.note_key, claim, act)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await scratchpad.remove(token.note_key)
        raise
    # Only the record knows how long a recalled answer is still valid.
    if answer.get("replayed"):
        await scratchpad.remove(token.note_key)
    else:
        note = {"fingerprint": token.fingerprint, "until": until.isoformat()}
        await scratchpad.put(token.note_key, json.dumps(note), WINDOW.total_seconds())
    return answer


async def _claim(scratchpad: Scratchpad, token: Token, clock: Clock, claim: str) -> bool:
    """Return whether the call is ours to make; `False` once another has ended, which the record answers for."""
    deadline = anyio.current_time() + WAIT_SECONDS
    while (text := await scratchpad.add(token.note_key, claim, CLAIM_SECONDS)) is not None:
        note = _read_note(text)
        if note is None:
            return True
        if (until := note.get("until")) is not None:
            return datetime.fromisoformat(str(until)) <= clock.now()
        if note["fingerprint"] != token.fingerprint:
            raise ConflictError(_OTHER_REQUEST)
        if anyio.current_time() >= deadline:
            raise ConflictError(_RUNNING)
        await anyio.sleep(LOOK_SECONDS)
    return True


async def _act_while_claimed(
    scratchpad: Scratchpad, key: str, claim: str, act: Callable[[], Awaitable[JsonObject]]
) -> JsonObject:
    answer: JsonObject = {}
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_renew, scratchpad, key, claim)
        try:
            answer = await act()
        except Exception as error:
            failure = error  # raised below, so that it does not come out wrapped in a group
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return answer


async def _renew(scratchpad: Scratchpad, key: str, claim: str) -> None:
    while True:
        await anyio.sleep(RENEW_SECONDS)
        await scratchpad.put(key, claim, CLAIM_SECONDS)


def _read_note(text: str) -> dict[str, Any] | None:
    try:
        note = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", note) if isinstance(note, dict) and "fingerprint" in note else None
