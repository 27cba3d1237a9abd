"""Judging: whether a watch tells of what happened to a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from refdesk.core.search import matching
from refdesk.core.search.analysis import analyse_document, parse_query
from refdesk.core.search.folding import fold
from refdesk.core.search.inflection import get_language
from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased
from refdesk.impact.products import find_products, name_product
from refdesk.model import State, facet_key
from refdesk.watching.news import Event, What

if TYPE_CHECKING:
    from refdesk.core.search.matches import Match
    from refdesk.impact.changes import Announcement
    from refdesk.model import CosineScale, Document, TextQuery
    from refdesk.watching.happenings import Happening
    from refdesk.watching.watches import Watch

Readers: TypeAlias = "Mapping[str, Callable[[Document], Announcement]]"
"""By toolset, the function that reads an announcement out of a document."""

TAGS = "tags"
EXPIRES = "expires"
"""The date range of a document that begins when the document expires."""

MERGED_INTO = "merged_into"
"""A key in the data of a withdrawn document: the id of the document that it was merged into."""

_MODIFIED = frozenset(("modified", "created", "updated"))
"""Date ranges that say when a document was written and are not part of its content."""

_LEAST: Mapping[Match, float] = {"strong": matching.STRONG, "partial": matching.PARTIAL, "weak": 0.0}


@dataclass(frozen=True, slots=True)
class Passing:
    """What happened, with the document as it was made and as it was before (`None` if there was none before)."""

    happening: Happening
    now: Document
    before: Document | None

    @property
    def is_current(self) -> bool:
        """Whether the document holds now."""
        return self.now.state is State.CURRENT

    @property
    def was_current(self) -> bool:
        """Whether there was a version before that held."""
        return self.before is not None and self.before.state is State.CURRENT

    @property
    def says_otherwise(self) -> bool:
        """Whether the document's content differs from before, or the document did not hold before."""
        return not self.was_current or self.before is None or _get_content(self.before) != _get_content(self.now)

    def make_event(
        self, what: What, other: str = "", dates: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    ) -> Event:
        """Return what happened as an event."""
        each = self.happening
        return Event(what, each.collection.toolset, each.id, each.at, each.version, other, dates)


def may_concern(watch: Watch, happening: Happening) -> bool:
    """Return whether a watch may tell of something, as far as that is known without the document."""
    toolset, begins = happening.collection.toolset, watch.begins.get(happening.log)
    # A log whose store was not open when the watch was made has no number; there, the time of the act decides.
    if happening.at < watch.created_at if begins is None else happening.number <= begins:
        return False
    if watch.kind in ("entry", "skill"):
        return toolset in watch.toolsets and happening.id == watch.subject
    return not happening.is_outcome and toolset in watch.toolsets


def judge(watch: Watch, passing: Passing, readers: Readers) -> Event | None:
    """Return the event that a watch tells of what happened, judging by keyword search alone; `None` for none."""
    if is_erased(passing.now):
        return None
    if watch.kind == "search":
        return _judge_search(watch, passing)
    if watch.kind == "product":
        return _judge_product(watch, passing, readers)
    return _judge_subject(passing)


def is_asked(watch: Watch, passing: Passing) -> bool:
    """Return whether a search tells of what happened, provided that the document matches its question."""
    return (
        watch.kind == "search"
        and passing.is_current
        and passing.says_otherwise
        and not is_erased(passing.now)
        and has_tags(watch, passing.now)
    )


def name_search_event(passing: Passing) -> What:
    """Return which event a search tells for a matching document."""
    return "changed" if passing.was_current else "new"


def has_tags(watch: Watch, document: Document) -> bool:
    """Return whether a document has all the tags that a watch asks for."""
    held = {facet_key(tag) for tag in document.facets.get(TAGS, ())}
    return {facet_key(tag) for tag in watch.tags} <= held


