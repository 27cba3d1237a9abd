"""API keys: who calls over HTTP. Only a key's hash is kept, so nobody can read a key out of the store.

A key is 256 random bits, so a plain SHA-256 of it suffices: there is nothing to guess (OWASP, "Cryptographic Storage").
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from refdesk.core.writing import audit
from refdesk.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from refdesk.model import AGENT_NAME, ORG_NAME, SHARED_ORG, Metadata, MetadataKey, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from refdesk.core.writing.audit import Actor
    from refdesk.model import JsonValue
    from refdesk.protocols import Clock, Store

KIND = "api_key"
PREFIX = "refdesk_"

_ORG = re.compile(ORG_NAME)
_AGENT = re.compile(AGENT_NAME)
MOST_KEYS = 100_000
_REFUSED = "The API key is unknown, expired or revoked. Ask whoever runs this server for a valid one."


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key. `id` is public: it names the key in lists and revokes it, but opens nothing."""

    id: str
    org: str
    agent: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it still opens anything; it no longer does from the instant of its expiry on."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def principal(self) -> Principal:
        """Who calls with it."""
        return Principal(self.org, self.agent, frozenset(self.scopes), credential=self.id)


class ListedKeys(Protocol):
    """Keys that are kept outside the store."""

    @property
    def trouble(self) -> str | None:
        """Why they may be out of date; `None` if they are not."""
        ...

    def find(self, hash: str) -> ApiKey | None:
        """Return the key of this hash, valid or not; `None` where there is none."""
        ...

    def list(self) -> Sequence[ApiKey]:
        """Return all of them."""
        ...


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of one server.

    Attributes:
        scopes: Those that a key can have, each with what it allows.
        actor: Who makes and revokes keys, for the record.
        random_text: Makes the secret part: at least 256 bits, URL-safe.
        file: Further keys, which are neither made nor revoked here.
        used: When this process last found each valid key, by its id.
    """

    store: Store
    clock: Clock
    scopes: Mapping[str, str]
    actor: Actor = audit.SERVER
    random_text: Callable[[], str] = lambda: secrets.token_urlsafe(32)
    file: ListedKeys | None = None
    used: dict[str, datetime] = field(default_factory=dict[str, datetime], compare=False)

    async def create(
        self, *, org: str, agent: str, scopes: Sequence[str], expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its secret, which is kept nowhere and cannot be shown again.

        Raises:
            InvalidInputError: A name or a scope is not allowed, or the expiry is not in the future.
        """
        check_key(org, agent, scopes, self.scopes)
        key, secret = make_key(org, agent, scopes, self.clock.now(), expires_at, self.random_text)
        await self._write({hash_secret(secret): key}, "keys.create")
        return key, secret

    async def rotate(
        self, id: str, *, overlap: timedelta, expires_at: datetime | None = None
    ) -> tuple[ApiKey, str, ApiKey]:
        """Make a key that may do the same as another, and let the old one expire after the overlap.

        Both happen at once or not at all. An old key that expires sooner keeps its own expiry.

        Args:
            id: Of the key to be replaced.
            overlap: How long both are valid; zero ends the old one at once.
            expires_at: Of the new key; `None` if it is valid until it is revoked.

        Returns:
            The new key, its secret, and the old key as it is now.

        Raises:
            NotFoundError: There is no key with this id.
            InvalidInputError: The old key is no longer valid, or the expiry is not in the future.
        """
        now = self.clock.now()
        hash, old = await self._get(id)
        if not old.is_valid(now):
            raise InvalidInputError(f"Key {id} opens nothing any more; make a new one with `refdesk keys create`.")
        ends = now + overlap
        ending = replace(old, expires_at=ends if old.expires_at is None else min(ends, old.expires_at))
        new, secret = make_key(old.org, old.agent, old.scopes, now, expires_at, self.random_text)
        await self._write({hash: ending, hash_secret(secret): new}, "keys.rotate")
        return new, secret, ending

    async def identify(self, secret: str) -> Principal:
        """Return who holds the key; errors as in `find`."""
        return (await self.find(secret)).principal

    async def find(self, secret: str) -> ApiKey:
        """Return the valid key that has this secret.

        Raises:
            UnauthenticatedError: It is unknown, expired or revoked; the answer does not say which.
        """
        hash = hash_secret(secret)
        # The file comes first: its keys work even while the store does not answer.
        key = self.file.find(hash) if self.file is not None else None
        if key is None and (record := await self.store.get_metadata(MetadataKey(SHARED_ORG, KIND, hash))) is not None:
            key = read(record)
        if key is None or not key.is_valid(self.clock.now()):
            raise UnauthenticatedError(_REFUSED)
        self.used[key.id] = self.clock.now()
        return key

    async def list(self, org: str | None = None) -> list[ApiKey]:
        """Return the keys of an org, or of all orgs, oldest first, including those that are no longer valid."""
        records = await self.store.list_metadata(KIND, limit=MOST_KEYS)
        keys = [*(self.file.list() if self.file is not None else ()), *(read(record) for record in records)]
        return sorted((key for key in keys if org in (None, key.org)), key=lambda key: (key.created_at, key.id))

    async def revoke(self, id: str) -> ApiKey:
        """Make a key invalid from now on, and return it. Doing it again changes nothing.

        Raises:
            NotFoundError: There is no key with this id.
        """
        hash, key = await self._get(id)
        if key.revoked_at is None:
            key = replace(key, revoked_at=self.clock.now())
            await self._write({hash: key}, "keys.revoke")
        return key

    async def _get(self, id: str) -> tuple[str, ApiKey]:
        """Return a key with the hash it is kept under; errors as in `revoke`."""
        for record in await self.store.list_metadata(KIND, limit=MOST_KEYS):
            key = read(record)
            if key.id == id:
                return record.key.name, key
        if self.file is not None and any(key.id == id for key in self.file.list()):
            raise InvalidInputError(f"Key {id} is a line of REFDESK_KEYS_FILE: remove it there, or replace it.")
        raise NotFoundError(f"There is no key {id}. `refdesk keys list` shows the ids.")

    async def _write(self, keys: Mapping[str, ApiKey], action: str) -> None:
        """Store keys under their hashes, all at once, and put on record what was done with them."""
        async with self.store.transaction() as transaction:
            await transaction.put_metadata(
                [Metadata(MetadataKey(SHARED_ORG, KIND, hash), _to_value(key)) for hash, key in keys.items()]
            )
            for key in keys.values():
                details: dict[str, JsonValue] = {"key": key.id, "of": key.agent, "scopes": list(key.scopes)}
                act = audit.make_act(self.actor, action, details=details)
                await audit.append(transaction, key.org, self.clock.now(), act)


