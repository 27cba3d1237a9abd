from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.tokens import count_tokens
from refdesk.core.context import Context
from refdesk.core.search.providers import ProviderAnswer, Question
from refdesk.server.answers import to_text
from refdesk.toolsets.azure_updates.descriptor import TOOLSET
from refdesk.toolsets.azure_updates.provider import FIND
from refdesk.toolsets.azure_updates.results import DESCRIPTION_CHARACTERS
from refdesk.toolsets.azure_updates.settings import AzureUpdatesSettings
from tests.core.fakes import ScriptedEmbedder
from tests.toolsets.azure_updates.samples import Desk, ask, get_ids, make_context, make_record, make_semantic


async def test_a_keyword_search_finds_something(library: Desk) -> None:
    answer = await library.ask(query="retirement of virtual machines", limit=10)
    assert answer["total"] > 10
    assert len(answer["results"]) == 10
    assert all(result["relevance"] < 0 for result in answer["results"])


async def test_an_empty_call_browses_the_newest_first(library: Desk) -> None:
    answer = await library.ask()
    assert (answer["limit"], answer["offset"], answer["hasMore"], answer["total"]) == (50, 0, True, 306)
    modified = [result["modified"] for result in answer["results"]]
    assert modified == sorted(modified, reverse=True)
    assert not any("relevance" in result for result in answer["results"])


async def test_a_blank_query_and_a_blank_id_are_as_good_as_none(library: Desk) -> None:
    assert await library.ask(query="  ", id=" ") == await library.ask()


async def test_pages_join_and_the_last_one_says_so(library: Desk) -> None:
    pages = [await library.ask(limit=100, offset=offset) for offset in (0, 100, 200, 300)]
    ids = [id for page in pages for id in get_ids(page)]
    assert len(ids) == len(set(ids)) == 306
    assert [page["hasMore"] for page in pages] == [True, True, True, False]


@pytest.mark.parametrize(("limit", "offset", "has_more"), [(100, 206, False), (100, 205, True), (1, 305, False)])
async def test_has_more_compares_offset_and_limit_with_total(
    library: Desk, limit: int, offset: int, has_more: bool
) -> None:
    assert (await library.ask(limit=limit, offset=offset))["hasMore"] is has_more


async def test_an_offset_beyond_everything_gives_an_empty_page(library: Desk) -> None:
    answer = await library.ask(query="azure", offset=10**30)
    assert (answer["results"], answer["hasMore"], answer["offset"]) == ([], False, 10**30)
    assert answer["total"] > 0


async def test_an_id_gives_exactly_that_update_and_everything_else_is_ignored(library: Desk) -> None:
    slug = "retirement-notice-recovery-services-agent-for-system-center-2012"
    ignored = {"query": "nothing like it", "filters": {"tags": ["Features"]}, "offset": 7, "includeDescription": False}
    answer = await library.ask(id=slug, limit=1, **ignored)
    assert get_ids(answer) == [slug]
    assert (answer["total"], answer["offset"], answer["hasMore"]) == (1, 0, False)
    assert answer["results"][0]["description"]


async def test_an_unknown_or_withdrawn_id_gives_no_result(library: Desk) -> None:
    async with library.knowledge_base.store.transaction() as transaction:
        assert await transaction.get_documents(library.syncer.collection, ["nobody"]) == [None]
    assert (await library.ask(id="nobody"))["results"] == []
    assert (await library.ask(id="nobody"))["total"] == 0


async def test_a_result_has_the_fields_of_the_contract() -> None:
    context = await make_context([make_record("a/b", status=None, description=None)])
    [result] = (await ask(context))["results"]
    assert result == {
        "id": "a/b",
        "title": "Generally Available: Thing a/b",
        "description": None,
        "status": None,
        "tags": ["Features"],
        "productCategories": ["Compute"],
        "products": ["Virtual Machines"],
        "availabilities": [{"ring": "General Availability", "date": "2026-03-01"}],
        "created": "2026-02-27T15:00:00.1234567Z",
        "modified": "2026-02-28T15:00:00.1234567Z",
        "url": "https://azure.microsoft.com/en-us/updates/?id=a%2Fb",
    }


