"""Quotas per org and per agent, checked and counted in the transaction of the write itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.errors import QuotaExceededError
from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
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
        QuotaExceededError: As in `require_room`; nothing is counted.
    """
    usage = await require_room(transaction, quota, org, agent, amount)
    await transaction.put_metadata(
        [
            Metadata(_org_key(quota, org), {"used": usage.org + amount}),
            Metadata(_agent_key(quota, org, agent), {"used": usage.agent + amount}),
        ]
    )


async def require_room(reader: Reader, quota: Quota, org: str, agent: str, amount: int = 1) -> Usage:
    """Return how much has been used, if `amount` more may be kept.

    Raises:
        QuotaExceededError: It would pass a limit. `details` has `quota`, `scope`, `used`, `limit`.
    """
    usage = await read_usage(reader, quota, org, agent)
    for scope, used, limit in (("org", usage.org, quota.per_org), ("agent", usage.agent, quota.per_agent)):
        if limit is not None and used + amount > limit:
            raise QuotaExceededError(
                f"The quota {quota.name} of this {scope} is used up: {used} of {limit}. "
                "Ask whoever runs this server to raise it.",
                details={"quota": quota.name, "scope": scope, "used": used, "limit": limit},
            )
    return usage


async def read_usage(reader: Reader, quota: Quota, org: str, agent: str) -> Usage:
    """Return how much has been used."""
    records = await reader.get_many_metadata(list_keys(quota, org, agent))
    return Usage(*(int(str(record.value["used"])) if record is not None else 0 for record in records))


def list_keys(quota: Quota, org: str, agent: str) -> list[MetadataKey]:
    """Return where it is counted what an org and one of its agents have used."""
    return [_org_key(quota, org), _agent_key(quota, org, agent)]


def _org_key(quota: Quota, org: str) -> MetadataKey:
    return MetadataKey(org, KIND, f"{quota.name}:org")


def _agent_key(quota: Quota, org: str, agent: str) -> MetadataKey:
    return MetadataKey(org, KIND, f"{quota.name}:agent:{agent}")
