"""What searches find, and in which order."""

from __future__ import annotations

from typing import cast

import pytest

from sample_world.salesforce.articles import Record, load_articles, read_articles
from sample_world.salesforce.errors import ApiError
from sample_world.salesforce.org import Org, User
from sample_world.salesforce.searches import Searches, parse_parameters, read_url_parameters

ARTICLES = load_articles()
SHARED = Searches(Org("lightning", ARTICLES))
NOW = "68.0"
ONLINE = "PublishStatus = 'Online' AND Language = 'en_US'"


def run(statement: str, *, org: Org | None = None, version: str = NOW) -> list[Record]:
    answer = (Searches(org) if org else SHARED).run_sosl(statement, version)
    return answer if isinstance(answer, list) else cast("list[Record]", answer["searchRecords"])


def find(text: str, where: str = ONLINE, tail: str = "", *, org: Org | None = None) -> list[str]:
    rows = run(f"FIND {{{text}}} RETURNING Knowledge__kav(Title WHERE {where}{tail})", org=org)
    return [str(row["Title"]) for row in rows]


def ask(body: object, *, org: Org | None = None) -> list[Record]:
    answer = (Searches(org) if org else SHARED).run_parameters(parse_parameters(body), NOW)
    return cast("list[Record]", answer["searchRecords"])


def ask_titles(text: str, **more: object) -> list[str]:
    objects = [{"name": "Knowledge__kav", "fields": ["Title"], "where": ONLINE}]
    return [str(row["Title"]) for row in ask({"q": text, "sobjects": objects, **more})]