async def test_an_availability_without_a_month_has_a_null_date() -> None:
    context = await make_context([make_record(availabilities=[{"ring": "Preview", "year": None, "month": None}])])
    assert (await ask(context))["results"][0]["availabilities"] == [{"ring": "Preview", "date": None}]


async def test_descriptions_can_be_left_out(library: Desk) -> None:
    answer = await library.ask(includeDescription=False, limit=3)
    assert not any("description" in result for result in answer["results"])


async def test_a_title_weighs_more_than_a_description() -> None:
    filler = "<p>Some text about something else that is long enough.</p>"
    context = await make_context(
        [
            make_record("1", title="Other thing", description="<p>Quokka</p>" + filler),
            make_record("2", title="Quokka thing", description="<p>Other</p>" + filler),
        ]
    )
    assert get_ids(await ask(context, query="quokka")) == ["2", "1"]


async def test_updates_with_all_the_words_come_before_those_with_some() -> None:
    common = [make_record(f"c{number}", title="Gnu", description="gnu") for number in range(20)]
    context = await make_context(
        [
            *common,
            make_record("1", title="Zebra zebra zebra", description="zebra " * 30),
            make_record("2", title="Plain", description="<p>A zebra and a gnu</p>" + "word " * 300),
        ]
    )
    answer = await ask(context, query="zebra gnu")
    assert get_ids(answer)[:2] == ["2", "1"]
    assert answer["results"][0]["relevance"] > answer["results"][1]["relevance"]


async def test_equally_relevant_updates_are_ordered_by_id() -> None:
    context = await make_context([make_record(id, title="Same", modified=f"2026-02-0{id}T00:00:00Z") for id in "312"])
    assert get_ids(await ask(context, query="same")) == ["1", "2", "3"]


async def test_updates_modified_at_the_same_instant_are_ordered_by_id() -> None:
    context = await make_context([make_record(id) for id in "312"])
    assert get_ids(await ask(context)) == ["1", "2", "3"]


async def test_a_query_of_stop_words_alone_still_searches() -> None:
    context = await make_context([make_record("1", title="What is this"), make_record("2", description=None)])
    assert get_ids(await ask(context, query="what is")) == ["1"]


@pytest.mark.parametrize(
    "query", ["???", '""', '"', "\u200b", "AND OR NOT", "title:x", "a*", "(" * 500, "🦘", "\ud7ff"]
)
async def test_odd_queries_are_answered(library: Desk, query: str) -> None:
    answer = await library.ask(query=query, facets=["tags"])
    assert answer["total"] >= len(answer["results"])
    assert "tags" in answer["facets"]


@pytest.mark.parametrize(
    "filters",
    [
        {"tags": ["Retirements"]},
        {"tags": ["Features", "Security"]},
        {"productCategories": ["AI + machine learning"]},
        {"products": ["Virtual Machines"]},
        {"tags": ["features"], "productCategories": ["COMPUTE"]},
    ],
)
async def test_lists_are_and_between_and_inside_without_regard_to_case(
    library: Desk, filters: dict[str, list[str]]
) -> None:
    answer = await library.ask(filters=filters, limit=100)
    assert answer["total"] > 0
    for result in answer["results"]:
        for name, values in filters.items():
            assert {value.casefold() for value in values} <= {value.casefold() for value in result[name]}
    assert "unknownFilterValues" not in answer


async def test_status_and_ring_filter(library: Desk) -> None:
    answer = await library.ask(filters={"status": "in preview", "availabilityRing": "Preview"}, limit=100)
    assert answer["total"] > 0
    assert {result["status"] for result in answer["results"]} == {"In preview"}
    assert all("Preview" in [each["ring"] for each in result["availabilities"]] for result in answer["results"])


