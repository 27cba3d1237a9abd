"""What every engine finds by a part of the title."""

from __future__ import annotations

from refdesk.model import HasAll, State
from refdesk.protocols import Store
from tests.stores.samples import asking, day, embed, find_ids, get_ids, make_document, near, passage, put


async def test_the_newest_with_the_words_in_their_title_join_the_text_matches(store: Store) -> None:
    await put(
        store,
        make_document("text", "vpn"),
        make_document("both", "vpn vpn", title="My VPN guide"),
        make_document("older", title="Old vpnx notes"),
        make_document("newer", title="New ｖｐｎx notes", modified_at=day(1)),
        make_document("else", title="Other"),
    )
    found = await store.find(asking("vpn", title_contains="VPN", depth=2))
    assert [(each.id, each.title_contains) for each in found.candidates] == [
        ("both", True),
        ("text", False),
        ("newer", True),
    ]
    assert found.total == 2


async def test_titles_join_only_where_the_filter_lets_them(store: Store) -> None:
    await put(store, make_document("a", title="vpnx"), make_document("b", title="vpnx", facets={"tags": ("t",)}))
    assert await find_ids(store, asking("nothing", title_contains="vpn", where=HasAll("tags", ("t",)))) == ["b"]


async def test_no_title_is_marked_when_none_was_asked_for(store: Store) -> None:
    await put(store, make_document("a", "apple", title="apple"))
    (found,) = (await store.find(asking("apple"))).candidates
    assert not found.title_contains


async def test_titles_are_searched_in_nothing_withdrawn_and_at_most_as_many_as_asked(store: Store) -> None:
    titled = [make_document(f"t{number}", title="VPN", modified_at=day(number)) for number in range(4)]
    await put(store, *titled, make_document("gone", title="VPN", modified_at=day(9), state=State.WITHDRAWN))
    assert await find_ids(store, asking("nothing", title_contains="vpn", depth=2)) == ["t2", "t3"]


async def test_titles_and_the_nearest_join_in_one_list_nearest_first(store: Store) -> None:
    text, titled, close, both = (
        make_document("text", "apple"),
        make_document("a-titled", title="apples", body="x"),
        make_document("close", "pear"),
        make_document("both", title="Pineapple"),
    )
    await put(store, text, titled, close, both)
    await embed(store, close, passage([1, 0, 0, 0]))
    await embed(store, both, passage([1, 1, 0, 0]))
    request = asking("apple", vector=near([1, 0, 0, 0]), title_contains="NEAPPLE")
    found = await store.find(request)
    assert get_ids(found)[-2:] == ["close", "both"]
    alone = await store.find(asking("plum", vector=near([1, 0, 0, 0]), title_contains="apple", depth=1))
    assert [(each.id, each.cosine is None) for each in alone.candidates] == [("close", False), ("a-titled", True)]


async def test_a_title_alone_leaves_the_browsed_list_as_it_is(store: Store) -> None:
    await put(store, make_document("a", title="apple"), make_document("b", title="pear"))
    found = await store.find(asking(title_contains="apple"))
    assert [(each.id, each.title_contains) for each in found.candidates] == [("a", True), ("b", False)]
    assert found.total == 2
