"""What the reliability tests did, counted once it held: lines in a file that `REFDESK_COUNTS` names.

`python -m benchmarks.reliability` makes the page of them. A test counts after its assertions: what failed is not
counted as held.
"""

from __future__ import annotations

import json
import os
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "kills of servers",
    "kills of desks",
    "kills of syncs",
    "kills while erasing",
    "kills while backing up and restoring",
    "kills of a cluster's nodes",
    "kills while moving",
    "kills while moving between databases",
    "power-loss images",
    "fuzzed messages",
    "tenant calls",
    "damaged files",
    "backups",
    "restores",
    "erasures",
    "racing calls",
]


def count(kind: Kind, number: int) -> None:
    """Note that so many of a kind held; nothing without `REFDESK_COUNTS`. Processes may write to one file at once."""
    path = os.environ.get("REFDESK_COUNTS")
    if path:
        is_long = os.environ.get("REFDESK_SOAK") == "1"
        line = json.dumps({"kind": kind, "count": number, "form": "soak" if is_long else "short"})
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