async def test_the_ring_effective_is_found_like_the_others(library: Desk) -> None:
    answer = await library.ask(filters={"availabilityRing": "Effective"}, limit=100)
    assert answer["total"] > 2
    assert all("Effective" in [each["ring"] for each in result["availabilities"]] for result in answer["results"])


async def test_a_query_and_filters_work_together(library: Desk) -> None:
    wide = await library.ask(query="virtual machines", limit=100)
    narrow = await library.ask(query="virtual machines", filters={"tags": ["Retirements"]}, limit=100)
    assert 0 < narrow["total"] < wide["total"]
    assert set(get_ids(narrow)) <= set(get_ids(wide))


DATED = [
    make_record("mod", modified="2026-03-31T23:59:59.9999999Z", availabilities=[]),
    make_record(
        "avail",
        modified="2020-01-01T00:00:00Z",
        availabilities=[
            {"ring": "Preview", "year": 2026, "month": "January"},
            {"ring": "Retirement", "year": 2026, "month": "June"},
        ],
    ),
    make_record("none", modified="2019-01-01T00:00:00Z", availabilities=[{"ring": "Preview"}]),
]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"dateFrom": "2026-03-31", "dateTo": "2026-03-31"}, ["mod"]),
        ({"dateFrom": "2026-04-01", "dateTo": "2026-04-30"}, []),
        ({"dateTo": "2026-03-30", "dateFrom": "2026-03-01"}, []),
        ({"dateFrom": "2026-06-30", "dateTo": "2026-07-31"}, ["avail"]),
        ({"dateFrom": "2026-01-31", "dateTo": "2026-02-01"}, ["avail"]),
        ({"dateFrom": "2026-02-01", "dateTo": "2026-03-30"}, []),
        ({"dateFrom": "2026-07-01"}, []),
        ({"dateFrom": "2026-06-01"}, ["avail"]),
        ({"dateTo": "2019-01-01"}, ["none"]),
        ({"dateTo": "2020-01-01"}, ["avail", "none"]),
    ],
)
async def test_both_days_are_included_and_hold_for_one_and_the_same_date(
    filters: dict[str, str], ids: list[str]
) -> None:
    assert get_ids(await ask(await make_context(DATED), filters=filters)) == ids


async def test_an_unknown_value_is_named_with_the_nearest_known_ones(library: Desk) -> None:
    filters = {"products": ["Azure Virtual Machines"], "tags": ["Retirement", "Features"], "status": "Launchd"}
    answer = await library.ask(filters=filters)
    assert (answer["results"], answer["total"], answer["hasMore"]) == ([], 0, False)
    unknown = {each["value"]: each for each in answer["unknownFilterValues"]}
    assert set(unknown) == {"Azure Virtual Machines", "Retirement", "Launchd"}
    assert "Virtual Machines" in unknown["Azure Virtual Machines"]["didYouMean"]
    assert unknown["Retirement"]["didYouMean"][0] == "Retirements"
    assert unknown["Launchd"] == {"filter": "status", "value": "Launchd", "didYouMean": ["Launched"]}


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("AKS", "Azure Kubernetes Service (AKS)"),
        ("azure virtual machines", "Virtual Machines"),
        ("Virtual Machnies", "Virtual Machines"),
    ],
)
async def test_the_nearest_value_comes_first(library: Desk, asked: str, nearest: str) -> None:
    [unknown] = (await library.ask(filters={"products": [asked]}))["unknownFilterValues"]
    assert unknown["didYouMean"][0] == nearest


async def test_known_values_without_a_match_are_not_called_unknown(library: Desk) -> None:
    answer = await library.ask(query="zzzzqqq", filters={"tags": ["features"]})
    assert answer["total"] == 0
    assert "unknownFilterValues" not in answer