def matches(
    watch: Watch,
    document: Document,
    cosine: float | None = None,
    scale: CosineScale | None = None,
    passage: tuple[int, int] | None = None,
) -> bool:
    """Return whether a document by itself matches a search at least as well as the watch requires."""
    asked = _parse(watch.subject)
    if cosine is None and not _shares_words(asked, document):
        return False
    strength = matching.judge(asked, document.title, document.body, cosine, scale, passage)
    return strength > 0.0 and (strength >= _LEAST[watch.least] or _has_all(asked, document))


def _judge_search(watch: Watch, passing: Passing) -> Event | None:
    if not (is_asked(watch, passing) and matches(watch, passing.now)):
        return None
    return passing.make_event(name_search_event(passing))


def _judge_product(watch: Watch, passing: Passing, readers: Readers) -> Event | None:
    read = readers.get(passing.now.collection.toolset)
    if read is None:
        return None
    now = read(passing.now) if passing.is_current else None
    before = read(passing.before) if passing.was_current and passing.before is not None else None
    is_named, was_named = (each is not None and watch.subject in _list_products(each) for each in (now, before))
    if not (is_named or was_named):
        return None
    if now is None:
        return passing.make_event("withdrawn")
    if before is None:
        return passing.make_event("new")
    dates = _list_days(before.due), _list_days(now.due)
    if dates[0] != dates[1]:
        return passing.make_event("dated", dates=dates)
    return passing.make_event("changed") if passing.says_otherwise else None


def _judge_subject(passing: Passing) -> Event | None:
    if passing.happening.is_outcome:
        return passing.make_event("outcome")
    if passing.is_current:
        if passing.was_current and passing.before is not None:
            return passing.make_event("changed") if passing.before.digest != passing.now.digest else None
        return passing.make_event("restored") if passing.before is not None else None
    if not passing.was_current:
        return None
    if passing.now.state is State.SUPERSEDED:
        return passing.make_event("superseded", str(passing.now.data.get(supersession.SUPERSEDED_BY) or ""))
    into = str(passing.now.data.get(MERGED_INTO) or "")
    return passing.make_event("merged", into) if into else passing.make_event("withdrawn")


def _list_products(announcement: Announcement) -> set[str]:
    """Return the products that an announcement is about: those it lists, and those named in its title."""
    titled = (mention.product for mention in find_products(announcement.title) if not mention.is_brand)
    return {*map(name_product, announcement.products), *titled}


def _list_days(days: Sequence[date]) -> tuple[str, ...]:
    return tuple(sorted(day.isoformat() for day in days))


def _get_content(document: Document) -> tuple[object, ...]:
    ranges = {name: spans for name, spans in document.date_ranges.items() if name not in _MODIFIED}
    return document.title, document.body, dict(document.facets), ranges


def _has_all(asked: TextQuery, document: Document) -> bool:
    """Return whether a document contains every word of a question, however few there are."""
    held = _list_terms(document.title, document.body[: matching.EXCERPT_CHARACTERS])
    return _list_asked(asked) <= held


def _list_asked(asked: TextQuery) -> set[str]:
    terms = {*asked.terms, *(term for phrase in asked.phrases for term in phrase)}
    return {term for term in terms if not get_language(term)} or terms


def _shares_words(asked: TextQuery, document: Document) -> bool:
    terms = {*asked.terms, *(term for phrase in asked.phrases for term in phrase)}
    if not terms.isdisjoint(_list_terms(document.title, document.body[: matching.EXCERPT_CHARACTERS])):
        return True
    title = fold(document.title)
    return any(term in title for term in terms)


@lru_cache(maxsize=64)
def _list_terms(title: str, excerpt: str) -> frozenset[str]:
    """Return the terms of a document; cached, as several watches look at the same document in turn."""
    titled, written = analyse_document(title, excerpt)
    return frozenset((*titled, *written))


@lru_cache(maxsize=1024)
def _parse(query: str) -> TextQuery:
    return parse_query(query)
