from __future__ import annotations

from datetime import date

import pytest

from refdesk.impact.changes import Announcement, Change, read_change
from refdesk.impact.kinds import THRESHOLD
from refdesk.impact.matching import Match, match, read_passages


def change(title: str, text: str = "", *products: str, due: date | None = None) -> Change:
    found = read_change(Announcement("1", title, text, products, (due,) if due else ()))
    assert found is not None
    return found


def find(announced: Change, note: str, title: str = "") -> Match | None:
    found = match(announced, list(read_passages(title, note)))
    return found if found is not None and found.confidence >= THRESHOLD else None


SIZES = change(
    "Retirement: Dsv3-series Azure Virtual Machines will be retired on May 31, 2027",
    "On May 31, 2027 we retire the Standard_D2s_v3 and Standard_D4s_v3 sizes. Please migrate to the Dsv6-series.",
    "Virtual Machines",
)
LANGUAGE = change(
    "Retirement: Support for Python 3.9 ends on October 1, 2026 - upgrade your Azure Functions apps to Python 3.13",
    "Your apps on Functions continue to run without security updates.",
    "Azure Functions",
)
CACHE = change(
    "Retirement: Azure Cache for Redis is retiring on September 30, 2028",
    "We recommend you migrate your workloads to Azure Managed Redis before September 30, 2028.",
    "Azure Cache for Redis",
)
LIMIT = change(
    "Generally Available: Azure Firewall - IP Group limit increased to 600 per policy",
    "Azure Firewall Policy now supports up to 600 IP Groups per policy, up from the previous limit of 200.",
    "Azure Firewall",
)


@pytest.mark.parametrize(
    ("announced", "note"),
    [
        (SIZES, "The crawlers run on twelve Standard_D4s_v3 in West Europe."),
        (LANGUAGE, "Our function apps template has linuxFxVersion PYTHON|3.9."),
        (CACHE, "Sessions live in Azure Cache for Redis, Premium P2."),
        (LIMIT, "Azure Firewall: at most 200 IP groups in a policy, so merge small offices."),
    ],
)
def test_a_note_that_relies_on_what_changes_is_told(announced: Change, note: str) -> None:
    assert find(announced, note) is not None


@pytest.mark.parametrize(
    ("announced", "note"),
    [
        (SIZES, "The crawlers run on twelve Standard_D4s_v5 in West Europe."),
        (SIZES, "We replaced every Dsv3 machine by Dsv6 in the autumn wave."),
        (LANGUAGE, "Our function apps template has linuxFxVersion PYTHON|3.12."),
        (LANGUAGE, "All function apps were upgraded from Python 3.9 to 3.13 in March."),
        (LANGUAGE, "The laptops have Python 3.9 through pyenv."),
        (CACHE, "We run our own Redis 7 on two Linux VMs."),
        (CACHE, "New tenants get Azure Managed Redis, Balanced B3."),
        (LIMIT, "The rules of the switch are numbered from 200 upwards."),
    ],
)
def test_another_size_or_version_what_is_gone_and_what_is_our_own_are_not_told(announced: Change, note: str) -> None:
    assert find(announced, note) is None


def test_the_passage_of_a_long_note_is_found() -> None:
    body = (
        "Owner is Dana. Deploy on Mondays. " * 5
        + "Sessions live in Azure Cache for Redis, Premium P2. "
        + "Call us. " * 9
    )
    found = find(CACHE, body, "Booking site")
    assert found is not None
    assert "Azure Cache for Redis" in body[found.start : found.end]
    assert found.end - found.start < 200


def test_a_change_says_from_when_and_what_instead() -> None:
    assert (SIZES.kind, SIZES.due, SIZES.series) == ("retires", date(2027, 5, 31), {"dsv3"})
    assert "dsv6" in SIZES.successors
    assert LIMIT.former == {"200"}
    assert change("Retirement: Azure Foo", "It ends soon.", due=date(2027, 3, 1)).due == date(2027, 3, 1)


def test_what_only_offers_something_changes_nothing() -> None:
    assert read_change(Announcement("1", "Public Preview: Azure Foo in Norway", "Use it from today.")) is None


@pytest.mark.parametrize(
    "text", ["", " \n ", "a" * 50_000, "TLS " * 10_000, "(" * 5_000, "1.0/" * 5_000, "A1" * 20_000]
)
def test_any_text_can_be_read(text: str) -> None:
    read_change(Announcement("1", text or "x", text))
    find(SIZES, text, text[:200])
