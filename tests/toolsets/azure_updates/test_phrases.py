"""Words in quotes: what holds them as a phrase is found, by words and by meaning, and nothing else."""

from __future__ import annotations

from tests.core.fakes import ScriptedEmbedder
from tests.toolsets.azure_updates.samples import ask, get_ids, make_context, make_record, make_semantic


async def test_a_phrase_in_quotes_must_occur() -> None:
    context = await make_context(
        [
            make_record("1", title="Managed identity for storage"),
            make_record("2", title="Identity that is managed, for storage"),
        ]
    )
    assert get_ids(await ask(context, query='"managed identity" storage')) == ["1"]
    assert get_ids(await ask(context, query="managed identities")) == ["1", "2"]


async def test_where_nothing_holds_the_phrase_it_says_so_and_shows_what_there_is() -> None:
    context = await make_context([make_record("1", title="Identity that is managed"), make_record("2", title="Other")])
    answer = await ask(context, query='"managed identity"')
    assert get_ids(answer) == ["1"]
    assert "No update holds the words in quotes as a phrase: these hold some of them." in answer["notes"]


async def test_a_phrase_must_occur_in_what_is_near_in_meaning_too() -> None:
    context = await make_semantic(ScriptedEmbedder(), embedded=True)
    assert get_ids(await ask(context, query="vault keys")) == ["1", "2"]
    assert get_ids(await ask(context, query='vault "keys in"')) == ["1"]


async def test_nothing_without_the_phrase_is_among_what_is_near_and_all_that_hold_it_are_counted() -> None:
    records = [
        make_record("1", title="Limits of private endpoints rise"),
        make_record("2", title="Events for private endpoints"),
        make_record("3", title="Limits rise", description="Endpoints that are private are left out."),
        *(make_record(f"{number}", title="Limits of private links") for number in range(4, 9)),
    ]
    context = await make_semantic(ScriptedEmbedder(), embedded=True, records=records)
    query = '"private endpoints" limits'
    answer = await ask(context, query=query, facets=["tags"])
    assert (set(get_ids(answer)), answer["total"], answer["hasMore"]) == ({"1", "2"}, 2, False)
    second = await ask(context, query=query, limit=1, offset=1)
    assert (get_ids(second), second["total"], second["hasMore"]) == (get_ids(answer)[1:], 2, False)
    other = await ask(context, query='"private endpoints" zebra')
    assert (set(get_ids(other)), other["total"]) == ({"1", "2"}, 2)
    assert not any("quotes" in note for note in other["notes"])
