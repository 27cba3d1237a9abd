"""Paging, order, counts and facets of the feed, without a process around it."""

from __future__ import annotations

from typing import cast
from urllib.parse import parse_qsl, urlsplit

import pytest

from sample_world.azure_updates.feed import Feed
from sample_world.azure_updates.queries import BadQueryError, parse_query
from sample_world.azure_updates.world import Record


def make(id: str, **fields: object) -> Record:
    return {"id": id, "title": f"Title {id}", "modified": "2026-05-01T00:00:00.0000000Z", **fields}


def ask(feed: Feed, **options: str) -> Record:
    return feed.list_page(parse_query([(f"${name}" if name != "search" else name, v) for name, v in options.items()]))


def get_ids(page: Record) -> list[object]:
    return [record["id"] for record in cast("list[Record]", page["value"])]


def follow(feed: Feed, page: Record) -> Record:
    return feed.list_page(parse_query(parse_qsl(urlsplit(str(page["@odata.nextLink"])).query)))


def number(count: int) -> list[Record]:
    return [make(str(100_000 + index)) for index in range(count)]


def test_a_page_has_a_hundred_records_unless_more_are_asked() -> None:
    feed = Feed(number(1_500))
    assert len(get_ids(ask(feed))) == 100
    assert len(get_ids(ask(feed, top="1000"))) == 1_000
    assert len(get_ids(ask(feed, top="1400"))) == 1_000


def test_skip_pages_cover_every_record_once() -> None:
    feed = Feed(number(250))
    pages = [get_ids(ask(feed, orderby="id asc", skip=str(skip))) for skip in (0, 100, 200, 300)]
    assert [len(page) for page in pages] == [100, 100, 50, 0]
    assert [id for page in pages for id in page] == [str(100_000 + index) for index in range(250)]


def test_items_with_numbers_for_ids_are_ordered_by_size_and_served_at_their_own_path() -> None:
    feed = Feed([{**make(""), "id": number} for number in (1_000, 20, 300)], "M365")
    page = ask(feed, orderby="id asc", filter="modified ge 2026-01-01T00:00:00Z")
    assert get_ids(page) == [20, 300, 1_000]
    assert str(page["@odata.context"]).endswith("$metadata#M365")
    found = feed.get("300")
    assert found is not None
    assert found["id"] == 300
    many = Feed([{**make(""), "id": number} for number in range(101)], "M365")
    assert "/m365?" in str(ask(many)["@odata.nextLink"])


def test_the_next_link_leads_over_every_record_and_names_another_host() -> None:
    feed = Feed(number(250))
    page = ask(feed, orderby="id desc", filter="id ne '100100'", count="true")
    ids = get_ids(page)
    while "@odata.nextLink" in page:
        assert urlsplit(str(page["@odata.nextLink"])).hostname == "relcomms-sample.edge.example"
        page = follow(feed, page)
        assert page["@odata.count"] == 249
        ids += get_ids(page)
    assert ids == [str(100_000 + index) for index in range(249, -1, -1) if index != 100]


def test_an_answer_within_top_has_no_next_link() -> None:
    assert "@odata.nextLink" not in ask(Feed(number(250)), top="150")


def test_a_top_above_the_largest_page_goes_on_with_the_rest() -> None:
    feed = Feed(number(1_200))
    page = follow(feed, ask(feed, orderby="id asc", top="1050"))
    assert get_ids(page) == [str(100_000 + index) for index in range(1_000, 1_050)]
    assert "@odata.nextLink" not in page


def test_a_page_that_ends_with_the_last_record_has_no_next_link() -> None:
    assert "@odata.nextLink" not in ask(Feed(number(100)))
    assert "@odata.nextLink" in ask(Feed(number(101)))


def test_the_count_is_of_all_that_match_and_only_given_on_request() -> None:
    feed = Feed(number(250))
    assert "@odata.count" not in ask(feed)
    assert ask(feed, count="true", top="0")["@odata.count"] == 250
    assert ask(feed, count="true", filter="id lt '100007'")["@odata.count"] == 7