@pytest.mark.parametrize(
    ("sort_by", "ids"),
    [
        ("modified:desc", ["b", "a", "c"]),
        ("modified:asc", ["c", "a", "b"]),
        ("created:desc", ["c", "b", "a"]),
        ("created:asc", ["a", "b", "c"]),
        ("title:asc", ["c", "b", "a"]),
        ("title:desc", ["a", "b", "c"]),
        ("relevance", ["a", "c", "b"]),
    ],
)
async def test_results_are_sorted_as_asked(sort_by: str, ids: list[str]) -> None:
    records = [
        make_record("a", title="thing thing thing", created="2026-01-01T00:00:00Z", modified="2026-02-02T00:00:00Z"),
        make_record("b", title="Some other new thing", created="2026-01-02T00:00:00Z", modified="2026-02-03T00:00:00Z"),
        make_record("c", title="a thing", created="2026-01-03T00:00:00Z", modified="2026-02-01T00:00:00Z"),
    ]
    assert get_ids(await ask(await make_context(records), query="thing", sortBy=sort_by)) == ids


async def test_sorting_by_relevance_without_a_query_is_newest_first(library: Desk) -> None:
    assert get_ids(await library.ask(sortBy="relevance")) == get_ids(await library.ask(sortBy="modified:desc"))


async def test_facets_count_everything_that_matches(library: Desk) -> None:
    answer = await library.ask(filters={"tags": ["Retirements"]}, facets=["tags", "status", "tags"], limit=1)
    counts = {each["value"]: each["count"] for each in answer["facets"]["tags"]}
    assert set(answer["facets"]) == {"tags", "status"}
    assert counts["Retirements"] == answer["total"] == max(counts.values())


async def test_a_desk_that_never_synced_says_so(desk: Desk) -> None:
    assert (await desk.ask(query="anything"))["notes"][0].startswith("No sync has succeeded yet")


async def test_old_data_is_said_to_be_old(synced: Desk) -> None:
    synced.clock.advance(timedelta(hours=48))
    assert "notes" not in await synced.ask()
    synced.clock.advance(timedelta(hours=24))
    assert (await synced.ask())["notes"] == ["The last successful sync was 72 hours ago: newer updates are missing."]


@pytest.mark.parametrize(
    ("hours", "age", "told"),
    [
        (0.01, timedelta(seconds=36), None),
        (0.01, timedelta(minutes=2), "2 minutes"),
        (1, timedelta(minutes=61), "1 hour"),
        (6, timedelta(hours=6), None),
        (6, timedelta(hours=7), "7 hours"),
        (500, timedelta(hours=48), None),
        (500, timedelta(hours=49), "49 hours"),
    ],
)
async def test_data_is_old_where_the_settings_say_so_and_after_two_days(
    synced: Desk, hours: float, age: timedelta, told: str | None
) -> None:
    settings = AzureUpdatesSettings.model_validate({"azure_updates_stale_hours": hours})
    assert TOOLSET.choose_options is not None
    base = replace(synced.knowledge_base, options={TOOLSET.name: TOOLSET.choose_options(settings)})
    synced.clock.advance(age)
    notes = (await ask(replace(synced.context, knowledge_base=base))).get("notes", [])
    assert notes == ([f"The last successful sync was {told} ago: newer updates are missing."] if told else [])


async def test_an_answer_has_a_ceiling_and_an_update_fetched_by_id_has_none() -> None:
    long = "<p>word word word word</p>" * 6000
    context = await make_context([*(make_record(f"{n}", description=long) for n in range(9)), make_record("x")])
    answer = await ask(context)
    assert sum(len(result["description"]) for result in answer["results"]) <= DESCRIPTION_CHARACTERS + 10
    assert answer["results"][-1]["description"] == "It is here."
    assert any("fetch an update by id" in note for note in answer["notes"])
    [whole] = (await ask(context, id="1"))["results"]
    assert len(whole["description"]) > 100_000


async def get_notes(context: Context, **arguments: object) -> str:
    answer: dict[str, Any] = await ask(context, query="vault", semantic=True, **arguments)
    assert get_ids(answer)[0] == "1"
    return " ".join(answer["notes"])