def refuse(statement: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        run(statement)
    assert caught.value.status == 400
    return caught.value


def test_words_stand_for_any_of_them_and_titles_weigh_most() -> None:
    found = find("reset forgotten password")
    assert found[0] == "Reset a forgotten password"
    assert "The password mail doesn't arrive" in found
    assert len(found) > len(find("reset AND forgotten AND password")) == 1


def test_a_word_in_a_title_weighs_more_than_in_a_summary_and_that_more_than_in_a_body() -> None:
    places = [{"title": "zebra"}, {"summary": "zebra"}, {"sections": {"Cause__c": "<p>zebra</p>"}}]
    version = {"created": "2026-01-01T00:00:00Z", "url_name": "x"}
    for order in (1, -1):
        articles = [
            {"number": order * place + 9, "versions": [{"title": f"Title {place}", **version, **text}]}
            for place, text in enumerate(places, start=1)
        ]
        assert find("zebra", org=Org("lightning", read_articles(articles))) == ["zebra", "Title 2", "Title 3"]


def test_words_are_found_in_every_field_and_in_other_forms() -> None:
    assert "Radiator valve hums at night" in find("gurgles")
    assert "Fit a radiator valve: M30 x 1.5 and other threads" in find("wrench")
    assert find("HUMIDITIES") == find("humidity") != []


def test_markup_is_not_found() -> None:
    for text in ("thead", "nbsp", "servlet", "window.track", "iVBORw0KGgo*"):
        assert find(text) == find(f"{text} AND nothingelse") == [], text


def test_a_phrase_is_found_in_its_order_alone() -> None:
    assert find('"white ring"') == []
    assert "The ring of the hub stays white" in find('"stays white"')
    assert len(find("stays white")) > len(find('"stays white"'))


def test_operators_take_away_what_they_say() -> None:
    both, neither = set(find("schedule AND hub")), set(find("schedule AND NOT hub"))
    assert both
    assert neither
    assert both.isdisjoint(neither)
    assert both | neither == set(find("schedule"))


def test_a_wildcard_stands_for_letters_within_a_word() -> None:
    assert set(find("thermost*")) >= set(find("thermostat"))
    assert set(find("w?ite")) == set(find('"white" OR "write"'))
    assert find("whit?e") == []


def test_languages_do_not_mix_and_are_searched_without_accents() -> None:
    german = "PublishStatus = 'Online' AND Language = 'de'"
    assert find("Passwort", german) == ["Vergessenes Passwort zurücksetzen", "Familie und Gäste einladen"]
    assert find("zurucksetzen", german)[0].endswith("zurücksetzen")
    assert find("Passwort") == []
    japanese = "PublishStatus = 'Online' AND Language = 'ja'"
    assert find("水漏れ", japanese) == ["水漏れセンサーの置き場所"]
    assert find("大阪", japanese) == ["日本での使用：920 MHz と 100 V"]


def test_drafts_and_archived_articles_are_found_by_who_does_not_ask_for_a_status() -> None:
    everything = find("embargo OR bridge", "Language = 'en_US'")
    assert any("confidential" in title for title in everything)
    assert find("embargo OR bridge") == []
    org = Org("lightning", ARTICLES)
    org.set_user(User(view_drafts=False, view_archived=False))
    assert find("embargo OR bridge", "Language = 'en_US'", org=org) == []


def test_replaced_versions_are_never_found() -> None:
    assert "Connect the app to the old Marrowby Bridge" in find("bridge", "PublishStatus = 'Archived'")
    for words in ('"in rare cases"', '"share the password"', '"until guests exist"'):
        assert find(words, "PublishStatus = 'Archived'") == []


def test_the_order_is_the_same_every_time_and_an_order_by_replaces_it() -> None:
    assert find("hub app") == find("hub app")
    ordered = find("hub app", ONLINE, " ORDER BY Title")
    assert ordered == sorted(find("hub app"), key=str.casefold) != find("hub app")


def test_limit_and_offset_cut_the_ranked_list() -> None:
    assert find("hub", ONLINE, " LIMIT 3 OFFSET 1") == find("hub")[1:4]


def test_every_title_is_found_under_the_right_escapes() -> None:
    reserved = set("?&|!{}[]()^~*:\\\"'+-")
    for article in ARTICLES:
        for version in article.versions:
            if version.status == "Online" and version.language == "en_US":
                text = "".join(f"\\{mark}" if mark in reserved else mark for mark in version.title)
                found = find(f'"{text}"')
                assert version.title in found[:3], version.title


def test_objects_come_in_the_order_in_which_they_are_named_up_to_the_limit() -> None:
    knowledge = f"Knowledge__kav(Id WHERE {ONLINE})"
    rows = run(f"FIND {{hub OR café OR marrowby}} RETURNING Account(Id, Name), {knowledge}, User(Name) LIMIT 5")
    types = [str(cast("Record", row["attributes"])["type"]) for row in rows]
    assert types == ["Account", *["Knowledge__kav"] * 4]


def test_without_fields_ids_are_returned_and_without_objects_no_articles() -> None:
    (row, *_) = run("FIND {hub} RETURNING KnowledgeArticleVersion")
    assert set(row) == {"attributes", "Id"}
    assert run("FIND {hub}") == []


def test_before_version_37_the_answer_is_a_bare_list() -> None:
    statement = f"FIND {{hub}} RETURNING KnowledgeArticleVersion(Id WHERE {ONLINE})"
    bare, wrapped = SHARED.run_sosl(statement, "36.0"), SHARED.run_sosl(statement, "37.0")
    assert isinstance(bare, list)
    assert isinstance(wrapped, dict)
    assert len(bare) == len(cast("list[Record]", wrapped["searchRecords"])) > 0


def test_a_snippet_marks_the_words_in_text_without_markup() -> None:
    statement = f"FIND {{underfloor heating}} RETURNING Knowledge__kav(Title WHERE {ONLINE})"
    row = run(statement + " WITH SNIPPET(target_length=120) LIMIT 1")[0]
    snippet = cast("dict[str, str]", row["snippet"])
    assert "<mark>underfloor</mark> <mark>heating</mark>" in snippet["text"]
    assert len(snippet["text"].replace("<mark>", "").replace("</mark>", "")) <= 120
    assert "<li>" not in snippet["text"]


def test_metadata_names_the_fields() -> None:
    statement = f"FIND {{hub}} RETURNING Knowledge__kav(Title, Cause__c WHERE {ONLINE}) WITH METADATA = 'LABELS'"
    answer = cast("Record", SHARED.run_sosl(statement, NOW))
    assert answer["metadata"] == {
        "entityMetadata": [
            {
                "entityName": "Knowledge__kav",
                "fieldMetadata": [{"name": "Title", "label": "Title"}, {"name": "Cause__c", "label": "Cause"}],
            }
        ]
    }


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("FIND {hub} RETURNING Nothing__kav", "INVALID_TYPE", "sObject type 'Nothing__kav' is not supported"),
        ("FIND {hub} RETURNING Knowledge__kav(Body__c)", "INVALID_FIELD", "No such column 'Body__c'"),
        ("FIND {hub} RETURNING Knowledge__kav(Id WHERE Cause__c = 'x')", "INVALID_FIELD", "can not be filtered"),
        ("FIND {hub} RETURNING Account WITH NETWORK = 'x'", "MALFORMED_SEARCH", "NETWORK"),
        (
            "FIND {hub} RETURNING Knowledge__kav(Id) WITH DATA CATEGORY Products__c AT Hub__c",
            "MALFORMED_SEARCH",
            "PublishStatus",
        ),
        (
            "FIND {hub} RETURNING Knowledge__kav(Id WHERE PublishStatus = 'Online') UPDATE VIEWSTAT",
            "MALFORMED_SEARCH",
            "Language",
        ),
        ("FIND {g} RETURNING Knowledge__kav(Id)", "MALFORMED_SEARCH", "longer than one character: g"),
    ],
)
def test_what_cannot_be_searched_is_refused(statement: str, code: str, message: str) -> None:
    error = refuse(statement)
    assert error.code == code
    assert message in error.message


