"""The domain model: frozen values, independent of engines and transports.

The words are those of `docs/reference/glossary.md`; code uses no synonyms for them. All instants are aware and in UTC.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, Union

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

JsonValue: TypeAlias = Union[str, int, float, bool, "Sequence[JsonValue]", "Mapping[str, JsonValue]", None]
JsonObject: TypeAlias = Mapping[str, JsonValue]
Vector: TypeAlias = "NDArray[float32]"
"""Shape `(dimensions,)`, unit length."""

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

ORG_NAME = r"[a-z0-9-]{1,64}"
"""A pattern for the whole name of an org."""

AGENT_NAME = r"[^\x00-\x1f\x7f]{1,64}"
"""A pattern for the whole name of an agent."""

SHARED_ORG = "*"
"""The org of what all orgs share, such as a vendor's feed. Org names are `[a-z0-9-]+`, so no caller belongs to it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls.

    Attributes:
        credential: The public id of the API key, or the application that holds the token; for the record.
        address: Where the request came from; for the record.
        transport: How it came: `mcp`, `rest` or `cli`; for the record.
        help_desk_session: A session of the help desk that came with the request; the help desk is then asked as that
            session's user. Never kept, logged or shown.
    """

    org: str
    agent: str
    scopes: frozenset[str]
    credential: str = field(default="", compare=False)
    address: str = field(default="", compare=False)
    transport: str = field(default="", compare=False)
    help_desk_session: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, order=True)
class Collection:
    """The documents of one toolset in one org. Every read and write names one, so no query can cross an org."""

    org: str
    toolset: str


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """A period of time, both ends included. An instant is a range whose ends are equal."""

    start: datetime
    end: datetime


class State(StrEnum):
    """The lifecycle state of a document."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One thing known.

    Attributes:
        id: Unique within its collection; opaque.
        title: One line; weighs more than the body in search.
        body: The text that is searched, embedded and cut into snippets.
        author: The agent or source that made it.
        facets: Named sets of values to filter and count by, in the author's spelling.
        date_ranges: Named times to filter and sort by; several under one name are alternatives.
        version: 1 for the first; each replacement adds one.
        data: The toolset's own record, whole.
    """

    collection: Collection
    id: str
    title: str
    body: str
    author: str
    created_at: datetime
    modified_at: datetime
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    date_ranges: Mapping[str, tuple[DateRange, ...]] = field(default_factory=dict[str, tuple[DateRange, ...]])
    state: State = State.CURRENT
    version: int = 1
    data: JsonObject = field(default_factory=dict[str, JsonValue])

    @property
    def digest(self) -> str:
        """Hex digest of everything but `version`: equal digests mean nothing changed."""
        content = [
            *(self.id, self.title, self.body, self.author, self.state.value),
            *(self.created_at.isoformat(), self.modified_at.isoformat()),
            {name: list(values) for name, values in self.facets.items()},
            {
                name: [[s.start.isoformat(), s.end.isoformat()] for s in ranges]
                for name, ranges in self.date_ranges.items()
            },
            self.data,
        ]
        return _digest(_ENCODER.encode(content))

    @property
    def text_digest(self) -> str:
        """Hex digest of what is embedded (title and body): vectors made from an equal one stay valid."""
        return _digest(f"{self.title}\x00{self.body}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a document, and when it was recorded."""

    document: Document
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Reference:
    """Names one document, or a thing outside refdesk such as a task."""

    toolset: str
    id: str


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge within one org: `source` does `kind` to `target` (supersedes, references, produced, affects)."""

    org: str
    source: Reference
    kind: str
    target: Reference
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MetadataKey:
    """Names a record: `kind` is the sort of bookkeeping, `name` is unique in its org and kind."""

    org: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """A small piece of bookkeeping that is not a document: a job, lease, watermark, counter, token or key."""

    key: MetadataKey
    value: JsonObject
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One act on record, a link of its org's chain.

    Attributes:
        number: 1 for the first of its org, one more for each further entry.
        act: Who did what to which records, through which transport, and with what outcome; never a text or a secret.
        previous: The digest of the entry before; empty for the first.
        digest: Of all the above; see `refdesk.core.writing.audit`.
    """

    org: str
    number: int
    at: datetime
    act: JsonObject
    previous: str
    digest: str


