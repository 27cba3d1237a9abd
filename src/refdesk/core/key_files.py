"""API keys that a file lists by their hashes: whoever makes one needs no access to the store.

Each line is a JSON object with `hash`, `org`, `agent`, `scopes`, and, where the key expires, `expires`; blank lines and
those that begin with `#` are skipped. The file is read again as soon as it changes. If it can no longer be read, the
keys stay as they were, and the reason is reported: a half-written file must not lock everybody out.
"""

from __future__ import annotations

import json
import logging
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from refdesk.core.keys import PREFIX, ApiKey, check_key
from refdesk.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)

SETTING = "REFDESK_KEYS_FILE"
_UNREADABLE = f"{SETTING} cannot be read: {{}}. Name a file that this process may read, or unset it."
_HASH = re.compile(r"[0-9a-f]{64}")
_NAMES = {"hash", "org", "agent", "scopes", "expires", "made"}
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class KeyFile:
    """The keys of one file.

    Attributes:
        scopes: Those that a key can have.
        trouble: Why the file could not be read when it last changed; `None` if it could.
    """

    path: Path
    scopes: Mapping[str, str]
    trouble: str | None = None
    _keys: dict[str, ApiKey] = field(default_factory=dict[str, ApiKey])
    _seen: tuple[int, ...] = ()

    def open(self) -> KeyFile:
        """Read the file for the first time.

        Raises:
            ConfigurationError: It cannot be read, or a line of it is not a key; the message names the line.
        """
        self._seen, self._keys = self._stat(), self._read()
        return self

    def find(self, hash: str) -> ApiKey | None:
        """Return the key of this hash, valid or not; `None` where the file has none."""
        self._refresh()
        return self._keys.get(hash)

    def list(self) -> list[ApiKey]:
        """Return all keys, in the order of their lines."""
        self._refresh()
        return [*self._keys.values()]

    def _refresh(self) -> None:
        try:
            seen = self._stat()
            if seen == self._seen:
                return
            self._keys, self._seen, self.trouble = self._read(), seen, None
            logger.info("keys read again", extra={"keys": len(self._keys)})
        except ConfigurationError as error:
            if error.message != self.trouble:
                logger.error("keys not read again", extra={"reason": error.message})  # noqa: TRY400 - the reason is all
            self.trouble = error.message

    def _stat(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise ConfigurationError(_UNREADABLE.format(error.strerror)) from None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> dict[str, ApiKey]:
        try:
            lines = self.path.read_text("utf-8-sig").splitlines()
        except OSError as error:
            raise ConfigurationError(_UNREADABLE.format(error.strerror)) from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{SETTING} is no text in UTF-8.") from None
        numbered = [(number, line.strip()) for number, line in enumerate(lines, 1)]
        keys = [self._parse(number, line) for number, line in numbered if line and not line.startswith("#")]
        return dict(keys)

    def _parse(self, number: int, line: str) -> tuple[str, ApiKey]:
        if line.startswith(PREFIX):
            raise ConfigurationError(
                f"{SETTING}, line {number}: it is a key, and only its hash may be here. Whoever can read the file has "
                "that key: take the line out, and make another (refdesk keys make --append FILE)."
            )
        try:
            return _read_line(json.loads(line), self.scopes)
        except InvalidInputError as error:
            reason = error.message
        except (ValueError, RecursionError):
            reason = "it is no JSON"
        raise ConfigurationError(
            f"{SETTING}, line {number}: {reason.rstrip('.')}. `refdesk keys make` writes such lines."
        )


def write_line(hash: str, key: ApiKey) -> str:
    """Return a key as a line of a key file."""
    value = {"hash": hash, "org": key.org, "agent": key.agent, "scopes": [*key.scopes]}
    ends = {"expires": key.expires_at.isoformat()} if key.expires_at is not None else {}
    return json.dumps({**value, **ends, "made": key.created_at.isoformat()}, ensure_ascii=False)


def append_line(path: Path, line: str) -> None:
    """Add a line at the end of a key file, which is created if it does not exist.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        with path.open("ab+", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            begins = file.read() in (b"", b"\n")
            text = f"{'' if begins else chr(10)}{line}\n".encode()
            is_whole = file.write(text) == len(text)
            if not is_whole:
                # No server starts with a part of a line in the file.
                file.truncate(end)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
    if not is_whole:
        raise ConfigurationError(f"{path} cannot be written: there is no room for the line. Nothing was added.")


def _read_line(parsed: object, scopes: Mapping[str, str]) -> tuple[str, ApiKey]:
    if not isinstance(parsed, dict):
        raise InvalidInputError("it is no JSON object")
    value = cast("dict[str, Any]", parsed)
    if unknown := sorted(value.keys() - _NAMES):
        raise InvalidInputError(f"there is no {unknown[0]!r}")
    hash, listed = value.get("hash"), value.get("scopes")
    if not isinstance(hash, str) or not _HASH.fullmatch(hash):
        raise InvalidInputError("hash must be the SHA-256 of the key, as 64 hexadecimal digits in lower case")
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in cast("list[object]", listed)):
        raise InvalidInputError("scopes must be a list of texts")
    org, agent = value.get("org"), value.get("agent")
    if not isinstance(org, str) or not isinstance(agent, str):
        raise InvalidInputError("org and agent must be texts")
    chosen = cast("list[str]", listed)
    check_key(org, agent, chosen, scopes)
    made, ends = _read_instant(value.get("made")), _read_instant(value.get("expires"))
    return hash, ApiKey(hash[:12], org, agent, tuple(sorted(set(chosen))), made or _LONG_AGO, ends)


def _read_instant(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidInputError("expires must be an instant, such as 2027-01-31T00:00:00+00:00") from None
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
