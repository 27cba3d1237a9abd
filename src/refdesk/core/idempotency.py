"""Idempotency tokens: a repeated call is answered from the first one's record instead of being done again.

The record is written in the call's own transaction, so a reply that got lost can always be answered, and a call that
failed left no record. While one call runs, its repetition waits for the store's write lock.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from refdesk.errors import ConflictError
from refdesk.model import Record, RecordKey

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import JsonObject
    from refdesk.protocols import Transaction

KIND = "idempotency"
WINDOW = timedelta(seconds=60)
SWEEP = 100
"""How many expired tokens one call clears away at most."""


@dataclass(frozen=True, slots=True)
class Token:
    """A caller's promise that two calls with it are the same call.

    Attributes:
        operation: Short name of the operation, as in `idem:k.store:…`.
        payload: Everything asked for; another payload under the same token is a conflict.
    """

    org: str
    agent: str
    operation: str
    token: str
    payload: JsonObject

    @property
    def key(self) -> RecordKey:
        """Where the answer is kept."""
        return RecordKey(self.org, KIND, f"{self.operation}:{self.agent}:{self.token}")

    @property
    def fingerprint(self) -> str:
        """Hex digest of the payload."""
        text = json.dumps(self.payload, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


async def recall(transaction: Transaction, token: Token, now: datetime) -> JsonObject | None:
    """Return the first call's answer within `WINDOW` of it, or `None` when this is the first call.

    Raises:
        ConflictError: The token was used for another payload within the window.
    """
    record = await transaction.get_record(token.key)
    if record is None or record.due_at is None or record.due_at <= now:
        return None
    if record.value["fingerprint"] != token.fingerprint:
        raise ConflictError(
            "This clientToken was used for another request less than 60 seconds ago. Use a new token for a new request."
        )
    answer = record.value["answer"]
    assert isinstance(answer, dict)
    return answer


async def remember(transaction: Transaction, token: Token, answer: JsonObject, now: datetime) -> None:
    """Keep the answer for `WINDOW`, and clear away tokens whose window is over."""
    expired = await transaction.list_records(KIND, org=token.org, due_until=now, limit=SWEEP)
    await transaction.remove_records([record.key for record in expired])
    value = {"fingerprint": token.fingerprint, "answer": answer}
    await transaction.put_records([Record(token.key, value, due_at=now + WINDOW)])