async def test_semantic_search_answers_by_keywords_while_the_model_loads() -> None:
    assert "still loading" in await get_notes(await make_semantic(ScriptedEmbedder(is_ready=False)))


async def test_semantic_search_answers_by_keywords_when_the_model_fails() -> None:
    assert "unavailable" in await get_notes(await make_semantic(ScriptedEmbedder(is_down=True)))


async def test_semantic_search_in_another_order_says_that_it_is_none() -> None:
    context = await make_semantic(ScriptedEmbedder())
    assert "another sortBy" in await get_notes(context, sortBy="title:asc")


async def test_semantic_search_with_a_model_keeps_bm25_as_relevance() -> None:
    answer = await ask(await make_semantic(ScriptedEmbedder(), embedded=True), query="vault")
    assert answer["results"][0]["relevance"] < 0
    assert not any("keyword" in note for note in answer["notes"])


async def test_semantic_search_is_on_unless_switched_off_and_only_where_there_are_vectors() -> None:
    embedded = await make_semantic(ScriptedEmbedder(), embedded=True)
    assert get_ids(await ask(embedded, query="vault")) == ["1", "2"]
    assert get_ids(await ask(embedded, query="vault", semantic=False)) == ["1"]
    bare = await ask(await make_semantic(ScriptedEmbedder()), query="vault")
    assert get_ids(bare) == ["1"]
    assert any("no embeddings yet" in note for note in bare["notes"])


async def test_a_product_is_found_by_its_name_and_by_its_initials() -> None:
    records = [
        make_record("1", title="Premium v2 tier", products=["API Management"]),
        make_record("2", title="Flex consumption", products=["Azure Functions"]),
    ]
    context = await make_context(records)
    assert get_ids(await ask(context, query="APIM")) == ["1"]
    assert get_ids(await ask(context, query="functions")) == ["2"]
    assert "APIM" not in (await ask(context, query="APIM"))["results"][0]["description"]


async def test_a_concise_survey_costs_far_less_and_names_the_same(library: Desk) -> None:
    filters = {"tags": ["Retirements"]}
    whole = await library.ask(filters=filters, limit=100)
    concise = await library.ask(filters=filters, limit=100, detail="concise")
    assert get_ids(concise) == get_ids(whole)
    assert concise["total"] == whole["total"]
    kept = {"id", "title", "status", "tags", "products", "availabilities", "modified"}
    assert all(set(result) - {"titleDate", "datesDiffer"} == kept for result in concise["results"])
    days = [result["modified"][:10] for result in whole["results"]]
    assert [result["modified"] for result in concise["results"]] == days
    months = [each["date"] for result in concise["results"] for each in result["availabilities"]]
    dates = [each["date"] for result in whole["results"] for each in result["availabilities"]]
    assert months == [date and date.removesuffix("-01") for date in dates]
    assert count_tokens(to_text(concise)) * 2.5 < count_tokens(to_text(whole))
    bare = await library.ask(filters=filters, limit=100, includeDescription=False)
    assert count_tokens(to_text(concise)) * 1.5 < count_tokens(to_text(bare))
    assert await library.ask(filters=filters, limit=100, detail="full") == whole


SPREAD = [
    make_record("1", title="Kubernetes retires a policy", modified="2026-08-10T00:00:00Z", tags=["Retirements"]),
    make_record("2", title="Sidecar for metrics retires", modified="2026-08-20T10:00:00Z", tags=["Retirements"]),
    make_record("3", title="Kubernetes backup", modified="2026-06-30T23:00:00Z", status="Launched"),
]


async def test_an_answer_says_how_many_more_the_filters_let_through_than_the_query_finds() -> None:
    context = await make_context(SPREAD)
    found = await ask(context, query="kubernetes", filters={"tags": ["Retirements"]}, semantic=False)
    assert (get_ids(found), found["total"], found["alsoMatchesFilter"]) == (["1"], 1, 1)
    assert "alsoMatchesFilter" not in await ask(context, query="retires", filters={"tags": ["Retirements"]})
    assert "alsoMatchesFilter" not in await ask(context, query="kubernetes")
    assert "alsoMatchesFilter" not in await ask(context, filters={"tags": ["Retirements"]})