def test_without_an_order_the_newest_modified_comes_first_and_ties_keep_their_order() -> None:
    feed = Feed(
        [
            make("old", modified="2026-05-01T00:00:00.0000001Z"),
            make("tie a", modified="2026-05-01T00:00:00.0000002Z"),
            make("new", modified="2026-05-01T00:00:00.0000003Z"),
            make("tie b", modified="2026-05-01T00:00:00.0000002Z"),
        ]
    )
    assert get_ids(ask(feed)) == ["new", "tie a", "tie b", "old"]


def test_several_sort_keys_apply_in_turn_and_ids_sort_as_text() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    feed = Feed([make("9", modified=early), make("10", modified=late), make("slug", modified=late)])
    assert get_ids(ask(feed, orderby="modified desc,id asc")) == ["10", "slug", "9"]
    assert get_ids(ask(feed, orderby="modified,id desc")) == ["9", "slug", "10"]
    assert get_ids(ask(feed, orderby="id")) == ["10", "9", "slug"]


def test_select_keeps_the_named_fields_only() -> None:
    feed = Feed([make("1", tags=["Security"])])
    assert ask(feed, select="id, tags")["value"] == [{"id": "1", "tags": ["Security"]}]


def test_search_wants_every_word_in_the_title() -> None:
    feed = Feed([make("1", title="Node pools drain"), make("2", title="Drain a load balancer"), make("3", title=None)])
    assert get_ids(ask(feed, search="drain NODE")) == ["1"]


def test_options_work_with_and_without_the_dollar_sign() -> None:
    feed = Feed(number(20))
    plain = feed.list_page(parse_query([("top", "3"), ("skip", "2"), ("orderby", "id"), ("count", "true")]))
    assert plain == ask(feed, top="3", skip="2", orderby="id", count="true")


def test_facets_count_each_record_once_for_each_value() -> None:
    feed = Feed(
        [
            make("1", tags=["A", "A"], products=["P"], productCategories=["C"], status="Launched"),
            make("2", tags=["A", "B"], products=["P", "Q"], productCategories=["C", "D"], status=None),
            make("3", tags=None, products=[], productCategories=[], status="Launched"),
        ]
    )
    facets = feed.list_page(parse_query([("includeFacets", "true"), ("$top", "1")]))["facets"]
    assert facets == [
        {
            "name": "ProductCategory",
            "values": [
                {
                    "value": "C",
                    "count": 2,
                    "subFacets": [
                        {"name": "Product", "values": [{"value": "P", "count": 2}, {"value": "Q", "count": 1}]}
                    ],
                },
                {
                    "value": "D",
                    "count": 1,
                    "subFacets": [
                        {"name": "Product", "values": [{"value": "P", "count": 1}, {"value": "Q", "count": 1}]}
                    ],
                },
            ],
        },
        {"name": "Tags", "values": [{"value": "A", "count": 2}, {"value": "B", "count": 1}]},
        {"name": "Product", "values": [{"value": "P", "count": 2}, {"value": "Q", "count": 1}]},
        {"name": "Status", "values": [{"value": "Launched", "count": 2}]},
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("$top", "-1"),
        ("$top", "many"),
        ("$top", "9" * 30),
        ("$skip", "1.5"),
        ("$skip", ""),
        ("$count", "yes"),
        ("includeFacets", "1"),
        ("$orderby", "colour"),
        ("$orderby", "id upwards"),
        ("$orderby", "id,"),
        ("$select", "id,colour"),
        ("$filter", "id eq"),
        ("$apply", "groupby((id))"),
    ],
)
def test_a_wrong_option_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadQueryError):
        parse_query([(name, value)])


@pytest.mark.parametrize("names", [("$top", "top"), ("top", "$top"), ("$top", "$top"), ("TOP", "top")])
def test_an_option_said_twice_is_refused(names: tuple[str, str]) -> None:
    with pytest.raises(BadQueryError, match="more than once"):
        parse_query([(name, "1") for name in names])


def test_an_unknown_option_without_the_dollar_sign_is_ignored() -> None:
    assert parse_query([("utm_source", "x")]).top is None


def test_publishing_replaces_the_record_of_the_same_id_and_withdrawing_removes_it() -> None:
    feed = Feed([make("1"), make("2")])
    feed.publish([make("2", title="Anew"), make("3")])
    assert (feed.get("2") or {})["title"] == "Anew"
    feed.withdraw(["1", "unknown"])
    assert sorted(map(str, get_ids(ask(feed)))) == ["2", "3"]
    assert feed.get("1") is None
