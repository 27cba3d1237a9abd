"""Builds SOSL and SOQL statements; whatever callers wrote is escaped as data.

The languages escape differently, so there is one escaper for each: for a search term in braces, and for a string in
quotes. An escape that is right in one is an error in the other. Everything else in a statement comes from refdesk or
was checked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from refdesk.core.search.providers import ALWAYS, Period

ARTICLE_VERSIONS = "KnowledgeArticleVersion"
LIKE_CHARACTERS = 255
"""Most characters of a text that is searched by LIKE: as many as a title can have."""

# SOSL and SOQL guide, "FIND {SearchQuery}": reserved characters, each escaped by a backslash.
_RESERVED = "?&|!{}()^~*:\\\"'+-"
_TERM = str.maketrans({char: f"\\{char}" for char in _RESERVED} | {"[": " ", "]": " "})
# The same guide: words that are operators or clauses unless they stand in quotation marks, in any case.
_OPERATORS = frozenset({"AND", "OR", "NOT", "FIND", "IN", "RETURNING"})
# SOQL, "Quoted String Escape Sequences".
_STRING = str.maketrans({"\\": "\\\\", "'": "\\'"})
# Persian and several Indian scripts need them to spell words.
_JOINERS = "\u200c\u200d"
_PATTERN = str.maketrans({"\\": "\\\\", "'": "\\'", "%": "\\%", "_": "\\_"})


def clean_text(text: str) -> str:
    """Return the text on one line: in NFC, without control and invisible characters except joiners, blanks folded."""
    composed = unicodedata.normalize("NFC", text)
    return " ".join("".join(char if _is_kept(char) else " " for char in composed).split())


def _is_kept(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf", "Cs")


def count_searchable(text: str) -> int:
    """Return how many letters and digits a text has; Salesforce does not search for fewer than two."""
    return sum(char.isalnum() for char in text)


def escape_term(text: str) -> str:
    """Return the text as written between the braces of FIND: as data, never as operators.

    Brackets become blanks: Salesforce takes them as separators of words, and not every SOSL parser knows their escape.
    """
    words = clean_text(text.translate({ord("["): " ", ord("]"): " "})).split()
    return " ".join(f'"{word}"' if word.upper() in _OPERATORS else word.translate(_TERM) for word in words)


def quote(text: str) -> str:
    """Return the text as a SOQL string, quotation marks included."""
    return f"'{clean_text(text).translate(_STRING)}'"


def quote_pattern(text: str) -> str:
    """Return the text as a quoted LIKE pattern, matched by any text that contains its words in that order.

    A text longer than `LIKE_CHARACTERS` is cut.
    """
    words = clean_text(text)[:LIKE_CHARACTERS].split()
    return f"'%{'%'.join(word.translate(_PATTERN) for word in words)}%'"


@dataclass(frozen=True, slots=True)
class CategoryFilter:
    """A condition on one group of data categories. Names are checked API names; a missing `__c` is added.

    Attributes:
        operator: `AT` the categories, or including those `ABOVE`, `BELOW` or `ABOVE_OR_BELOW` them.
    """

    group: str
    operator: str
    categories: tuple[str, ...]

    def __str__(self) -> str:
        """Return the condition as written after WITH DATA CATEGORY."""
        names = ", ".join(self.categories)
        return f"{self.group} {self.operator} {names if len(self.categories) == 1 else f'({names})'}"


def name_category(text: str) -> str | None:
    """Return the API name of a data category or a group of them, or `None` if the text is not one."""
    found = _CATEGORY.fullmatch(text.strip())
    return None if found is None else f"{found[1]}__c"


_CATEGORY = re.compile(r"([A-Za-z](?:_?[A-Za-z0-9])*)(?:__c)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Search:
    """What to search for. `period` is that of an article's last publication."""

    text: str
    language: str
    limit: int
    period: Period = ALWAYS
    categories: tuple[CategoryFilter, ...] = ()