# Filters: a closed union, matched with `match` and `assert_never`.


@dataclass(frozen=True, slots=True)
class HasAll:
    """The facet holds every one of the values (case and compatibility forms do not matter)."""

    facet: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HasAny:
    """The facet holds at least one of the values; no values match nothing."""

    facet: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """One and the same range under any of `names` touches [`since`, `until`]; an open end is `None`."""

    names: tuple[str, ...]
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class InState:
    """The document is in one of the states."""

    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class HasId:
    """The document's id is one of these."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    condition: Filter


@dataclass(frozen=True, slots=True)
class And:
    """Every condition holds; none at all holds always."""

    conditions: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one condition holds; none at all never holds."""

    conditions: tuple[Filter, ...]


Filter: TypeAlias = HasAll | HasAny | Overlaps | InState | HasId | Not | And | Or


def facet_key(value: str) -> str:
    """Return the form in which facet values are compared: NFKC, case-folded, outer blanks removed."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold()).strip()


# Finding


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What is asked in words, after analysis.

    Attributes:
        terms: Distinct analysed terms in the order asked; any may match, more matching ones rank higher.
        phrases: Runs of analysed terms; each must occur, adjacent and in order, within the title or within the body.
        identifiers: Words as they were written, folded, that look like names of one thing: codes, numbers, variables.
            Nothing is retrieved by them; they only say how well a hit matches.
    """

    terms: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    identifiers: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class CosineScale:
    """How near an embedding model puts texts, as cosines.

    Attributes:
        unrelated: How near the nearest of some unrelated passages comes to a question.
        related: How near the passage that answers the question comes.
    """

    unrelated: float
    related: float


@dataclass(frozen=True, slots=True, eq=False)
class VectorQuery:
    """What is asked as a vector of the named model; only vectors of that model are compared.

    Attributes:
        trust: How much the vector counts beside words, above 0 and at most 1: less in a language that the model does
            not know.
        scale: Of the model's cosines; `None` while it is not known, and in a language that the model does not know.
    """

    vector: Vector
    model: str
    trust: float = 1.0
    scale: CosineScale | None = None


