"""The invented articles hold what a test or a demo needs, and hang together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import pytest

from sample_world.salesforce import Article, Version, load_articles
from sample_world.salesforce.articles import build_records, read_articles
from sample_world.salesforce.categories import TREES
from sample_world.salesforce.org import WORLD_TIME
from sample_world.salesforce.schema import BODY_FIELDS

ARTICLES = load_articles()
VERSIONS = [version for article in ARTICLES for version in article.versions]
TEXTS = [text for version in VERSIONS for text in version.sections.values()]


def by_language(article: Article) -> Iterator[list[Version]]:
    versions = sorted(article.versions, key=lambda version: (version.language, version.number))
    for _, group in groupby(versions, key=lambda version: version.language):
        yield list(group)


def test_there_are_about_sixty_articles_of_three_kinds_in_three_languages() -> None:
    assert 58 <= len(ARTICLES) <= 65
    assert all(count >= 15 for count in Counter(article.type for article in ARTICLES).values())
    online = Counter(version.language for version in VERSIONS if version.status == "Online")
    assert (online["en_US"] > 50, online["de"] >= 10, online["ja"] >= 6) == (True, True, True)


def test_there_are_drafts_archived_articles_and_articles_of_several_versions() -> None:
    assert sum(version.status == "Draft" for version in VERSIONS) >= 4
    assert sum(version.superseded for version in VERSIONS) >= 4
    unpublished = [article for article in ARTICLES if all(version.status != "Online" for version in article.versions)]
    assert {version.status for article in unpublished for version in article.versions} == {"Draft", "Archived"}


def test_the_versions_of_one_language_count_on_and_share_their_address() -> None:
    for article in ARTICLES:
        for versions in by_language(article):
            assert [version.number for version in versions] == list(range(1, len(versions) + 1)), article.number
            assert len({version.url_name for version in versions}) == 1, article.number
            assert sum(version.status == "Online" for version in versions) <= 1, article.number
            assert sum(version.status == "Draft" for version in versions) <= 1, article.number


def test_no_two_articles_of_one_language_share_an_address() -> None:
    addresses = Counter(
        (versions[0].language, versions[0].url_name) for article in ARTICLES for versions in by_language(article)
    )
    assert [address for address, count in addresses.items() if count > 1] == []


def test_instants_fit_the_state_and_lie_before_the_time_of_the_world() -> None:
    for version in VERSIONS:
        assert (version.published is None) == (version.status == "Draft")
        assert (version.archived is None) == (version.status != "Archived")
        assert version.superseded <= (version.status == "Archived")
        instants = [instant for instant in (version.created, version.published, version.archived) if instant]
        assert instants == sorted(instants)
        assert instants[-1] < WORLD_TIME


def test_every_article_is_filed_in_categories_that_exist_and_has_sections_that_exist() -> None:
    for article in ARTICLES:
        for group, categories in article.categories.items():
            assert set(categories) <= set(TREES[group])
        assert {name for version in article.versions for name in version.sections} <= set(BODY_FIELDS)


@pytest.mark.parametrize("mark", list("\"'%_{}[]\\?&+*~#;:°€🌩ß漏"))
def test_titles_and_summaries_have_the_characters_that_break_careless_clients(mark: str) -> None:
    assert any(mark in f"{version.title} {version.summary}" for version in VERSIONS)


@pytest.mark.parametrize(
    "markup",
    [
        *("<ol>", "<ul>", "<dl>", "<table", "<th>", "<pre>", "<code>", "<blockquote>", "<br", "<a href", "<img"),
        *("<script>", "<style>", "<!--", "data:image/png", "/servlet/rtaImage", "&nbsp;", "&#39;", "&#x2019;", "&lt;"),
    ],
)
def test_bodies_have_the_markup_that_rich_text_has(markup: str) -> None:
    if markup == "<br":
        records = build_records(ARTICLES, "classic")
        assert any(markup in str(record["ArticleBody"]) for record in records)
    else:
        assert any(markup in text for text in TEXTS)


def test_each_body_field_is_used_and_none_by_all() -> None:
    used = Counter(name for version in VERSIONS for name in version.sections)
    assert set(used) == set(BODY_FIELDS)
    assert max(used.values()) < len(VERSIONS)


def test_a_lightning_org_spreads_the_body_and_a_classic_one_joins_it() -> None:
    lightning = {record["Title"]: record for record in build_records(ARTICLES, "lightning")}
    classic = {record["Title"]: record for record in build_records(ARTICLES, "classic")}
    assert lightning.keys() == classic.keys()
    for version in VERSIONS:
        spread, joined = lightning[version.title], classic[version.title]
        assert {name: spread[name] for name in BODY_FIELDS} == {
            name: version.sections.get(name) for name in BODY_FIELDS
        }
        body = str(joined["ArticleBody"] or "")
        assert all(text in body for name, text in version.sections.items() if name != "Environment__c")
        assert body.count("<h2>") == len(version.sections)
        assert joined["ArticleType"] in ("FAQ__kav", "HowTo__kav")


def test_ids_differ_between_versions_and_stay_between_orgs() -> None:
    records = build_records(ARTICLES, "lightning")
    assert len({record["Id"] for record in records}) == len(records)
    assert len({record["KnowledgeArticleId"] for record in records}) == len(ARTICLES)
    assert {str(record["Id"])[:3] for record in records} == {"ka0"}
    assert {str(record["KnowledgeArticleId"])[:3] for record in records} == {"kA0"}
    assert records == build_records(reversed(ARTICLES), "lightning")


@pytest.mark.parametrize("change", [{"number": 0}, {"type": "Poem"}, {"versions": []}, {"colour": "red"}])
def test_an_article_that_is_none_is_refused(change: dict[str, object]) -> None:
    article = ARTICLES[0].model_dump(mode="json")
    assert read_articles([article]) == [ARTICLES[0]]
    with pytest.raises(ValueError, match="validation error"):
        read_articles([{**article, **change}])


def test_two_articles_with_one_number_are_refused() -> None:
    article = ARTICLES[0].model_dump(mode="json")
    with pytest.raises(ValueError, match="the same number"):
        read_articles([article, article])