def build_published(search: Search) -> str:
    """Return the condition that excludes drafts, archived versions, other languages and other periods."""
    condition = f"PublishStatus = 'Online' AND Language = {quote(search.language)}"
    for sign, instant in ((">=", search.period.since), ("<=", search.period.until)):
        if instant is not None:
            condition += f" AND LastPublishedDate {sign} {show_instant(instant)}"
    return condition


def show_instant(instant: datetime) -> str:
    """Return an aware instant as SOQL writes it, in UTC, cut to milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build_search(search: Search, fields: Sequence[str]) -> dict[str, object]:
    """Return the body of a parameterized search: of one object, in Salesforce's own order."""
    target = {
        "name": ARTICLE_VERSIONS,
        "fields": list(fields),
        "where": build_published(search),
        "limit": search.limit,
    }
    body: dict[str, object] = {"q": escape_term(search.text), "sobjects": [target], "overallLimit": search.limit}
    filters = [
        {"groupName": each.group, "operator": each.operator.lower(), "categories": list(each.categories)}
        for each in search.categories
    ]
    return {**body, "dataCategories": filters} if filters else body


def build_sosl(search: Search, fields: Sequence[str]) -> str:
    """Return the same search in SOSL. There is no ORDER BY, which would undo the order by relevance."""
    columns = ", ".join(fields)
    return (
        f"FIND {{{escape_term(search.text)}}} IN ALL FIELDS "
        f"RETURNING {ARTICLE_VERSIONS}({columns} WHERE {build_published(search)} LIMIT {search.limit})"
        f"{_build_categories(search)}"
    )


def _build_categories(search: Search) -> str:
    """Return the clause for data categories, preceded by a blank; empty if there are none."""
    conditions = " AND ".join(map(str, search.categories))
    return f" WITH DATA CATEGORY {conditions}" if conditions else ""


def build_like(search: Search, fields: Sequence[str], searched: Sequence[str]) -> str:
    """Return the search by LIKE over the `searched` fields, last published first."""
    pattern = quote_pattern(search.text)
    matches = " OR ".join(f"{name} LIKE {pattern}" for name in searched)
    order = " ORDER BY LastPublishedDate DESC NULLS LAST" if "LastPublishedDate" in fields else ""
    condition = f"{build_published(search)} AND ({matches})"
    return _select(fields, ARTICLE_VERSIONS, condition, f"{_build_categories(search)}{order} LIMIT {search.limit}")


def build_version_query(name: str, fields: Sequence[str], version_id: str) -> str:
    """Return the query for one published version of an article of the object `name`."""
    return _select(fields, name, f"Id = {quote(version_id)} AND PublishStatus = 'Online'", " LIMIT 1")


def build_article_query(fields: Sequence[str], article_id: str) -> str:
    """Return the query for the published versions of an article, one for each language."""
    condition = f"KnowledgeArticleId = {quote(article_id)} AND PublishStatus = 'Online'"
    return _select(fields, ARTICLE_VERSIONS, condition, " LIMIT 100")


def build_archived_query(version_id: str) -> str:
    """Return the query for the article and language that a version belonged to before a newer one replaced it."""
    condition = f"Id = {quote(version_id)} AND PublishStatus = 'Archived' AND IsLatestVersion = false"
    return _select(("KnowledgeArticleId", "Language"), ARTICLE_VERSIONS, condition, " LIMIT 1")


def build_sample_query() -> str:
    """Return the query for any one published article, in whatever language."""
    return _select(("Id", "Language"), ARTICLE_VERSIONS, "PublishStatus = 'Online'", " LIMIT 1")


def _select(fields: Sequence[str], name: str, condition: str, rest: str) -> str:
    # Names come from the org's own description or from this module; conditions are quoted above.
    return f"SELECT {', '.join(fields)} FROM {name} WHERE {condition}{rest}"  # noqa: S608


_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[_-]([A-Za-z]{2,4}))?")


def normalize_language(text: str) -> str | None:
    """Return a language as Salesforce writes it (`en-us` → `en_US`), or `None` if the text is not one."""
    found = _LANGUAGE.fullmatch(text.strip())
    if found is None:
        return None
    return found[1].lower() + (f"_{found[2].upper()}" if found[2] else "")