def test_a_hidden_field_is_not_searched_either() -> None:
    org = Org("lightning", ARTICLES)
    assert find("gurgle", org=org) == ["Radiator valve hums at night"]
    org.set_user(User(hidden_fields=("Cause__c",)))
    assert find("gurgle", org=org) == []


def test_parameters_find_what_the_statement_finds() -> None:
    assert ask_titles("password reset") == find("password reset")
    assert ask_titles('"stays white"') == find('"stays white"')
    assert ask_titles("schedule AND NOT hub") == find("schedule AND NOT hub")


@pytest.mark.parametrize(
    "text", ["it's {here}", "C:\\Logs", '6" pipe', "(reset", "a AND", "FIND {x} RETURNING User", "' OR 1=1 --", "*hub"]
)
def test_no_text_of_a_parameterized_search_is_a_syntax_error(text: str) -> None:
    assert isinstance(ask_titles(text), list)


def test_parameters_take_limits_orders_and_categories() -> None:
    everything = ask_titles("hub")
    assert ask_titles("hub", overallLimit=2) == everything[:2]
    assert ask_titles("hub", defaultLimit=3, offset=1) == everything[1:4]
    filed = ask_titles("hub", dataCategories=[{"groupName": "Products__c", "operator": "at", "categories": ["App__c"]}])
    assert 0 < len(filed) < len(everything)
    assert set(filed) < set(everything)
    order = [{"field": "Title", "order": "desc"}]
    objects = [{"name": "Knowledge__kav", "where": ONLINE, "orderBy": order, "limit": 4}]
    titles = [str(row["Title"]) for row in ask({"q": "hub", "fields": ["Title"], "sobjects": objects})]
    assert titles == sorted(everything, key=str.casefold, reverse=True)[:4]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([], "JSON_PARSER_ERROR"),
        ({}, "JSON_PARSER_ERROR"),
        ({"q": "hub", "colour": "red"}, "JSON_PARSER_ERROR"),
        ({"q": "hub", "overallLimit": 2001}, "JSON_PARSER_ERROR"),
        ({"q": "hub", "sobjects": [{"name": "Knowledge__kav", "wear": "x"}]}, "JSON_PARSER_ERROR"),
        ({"q": "hub", "fields": ["Id"]}, "MALFORMED_SEARCH"),
        ({"q": "h"}, "MALFORMED_SEARCH"),
        ({"q": "hub", "sobjects": [{"name": "Nothing__kav"}]}, "INVALID_TYPE"),
        ({"q": "hub", "sobjects": [{"name": "Knowledge__kav", "fields": ["Body__c"]}]}, "INVALID_FIELD"),
        ({"q": "hub", "sobjects": [{"name": "Knowledge__kav", "where": "Title = 'x' OR"}]}, "MALFORMED_SEARCH"),
        ({"q": "hub", "sobjects": [{"name": "Knowledge__kav", "where": "Title = 'x' LIMIT 1"}]}, "MALFORMED_SEARCH"),
    ],
)
def test_parameters_that_are_wrong_are_refused(body: object, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        ask(body)
    assert (caught.value.status, caught.value.code) == (400, code)


def test_the_address_says_what_the_body_says() -> None:
    pairs = [
        ("q", "hub"),
        ("sobject", "KnowledgeArticleVersion"),
        ("KnowledgeArticleVersion.where", "language='en_US' and publishStatus='online'"),
        ("KnowledgeArticleVersion.fields", "id,title"),
        ("dataCategory", "Products__c below All__c"),
        ("defaultLimit", "4"),
    ]
    rows = ask(read_url_parameters(pairs))
    assert len(rows) == 4
    assert list(rows[0]) == ["attributes", "Id", "Title"]


def test_an_update_of_statistics_counts_the_articles_that_were_found() -> None:
    org = Org("lightning", ARTICLES)
    statement = f"FIND {{embankment OR lime}} RETURNING Knowledge__kav(ArticleTotalViewCount WHERE {ONLINE})"
    assert [row["ArticleTotalViewCount"] for row in run(statement, org=org)] == [0]
    run(f"{statement} UPDATE VIEWSTAT", org=org)
    assert [row["ArticleTotalViewCount"] for row in run(statement, org=org)] == [1]