def revoke(record: Metadata, at: datetime) -> Metadata:
    """Return the record of a key as it is once the key was revoked."""
    return replace(record, value=_to_value(replace(read(record), revoked_at=at)))


def opens_less(record: Metadata, than: Metadata) -> bool:
    """Return whether a key opens less in one record than in another: it is revoked, or expires earlier."""
    key, other = read(record), read(than)
    if key.revoked_at is not None:
        return other.revoked_at is None
    return key.expires_at is not None and (other.expires_at is None or key.expires_at < other.expires_at)


def _to_value(key: ApiKey) -> dict[str, JsonValue]:
    return {
        "id": key.id,
        "org": key.org,
        "agent": key.agent,
        "scopes": list(key.scopes),
        "created_at": key.created_at.isoformat(),
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }


def make_key(
    org: str,
    agent: str,
    scopes: Sequence[str],
    now: datetime,
    expires_at: datetime | None = None,
    random_text: Callable[[], str] = lambda: secrets.token_urlsafe(32),
) -> tuple[ApiKey, str]:
    """Return a new key and its secret, without storing them; its org, agent and scopes have been checked before.

    Raises:
        InvalidInputError: The expiry is not in the future.
    """
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError("A key must expire in the future.")
    secret = PREFIX + random_text()
    return ApiKey(hash_secret(secret)[:12], org, agent, tuple(sorted(set(scopes))), now, expires_at), secret


def check_key(org: str, agent: str, scopes: Sequence[str], known: Mapping[str, str]) -> None:
    """Check that a key may have this org, agent and scopes.

    Raises:
        InvalidInputError: A name or a scope is not allowed.
    """
    if unknown := sorted(set(scopes) - known.keys()):
        raise InvalidInputError(f"There is no scope {', '.join(unknown)}. There are: {', '.join(known)}.")
    if not scopes:
        raise InvalidInputError(f"A key needs at least one scope of: {', '.join(known)}.")
    if not _ORG.fullmatch(org):
        raise InvalidInputError("An org is named by 1 to 64 lower-case letters, digits and hyphens.")
    if not _AGENT.fullmatch(agent):
        raise InvalidInputError("An agent is named by 1 to 64 characters.")


def hash_secret(secret: str) -> str:
    """Return the hash under which a key is kept, given its secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def read(record: Metadata) -> ApiKey:
    """Return the key that a record is of."""
    value = record.value
    scopes = value["scopes"]
    assert isinstance(scopes, list)
    return ApiKey(
        id=str(value["id"]),
        org=str(value["org"]),
        agent=str(value["agent"]),
        scopes=tuple(str(scope) for scope in scopes),
        created_at=datetime.fromisoformat(str(value["created_at"])),
        expires_at=_instant(value["expires_at"]),
        revoked_at=_instant(value["revoked_at"]),
    )


def _instant(value: JsonValue) -> datetime | None:
    return datetime.fromisoformat(str(value)) if value is not None else None
