"""What is released makes those notes wrong that say that it is not there yet, and no others."""

from __future__ import annotations

import pytest

from refdesk.impact.changes import Announcement, read_change
from refdesk.impact.kinds import THRESHOLD
from refdesk.impact.known_changes import KnownChanges
from refdesk.impact.matching import read_passages

RELEASED = (
    ("1", "Generally Available: Private endpoints for Azure AI Search indexers", "Indexers can now use them."),
    (
        "2",
        "Generally Available: Customer managed keys for Azure NetApp Files volumes",
        "Use your own keys.",
    ),
    ("3", "General availability: Node autoprovisioning in Azure Kubernetes Service (AKS)", "Nodes are chosen for you."),
    ("4", "Public Preview: Vector search in Azure Database for MySQL", "Try it out."),
)
WRONG = (
    (
        "1",
        "Private endpoints for Azure AI Search indexers are not available yet, so crawlers use the internet.",
    ),
    ("1", "We wait for private endpoints of indexers in Azure AI Search; until then the firewall stays open."),
    ("2", "Azure NetApp Files volumes do not support customer managed keys. The auditors know."),
    ("2", "Customer managed keys for Azure NetApp Files volumes are only in preview: not for payroll."),
    ("3", "Node autoprovisioning is not supported in AKS production clusters yet: size pools by hand."),
)
RIGHT = (
    "Private endpoints for Azure AI Search indexers are in use since spring.",
    "The search box does not support wildcards yet. Azure AI Search runs in Sweden.",
    "Azure NetApp Files is not available in our region.",
    "AKS production clusters are not sized by hand any more.",
    "Our own autoprovisioning of nodes is not there yet.",
    "Vector search in Azure Database for MySQL is not available yet.",
    "Customer managed keys are rotated every March. The new office is not open yet.",
)


def find(note: str) -> list[str]:
    known = KnownChanges()
    for id, title, text in RELEASED:
        change = read_change(Announcement(id, title, text))
        if change is not None:
            known.put(change)
    return [change.id for change, match in known.find(list(read_passages("", note))) if match.confidence >= THRESHOLD]


@pytest.mark.parametrize(("id", "note"), WRONG)
def test_a_note_that_says_it_is_not_there_yet_is_wrong(id: str, note: str) -> None:
    assert find(note) == [id]


@pytest.mark.parametrize("note", RIGHT)
def test_other_notes_are_left_alone(note: str) -> None:
    assert find(note) == []


def test_a_preview_releases_nothing_and_a_release_has_no_due_day() -> None:
    kinds = [read_change(Announcement(*each)) for each in RELEASED]
    assert [(each.kind, each.due) if each else None for each in kinds] == [("releases", None)] * 3 + [None]