SortBy: TypeAlias = Literal["all_terms", "lexical", "modified", "created", "title", "id", "date_range"]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order.

    `all_terms` is whether every term occurs, `lexical` the BM25 score; titles are compared by `facet_key`. `date_range`
    is the first start of the ranges called `name`; documents without one come last, whatever the direction.
    """

    by: SortBy
    descending: bool = False
    name: str = ""


BEST_FIRST = (SortKey("lexical", descending=True), SortKey("modified", descending=True), SortKey("id"))
"""The order of the lexical list; ties newest first, then by id."""


@dataclass(frozen=True, slots=True)
class FindRequest:
    """What a store is asked to find.

    Without `text` and `vector` every document that passes `where` matches. With `text` a document matches when it
    holds at least one term and every phrase (a query of phrases only: every phrase; an empty one: nothing). With
    `vector` the `depth` nearest documents join those; with `vector` alone no document matches by text. Withdrawn
    documents are never found.

    Attributes:
        where: Applied while candidates are collected, never afterwards.
        depth: How many documents from each list, 1 or more.
        order: Of the text matches (or, without text, of all); its first `depth` are returned.
        facets: Names of facets to count over everything that matches (by `text` and `where`).
        title_contains: The newest `depth` documents whose title contains this (by `facet_key`) join the text matches.
        as_written: An engine with a full-text match of its own marks the documents whose title and body together
            contain every word of this in exactly the same form, adds them to the text matches and lists them first.
            Others ignore it.
        effort: The least search width of an approximate vector index, 1 to 200; exact search ignores it.
        counts: Whether `Found.total` is wanted; if not, it may be any number not below that of the text matches
            returned.
        shown: How many of the best the caller is going to read; see `Found.documents`.
    """

    collection: Collection
    text: TextQuery | None = None
    vector: VectorQuery | None = None
    where: Filter | None = None
    depth: int = 100
    order: tuple[SortKey, ...] = BEST_FIRST
    facets: tuple[str, ...] = ()
    title_contains: str | None = None
    as_written: str | None = None
    effort: int | None = None
    counts: bool = True
    shown: int = 0


class Candidate(NamedTuple):
    """A document found, with its lexical and its vector score.

    It carries what ranking needs, so that whole documents are read only if they are shown.

    Attributes:
        lexical: Exact BM25 over title and body, 0.0 if no term occurs.
        cosine: Of its best passage, in [-1, 1]; `None` while it has no vector of the query's model.
        passage: Offsets of the best passage in the body (start, end in code points).
        all_terms: Every term of the query occurs in its title or body.
        title_contains: Its title contains what `FindRequest.title_contains` asked for.
        as_written: It holds what `FindRequest.as_written` asked for, as far as the engine says.
        state: Its lifecycle state; never withdrawn.
        head_id: If it is superseded: the head of its chain that it holds in its data, or else its own id. The current
            head is known to `refdesk.core.writing.supersession`.
    """

    id: str
    modified_at: datetime
    lexical: float = 0.0
    cosine: float | None = None
    passage: tuple[int, int] | None = None
    all_terms: bool = False
    title_contains: bool = False
    as_written: bool = False
    state: State = State.CURRENT
    head_id: str | None = None


@dataclass(frozen=True, slots=True)
class FacetCount:
    """How many matching documents hold a value, in its most frequent spelling."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a store found.

    Attributes:
        candidates: Text matches first, in the order asked, at most `depth`; then documents that only the title or the
            vector found, nearest first (without a vector last), ties by id. With a vector, each carries both scores.
        total: How many documents match by `text` and `where`, whatever the depth.
        facets: For each facet asked, its counts, most frequent first, ties by value.
        documents: The documents of some candidates, by id, from the same snapshot: an engine behind a network sends
            along those that are likely to be shown. The caller reads the others when it shows them.
    """

    candidates: tuple[Candidate, ...]
    total: int
    facets: Mapping[str, tuple[FacetCount, ...]] = field(default_factory=dict[str, tuple[FacetCount, ...]])
    documents: Mapping[str, Document] = field(default_factory=dict[str, Document])


# Embedding


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The model that made a vector: vectors of different models are never compared."""

    name: str
    dimensions: int


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedPassage:
    """A piece of a document's body, `start` to `end` in code points, with its vector."""

    start: int
    end: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class StoreNode:
    """A server that a store is spread over or copied to.

    Attributes:
        name: Host and port.
        holds: Its part, for people.
        problem: What is wrong with it, in a sentence, or `None`.
    """

    name: str
    holds: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts of one collection: documents by state, and vectors by model (documents that have them, in any state but
    withdrawn)."""

    collection: Collection
    documents: Mapping[State, int]
    embedded: Mapping[str, int]

    @property
    def living(self) -> int:
        """How many documents there are, not counting withdrawn ones."""
        return sum(count for state, count in self.documents.items() if state is not State.WITHDRAWN)

    def count(self, model: str, mark: str) -> EmbeddedCount:
        """Return how many of its documents have vectors of a model, given its mark at the moment of counting."""
        return EmbeddedCount(self.collection, self.living, self.embedded.get(model, 0), mark)


@dataclass(frozen=True, slots=True)
class EmbeddedCount:
    """How many documents of a collection are not withdrawn, and how many of these have vectors of a model, when it had
    this mark; see `Store.list_collections`."""

    collection: Collection
    documents: int
    embedded: int
    mark: str


# Learning
