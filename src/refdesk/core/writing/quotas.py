"""Quotas per org and per agent, checked and counted in the transaction of the write itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.errors import QuotaExceededError
from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.protocols import Reader, Transaction

KIND = "quota"


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that may be kept; `None` is no limit."""

    name: str
    per_org: int | None = None
    per_agent: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a quota an org and one of its agents have used."""

    org: int
    agent: int


async def spend(transaction: Transaction, quota: Quota, org: str, agent: str, amount: int = 1) -> None:
    """Count `amount` against both limits.

    Raises:
        QuotaExceededError: As in `count`; nothing is counted.
    """
    records = await transaction.get_many_metadata(list_keys(quota, org, agent))
    await transaction.put_metadata(count(quota, org, agent, records, amount))


def count(
    quota: Quota, org: str, agent: str, records: Sequence[Metadata | None], amount: int = 1
) -> tuple[Metadata, Metadata]:
    """Return records for the keys of `list_keys` that count `amount` more than the given ones.

    Raises:
        QuotaExceededError: A limit would be exceeded. `details` has `quota`, `scope`, `used`, `limit`.
    """
    usage = _require_room(quota, _read(records), amount)
    for_org, for_agent = list_keys(quota, org, agent)
    return Metadata(for_org, {"used": usage.org + amount}), Metadata(for_agent, {"used": usage.agent + amount})


async def require_room(reader: Reader, quota: Quota, org: str, agent: str, amount: int = 1) -> Usage:
    """Return how much has been used, if `amount` more may be kept.

    Raises:
        QuotaExceededError: As in `count`.
    """
    return _require_room(quota, await read_usage(reader, quota, org, agent), amount)


async def read_usage(reader: Reader, quota: Quota, org: str, agent: str) -> Usage:
    """Return how much has been used."""
    return _read(await reader.get_many_metadata(list_keys(quota, org, agent)))


def list_keys(quota: Quota, org: str, agent: str) -> tuple[MetadataKey, MetadataKey]:
    """Return the keys under which the usage of an org and of one of its agents is counted."""
    return MetadataKey(org, KIND, f"{quota.name}:org"), MetadataKey(org, KIND, f"{quota.name}:agent:{agent}")


def _read(records: Sequence[Metadata | None]) -> Usage:
    return Usage(*(int(str(record.value["used"])) if record is not None else 0 for record in records))


def _require_room(quota: Quota, usage: Usage, amount: int) -> Usage:
    for scope, used, limit in (("org", usage.org, quota.per_org), ("agent", usage.agent, quota.per_agent)):
        if limit is not None and used + amount > limit:
            raise QuotaExceededError(
                f"The quota {quota.name} of this {scope} is used up: {used} of {limit}. "
                "Ask whoever runs this server to raise it.",
                details={"quota": quota.name, "scope": scope, "used": used, "limit": limit},
            )
    return usage