async def test_an_empty_answer_says_up_to_when_there_is_anything() -> None:
    context = await make_context(SPREAD)
    empty = await ask(context, filters={"dateFrom": "2026-10", "dateTo": "2026-10"})
    assert (empty["total"], empty["newestUpdate"]) == (0, "2026-08-20T10:00:00Z")
    assert "newestUpdate" not in await ask(context, query="kubernetes")
    assert "newestUpdate" not in await ask(await make_context([]), query="kubernetes")


async def test_words_that_hold_for_no_date_that_is_asked_for_are_said_to_be_found_without_it() -> None:
    answer = await ask(await make_context(SPREAD), query="What changed in Kubernetes in October 2026?")
    assert get_ids(answer)
    assert answer["newestUpdate"].startswith("2026-08-20")
    assert any("dateFrom 2026-10-01" in note for note in answer["notes"])


async def test_a_month_is_all_of_its_days() -> None:
    context = await make_context(SPREAD)
    assert get_ids(await ask(context, filters={"dateFrom": "2026-06", "dateTo": "2026-06"})) == ["3"]
    assert get_ids(await ask(context, filters={"dateFrom": "2026-08"})) == ["2", "1"]


async def test_when_an_update_was_modified_is_a_filter_of_its_own() -> None:
    dated = make_record(
        "4",
        title="Announced early",
        modified="2026-05-01T00:00:00Z",
        availabilities=[{"ring": "Retirement", "year": 2026, "month": "August"}],
    )
    context = await make_context([*SPREAD, dated])
    assert get_ids(await ask(context, filters={"dateFrom": "2026-08", "dateTo": "2026-08"})) == ["2", "1", "4"]
    modified = {"modifiedFrom": "2026-08", "modifiedTo": "2026-08-15"}
    assert get_ids(await ask(context, filters=modified)) == ["1"]
    both = {"modifiedTo": "2026-05", "dateFrom": "2026-08"}
    assert get_ids(await ask(context, filters=both)) == ["4"]


async def test_an_unknown_id_is_told_with_the_nearest_known_ones(library: Desk) -> None:
    answer = await library.ask(id="retirement-notice-recovery-services-agent-for-system-center")
    assert (answer["results"], answer["total"]) == ([], 0)
    [unknown] = answer["unknownFilterValues"]
    assert unknown["filter"] == "id"
    assert unknown["didYouMean"][0] == "retirement-notice-recovery-services-agent-for-system-center-2012"


async def test_of_few_values_all_are_named_where_none_is_near(library: Desk) -> None:
    [unknown] = (await library.ask(filters={"status": "Generally Available"}))["unknownFilterValues"]
    assert set(unknown["didYouMean"]) == {"Launched", "In preview", "In development"}


async def test_every_result_of_a_query_says_how_well_it_matches_and_a_list_does_not(library: Desk) -> None:
    answer = await library.ask(query="retirement of virtual machines", limit=10)
    assert answer["results"][0]["match"] == "strong"
    assert "notice" not in answer
    assert not any("match" in result for result in (await library.ask())["results"])
    foreign = await library.ask(query="virtual pigeons in the kitchen garden of my grandmother")
    assert {result["match"] for result in foreign["results"]} == {"weak"}
    assert next(iter(foreign)) == "notice"


async def test_a_hit_in_the_one_search_shows_the_text_and_not_what_it_is_searched_by() -> None:
    context = await make_context([make_record(products=["Azure Kubernetes Service (AKS)", "API Management"])])
    for question in ("APIM", "AKS", "is it here"):
        answer = await FIND(context, Question(question))
        assert isinstance(answer, ProviderAnswer)
        assert [hit.snippet for hit in answer.hits] == ["It is here."]
