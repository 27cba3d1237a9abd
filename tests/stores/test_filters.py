"""What every engine takes each condition to mean."""

from __future__ import annotations

from datetime import timedelta

import pytest

from refdesk.model import And, DateRange, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps, State
from refdesk.protocols import Store
from tests.stores.samples import NOW, asking, day, embed, find_ids, make_document, near, on, passage, put

DOCUMENTS = [
    make_document(
        "a", "apple", facets={"tags": ("VPN", "ＭＦＡ")}, date_ranges={"changed": on(0), "ready": on(10, 20)}
    ),
    make_document("b", "apple", facets={"tags": ("vpn",)}, date_ranges={"ready": (DateRange(day(5), day(15)),)}),
    make_document("c", "apple", facets={"tags": ("Straße",), "ring": ("GA",)}, state=State.SUPERSEDED),
    make_document("d", "apple"),
]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (HasAll("tags", ("vpn",)), "ab"),
        (HasAll("tags", (" VPN ", "mfa")), "a"),
        (HasAll("tags", ("STRASSE",)), "c"),
        (HasAll("tags", ("vp",)), ""),
        (HasAll("tags", ()), "abcd"),
        (HasAll("ring", ("vpn",)), ""),
        (HasAll("nobody", ("x",)), ""),
        (HasAny("tags", ("mfa", "strasse")), "ac"),
        (HasAny("tags", ("nothing", "vpn")), "ab"),
        (HasAny("tags", ()), ""),
        (HasId(("b", "d", "nobody", "\ud800")), "bd"),
        (HasId(()), ""),
        (And((HasId(("b", "c")), InState((State.CURRENT,)))), "b"),
        (Not(HasId(("a", "b"))), "cd"),
        (Overlaps(("changed",)), "a"),
        (Overlaps(("changed", "ready")), "ab"),
        (Overlaps(("nobody",)), ""),
        (Overlaps(()), ""),
        (Overlaps(("ready",), since=day(16)), "a"),
        (Overlaps(("ready",), since=day(15)), "ab"),
        (Overlaps(("ready",), until=day(5)), "b"),
        (Overlaps(("ready",), until=day(5) - timedelta(microseconds=1)), ""),
        (Overlaps(("ready",), since=day(11), until=day(19)), "b"),
        (Overlaps(("ready",), since=day(16), until=day(19)), ""),
        (Overlaps(("changed", "ready"), since=day(1), until=day(4)), ""),
        (Overlaps(("ready",), since=day(7), until=day(8)), "b"),
        (Overlaps(("changed",), since=NOW, until=NOW), "a"),
        (InState((State.CURRENT,)), "abd"),
        (InState((State.SUPERSEDED,)), "c"),
        (InState((State.CURRENT, State.SUPERSEDED)), "abcd"),
        (InState((State.WITHDRAWN,)), ""),
        (InState(()), ""),
        (Not(HasAll("tags", ("vpn",))), "cd"),
        (Not(Overlaps(("ready",), since=day(16))), "bcd"),
        (And(()), "abcd"),
        (Or(()), ""),
        (And((HasAll("tags", ("vpn",)), Not(HasAny("tags", ("mfa",))))), "b"),
        (Or((InState((State.SUPERSEDED,)), HasAll("tags", ("mfa",)))), "ac"),
        (Not(Or((And(()), Or(())))), ""),
    ],
)
async def test_a_condition_holds_for(store: Store, condition: Filter, ids: str) -> None:
    gone = make_document(
        "gone", "apple", facets={"tags": ("vpn",)}, date_ranges={"ready": on(10)}, state=State.WITHDRAWN
    )
    await put(store, *DOCUMENTS, gone)
    assert await find_ids(store, asking(where=condition)) == list(ids)
    found = await store.find(asking("apple", where=condition))
    assert (sorted(each.id for each in found.candidates), found.total) == (list(ids), len(ids))


async def test_a_filter_eats_no_slots_of_either_list(store: Store) -> None:
    documents = [make_document(f"x{n}", "apple apple") for n in range(9)]
    wanted = [make_document(f"w{n}", "apple and more words", facets={"tags": ("yes",)}) for n in range(2)]
    await put(store, *documents, *wanted)
    for document in documents:
        await embed(store, document, passage([1, 0, 0, 0]))
    for document in wanted:
        await embed(store, document, passage([0, 1, 0, 0]))
    where = HasAll("tags", ("yes",))
    assert await find_ids(store, asking("apple", where=where, depth=2)) == ["w0", "w1"]
    assert await find_ids(store, asking(vector=near([1, 0, 0, 0]), where=where, depth=2)) == ["w0", "w1"]


async def test_a_deeply_nested_condition_is_followed_to_its_end(store: Store) -> None:
    await put(store, *DOCUMENTS)
    condition: Filter = HasAll("tags", ("mfa",))
    for _ in range(50):
        condition = Not(And((Or((condition,)),)))
    assert await find_ids(store, asking(where=condition)) == ["a"]
