"""What can go wrong with the feed, beside what can go wrong with any service."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt, TypeAdapter

from sample_world import faults
from sample_world.azure_updates.world import Record
from sample_world.faults import FaultPlan, TransportFault

__all__ = ["FaultKind", "FaultPlan", "FaultRule", "parse_rules"]

FaultKind = TransportFault | Literal["duplicate_page", "page_shift", "empty_page", "wrong_count"]


class FaultRule(faults.FaultRule, frozen=True):
    """One fault of the feed.

    Attributes:
        fault: What happens, beside what every emulator knows:

            - `duplicate_page`: the page before the one that was asked.
            - `page_shift`: first publish `publish` and withdraw `withdraw`, then answer from the feed as it is then.
            - `empty_page`: the right envelope without a record.
            - `wrong_count`: the right answer with a count that is off by `count_error`.
        publish: Records to add, or how many of the next day's to add.
    """

    fault: FaultKind
    location: str = "http://elsewhere.example/releasecommunications/api/v2/azure"
    count_error: int = 7
    publish: PositiveInt | list[Record] | None = None
    withdraw: tuple[str, ...] = ()


_RULES = TypeAdapter(list[FaultRule])


def parse_rules(value: object) -> list[FaultRule]:
    """Return the rules in a JSON list.

    Raises:
        ValueError: it is no list of rules; pydantic's error says where.
    """
    return _RULES.validate_python(value)
