"""What engineers ask beyond the contract: any of several values, beginnings of words, other names, days in titles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from refdesk.core.context import Context
from refdesk.core.search.providers import Period, ProviderAnswer, Question
from refdesk.model import JsonObject
from refdesk.toolsets.azure_updates.provider import FIND
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.samples import Desk, ask, get_ids, make_context, make_record


async def test_a_value_like_no_other_is_answered_by_the_most_frequent(library: Desk) -> None:
    for name in ("tags", "productCategories", "products"):
        [unknown] = (await library.ask(filters={name: ["Active"]}))["unknownFilterValues"]
        counts = (await library.ask(facets=[name], limit=1))["facets"][name]
        assert unknown["didYouMean"] == [each["value"] for each in counts[:3]]
    [unknown] = (await library.ask(filters={"status": "Active"}))["unknownFilterValues"]
    assert set(unknown["didYouMean"]) == {"Launched", "In preview", "In development"}


async def test_a_ring_that_does_not_exist_is_answered_by_those_that_do(library: Desk) -> None:
    with pytest.raises(ValidationError, match="'General Availability', 'Preview', 'Private Preview', 'Retirement'"):
        await library.ask(filters={"availabilityRing": "Active"})


async def test_a_value_of_another_filter_is_told_where_it_belongs(library: Desk) -> None:
    [unknown] = (await library.ask(filters={"tags": ["Compute"]}))["unknownFilterValues"]
    assert unknown["isAmong"] == "productCategories"


async def test_a_product_that_is_asked_for_by_another_name_is_named_first() -> None:
    names = ["API Management", "Azure Container Apps", "Azure Kubernetes Service (AKS)", "Azure Monitor", "Virtual WAN"]
    context = await make_context([make_record(str(at), products=[name]) for at, name in enumerate(names)])
    for asked, meant in (
        *(("APIM", 0), ("azure api management", 0), ("Container Apps", 1), ("ACA", 1), ("aks", 2)),
        *(("Azure Kubernetes Service", 2), ("App Insights", 3), ("Azure Virtual WAN", 4)),
    ):
        [unknown] = (await ask(context, filters={"products": [asked]}))["unknownFilterValues"]
        assert unknown["didYouMean"][0] == names[meant]


async def test_one_value_of_a_list_is_enough_where_that_is_asked_for() -> None:
    records = [
        make_record("both", products=["API Management", "Key Vault"], tags=["Features", "Security"]),
        make_record("one", products=["API Management"], tags=["Features"]),
        make_record("other", products=["Key Vault"], tags=["Security"]),
        make_record("none", products=["Azure Monitor"], tags=["Features", "Security"]),
    ]
    context = await make_context(records)
    wanted = {"products": ["api management", "key vault"], "tags": ["Features", "Security"]}
    assert get_ids(await ask(context, filters=wanted)) == ["both"]
    assert get_ids(await ask(context, filters=wanted | {"matchAny": ["products"]})) == ["both"]
    assert get_ids(await ask(context, filters=wanted | {"matchAny": ["tags", "products"]})) == ["both", "one", "other"]
    odd = await ask(context, filters={"products": ["Key Vault", "Keyvault"], "matchAny": ["products"]})
    assert (odd["total"], odd["unknownFilterValues"][0]["didYouMean"][0]) == (2, "Key Vault")


async def test_a_tag_that_the_feed_writes_in_two_ways_is_one() -> None:
    context = await make_context([make_record("1", tags=["Feature"]), make_record("2", tags=["Features", "Feature"])])
    for asked in ("Feature", "features"):
        answer = await ask(context, filters={"tags": [asked]}, facets=["tags"])
        assert get_ids(answer) == ["1", "2"]
        assert answer["facets"]["tags"] == [{"value": "Features", "count": 2}]
        found = await FIND(context, Question("it is here", tags=(asked,)))
        assert isinstance(found, ProviderAnswer)
        assert found.total == 2


async def test_a_word_that_occurs_nowhere_is_taken_for_a_beginning() -> None:
    context = await make_context(
        [
            make_record("1", title="Kubernetes version 1.34", products=[]),
            make_record("2", title="Kubernetes upgrades for virtual machines"),
            make_record("3", title="Virtual machines in Sweden"),
        ]
    )
    answer = await ask(context, query="kuber")
    assert (set(get_ids(answer)), answer["understood"]) == ({"1", "2"}, {"kuber": "kubernetes"})
    assert get_ids(await ask(context, query="kuber swe"))[0] in {"1", "2", "3"}
    assert set(get_ids(await ask(context, query="vir*"))) == {"2", "3"}
    for untouched in ('"kuber"', "ku", "zzzz"):
        assert "understood" not in await ask(context, query=untouched)
    assert (await ask(context, query="kuber", interpret=False))["total"] == 0
    assert "understood" not in await ask(context, query="machine")


@pytest.mark.parametrize("query", ["self-healing machines", "healing machines", "machines that heal"])
async def test_a_word_that_occurs_nowhere_finds_its_kin_also_within_a_compound(query: str) -> None:
    context = await make_context(
        [
            make_record("1", title="Unhealthy instances give way to healthy ones"),
            make_record("2", title="Machines in Sweden"),
            make_record("3", title="Healthy machines"),
            make_record("4", title="Selfies of machines"),
        ]
    )
    answer = await ask(context, query=query)
    assert get_ids(answer)[0] == "3"
    assert list(answer["understood"].values()) == ["healthy"]
    for untouched in ('"self-healing"', "machines", "posting", "healthcare"):
        assert "understood" not in await ask(context, query=untouched)


async def test_beginnings_know_what_was_synced_since(desk: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_world([dict(make_record("1", title="Kubernetes"))])
    await desk.syncer.sync()
    assert (await desk.ask(query="kuber"))["understood"] == {"kuber": "kubernetes"}
    assert (await desk.ask(query="postg"))["total"] == 0
    records = make_record("1", title="Kubernetes"), make_record("2", title="PostgreSQL")
    await emulator.set_world([dict(record) for record in records])
    desk.clock.advance(timedelta(hours=1))
    await desk.syncer.sync(full=True)
    assert get_ids(await desk.ask(query="postg")) == ["2"]


async def test_retirements_are_sorted_by_their_day_and_what_retires_never_comes_last() -> None:
    def retiring(id: str, title: str, *months: tuple[int, str]) -> JsonObject:
        rings = [{"ring": "Retirement", "year": year, "month": month} for year, month in months]
        return make_record(id, title=title, availabilities=rings)

    context = await make_context(
        [
            retiring("month", "Retires soon", (2027, "March")),
            retiring("late-day", "Retires on March 31, 2027", (2027, "March")),
            retiring("other-year", "Retires on March 2, 2028", (2026, "March")),
            retiring("earlier", "Retires", (2028, "May"), (2026, "December")),
            make_record("never"),
        ]
    )
    ordered = ["other-year", "earlier", "month", "late-day", "never"]
    assert get_ids(await ask(context, sortBy="retirement:asc")) == ordered
    assert get_ids(await ask(context, sortBy="retirement:desc")) == [*ordered[3::-1], "never"]


async def test_the_day_in_a_title_is_kept_and_marked_where_the_feed_says_another_month() -> None:
    rings = [{"ring": "Retirement", "year": 2026, "month": "August"}]
    titles = {"same": "Ends August 30, 2026", "other": "Ends August 30, 2027", "none": "Ends in August 2027"}
    context = await make_context(
        [make_record(id, title=title, availabilities=rings) for id, title in titles.items()]
        + [make_record("two", title="Ends 30 August 2026; nothing new from 2026-01-31 on", availabilities=rings)]
    )
    for detail in ("full", "concise"):
        results = {each["id"]: each for each in (await ask(context, detail=detail))["results"]}
        assert {id: each.get("titleDate") for id, each in results.items()} == {
            "same": "2026-08-30",
            "other": "2027-08-30",
            "none": None,
            "two": "2026-08-30",
        }
        assert [id for id, each in results.items() if "datesDiffer" in each] == ["other"]
        assert {each["availabilities"][0]["date"][:7] for each in results.values()} == {"2026-08"}


async def find(context: Context, question: Question) -> tuple[set[str], str]:
    answer = await FIND(context, question)
    assert isinstance(answer, ProviderAnswer)
    return {hit.id for hit in answer.hits}, answer.note


async def test_the_one_list_reads_a_question_as_the_search_of_updates_does() -> None:
    preview = [{"ring": "Preview", "year": 2027, "month": "March"}]
    context = await make_context(
        [
            make_record("healthy", title="Scale sets replace unhealthy instances", description="Those without health."),
            make_record("kept", title="Kubernetes keeps its version"),
            make_record("tried", title="Kubernetes tries a version", availabilities=preview),
        ]
    )
    for asked in ("kuber", "which kubernetes previews are there in March 2027", "kubernetes in preview"):
        assert (await find(context, Question(asked)))[0] == set(get_ids(await ask(context, query=asked))), asked
    assert (await find(context, Question("heal")))[0] == {"healthy"}
    found, note = await find(context, Question("which kubernetes previews are there in March 2027"))
    assert found == {"tried"}
    assert "availabilityRing Preview or Private Preview, dateFrom 2027-03-01, dateTo 2027-03-31" in note


async def test_in_the_one_list_what_the_caller_says_counts_above_what_the_question_says() -> None:
    preview = [{"ring": "Preview", "year": 2027, "month": "March"}]
    context = await make_context(
        [make_record("kept", title="Kubernetes"), make_record("tried", title="Kubernetes", availabilities=preview)]
    )
    asked = "which kubernetes previews are there in March 2027"
    assert (await find(context, Question(asked, tags=("Features",))))[0] == {"tried"}
    long_ago = Period(until=datetime(2020, 1, 1, tzinfo=UTC))
    assert (await find(context, Question(asked, period=long_ago)))[0] == set()
    found, note = await find(context, Question("which kubernetes previews are there in May 2031"))
    assert (found, "Limited to" in note) == ({"kept", "tried"}, False), "nothing is of that month"
