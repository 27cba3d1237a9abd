"""Whether a note relies on what an announcement changes, where, and how sure that is.

Each passage of a note is compared with the change: whether it names the product and exactly the series, version, tier
and part that the announcement is about, or others; and whether it says that these are gone or self-hosted. A logistic
function of that gives the confidence. Its weights were fitted by `python -m benchmarks.impact --fit` on refdesk's own
pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp

from refdesk.impact.changes import Change
from refdesk.impact.numbers import find_numbers
from refdesk.impact.products import Mention, find_products
from refdesk.impact.qualifiers import find_qualifiers
from refdesk.impact.series import Series, find_series
from refdesk.impact.subjects import split_camel
from refdesk.impact.versions import Version, find_versions
from refdesk.impact.wording import get_terms, is_awaited, is_gone, is_own, split_sentences

WINDOW = 1
"""This many sentences on each side of a sentence are read with it."""

NAMED = 0.6
"""The share of a subject's terms, by weight, from which on a sentence that says something is not available yet means
that subject."""

CLOSE = 2
"""Words no farther apart than this count as standing together."""


@dataclass(frozen=True)
class Passage:
    """A sentence of a note with its neighbours, and what is named there.

    Attributes:
        start, end: Offsets of the whole passage in the body.
        text: The title, then the sentence with its neighbours.
    """

    start: int
    end: int
    text: str
    sentences: tuple[str, ...] = ()

    @cached_property
    def products(self) -> Sequence[Mention]:
        """The products named."""
        return find_products(self.text)

    @cached_property
    def product_ids(self) -> frozenset[str]:
        """The ids of the products named."""
        return frozenset(mention.product for mention in self.products)

    @cached_property
    def series(self) -> Sequence[Series]:
        """The series of virtual machines named."""
        return find_series(self.text)

    @cached_property
    def versions(self) -> Sequence[Version]:
        """The versions named."""
        return find_versions(self.text)

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms, including the parts of compound names."""
        return frozenset((*get_terms(self.text), *get_terms(split_camel(self.text))))

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """The positions of each term."""
        places: dict[str, list[int]] = {}
        for at, term in enumerate(get_terms(self.text)):
            places.setdefault(term, []).append(at)
        return places

    @cached_property
    def qualifiers(self) -> frozenset[str]:
        """The tiers, systems, clouds and regions named."""
        return find_qualifiers(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers named."""
        return find_numbers(self.text)

    @cached_property
    def is_own(self) -> bool:
        """Whether it speaks of something self-hosted."""
        return is_own(self.text)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """The sentences that say that something was left behind."""
        return tuple(sentence for sentence in self.sentences if is_gone(sentence))

    @cached_property
    def awaited(self) -> tuple[str, ...]:
        """The sentences that say that something is not available yet."""
        return tuple(sentence for sentence in self.sentences if is_awaited(sentence))


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that relies on what an announcement changes.

    Attributes:
        confidence: In [0, 1].
        evidence: The evidence for and against it, by name.
        start, end: Offsets of the passage in the body.
    """

    confidence: float
    evidence: Mapping[str, float]
    start: int
    end: int


WEIGHTS: Mapping[str, float] = {
    "bias": -2.25,
    "amount": 2.16,
    "both": 2.56,
    "elsewhere": 0.16,
    "former": 0.32,
    "gone": -3.96,
    "identified": 1.69,
    "missing": -0.18,
    "named only": 3.15,
    "no product": 0.02,
    "other product": -1.84,
    "other qualifier": -1.89,
    "other series": -0.86,
    "other value": -0.93,
    "other version": -1.89,
    "own": -2.31,
    "own product": -0.98,
    "product": 0.59,
    "series": 0.16,
    "series elsewhere": -3.73,
    "specific": -0.62,
    "successor": -0.41,
    "together": 0.92,
    "version": -0.28,
    "whole": 0.2,
}
"""The weight of each piece of evidence, in log odds; fitted by `python -m benchmarks.impact --fit` on the development
half of the pairs."""


def read_passages(title: str, body: str) -> Iterator[Passage]:
    """Yield the passages of a note."""
    spans = list(split_sentences(body)) or [(0, 0)]
    if len(spans) <= 2 * WINDOW + 1:
        spans_of = [(0, len(spans))]
    else:
        spans_of = [(max(0, at - WINDOW), min(len(spans), at + WINDOW + 1)) for at in range(len(spans))]
    for first, last in spans_of:
        sentences = tuple(body[start:end] for start, end in spans[first:last])
        whole = tuple(filter(None, (title, *sentences)))
        yield Passage(spans[first][0], spans[last - 1][1], "\n".join(whole), whole)


def match(change: Change, passages: Sequence[Passage], weights: Mapping[str, float] = WEIGHTS) -> Match | None:
    """Return the passage that most likely relies on what is changed, or `None` if none of it is named."""
    best: Match | None = None
    for passage in passages:
        evidence = compare(change, passage)
        if evidence is None:
            continue
        confidence = weigh(evidence, weights)
        if best is None or confidence > best.confidence:
            best = Match(confidence, evidence, passage.start, passage.end)
    return best


def weigh(evidence: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the confidence that evidence gives, in (0, 1)."""
    score = weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in evidence.items())
    return 1 / (1 + exp(-score))


def compare(change: Change, passage: Passage) -> dict[str, float] | None:
    """Return the evidence for and against a passage relying on what is changed; `None` if it names none of it."""
    parts = _Parts(change, passage)
    if change.kind == "releases" and not any(map(parts.is_named, passage.awaited)):
        return None
    product = parts.product
    specific = parts.specific
    identified = parts.identified
    if not product and not parts.hits and not identified:
        return None
    subject = product and any(not m.is_brand for m in passage.products if m.product in change.products)
    known = change.products | change.context | change.related
    is_elsewhere = bool(change.context) and not change.context & passage.product_ids
    about = [sentence for sentence in passage.gone if parts.is_about(sentence)]
    return {
        "specific": specific,
        "product": product,
        "both": specific * product,
        "whole": float(specific >= 0.999 and bool(parts.wanted)),
        "series": float(parts.series > 0),
        "version": float(parts.version > 0),
        "other series": float(parts.series < 0),
        "other version": float(parts.version < 0),
        "other qualifier": float(parts.conflicts),
        "other product": float(not product and bool(passage.product_ids - known) and change.is_named),
        "no product": float(not product and not passage.product_ids - known and change.is_named),
        "elsewhere": float(is_elsewhere and not change.series),
        "series elsewhere": float(is_elsewhere and bool(change.series)),
        "identified": float(identified),
        "together": parts.together,
        "amount": min(4.0, sum(parts.hits.values())) / 4,
        "missing": min(3, len(parts.wanted) - len(parts.hits)) / 3,
        "named only": float(not parts.wanted) * product,
        "former": float(bool(change.former & passage.numbers)),
        "other value": float(bool(change.former) and not change.former & passage.numbers),
        "gone": float(bool(about)),
        "own": float(passage.is_own and not subject),
        "own product": float(passage.is_own and bool(subject)),
        "successor": float(parts.names_successor),
    }


@dataclass(slots=True)
class _Parts:
    """Which parts of a change a passage names.

    Attributes:
        wanted: The parts that identify the change, each with its weight.
        hits: Those of them that the passage names.
        series, version: 1 if it names one that is meant, -1 if it names only others, else 0.
        conflicts: How many groups of qualifiers it names only others of.
    """

    change: Change
    passage: Passage
    wanted: dict[str, float] = field(default_factory=dict[str, float])
    hits: dict[str, float] = field(default_factory=dict[str, float])
    series: int = 0
    version: int = 0
    conflicts: int = 0

    def __post_init__(self) -> None:
        self._compare_series()
        self._compare_versions()
        self._compare_qualifiers()
        for product in self.change.context if not self.change.series else ():
            self._note(f"context {product}", 1.0, product in self.passage.product_ids)
        if self.change.phrases:
            self._note("phrase", 4.0, any(phrase in self.passage.text for phrase in self.change.phrases))
        if self.change.counted:
            self._note("attribute", 3.0, self._counts_attribute())
        for term, weight in self.change.terms.items():
            self._note(term, weight, term in self.passage.terms)

    @property
    def specific(self) -> float:
        wanted = sum(self.wanted.values())
        return sum(self.hits.values()) / wanted if wanted else 0.0

    @property
    def product(self) -> float:
        """1 if the passage names a product that is changed, .5 if only its brand, else 0."""
        if self.series > 0:
            return 1.0
        found = [m for m in self.passage.products if m.product in self.change.products]
        return max((0.5 if mention.is_brand else 1.0 for mention in found), default=0.0)

    @property
    def together(self) -> float:
        """The share of the subject's neighbouring words that stand close to each other in the passage, in [0, 1]."""
        places = self.passage.places
        pairs = self.change.pairs
        hits = sum(
            any(abs(one - other) <= CLOSE for one in places.get(first, ()) for other in places.get(second, ()))
            for first, second in pairs
        )
        return hits / len(pairs) if pairs else 0.0

    @property
    def identified(self) -> bool:
        folded = self.passage.text.casefold()
        return any(name in folded for name in self.change.identifiers)

    @property
    def names_successor(self) -> bool:
        named = set(self.passage.product_ids) | {name for each in self.passage.series for name in each.names[:1]}
        named |= {f"{version.name} {version.number}" for version in self.passage.versions}
        return bool((named & self.change.successors) - self.change.products - self.change.series)

    def is_about(self, sentence: str) -> bool:
        """Return whether a sentence names what is changed."""
        if any(mention.product in self.change.products for mention in find_products(sentence)):
            return True
        if any(set(each.names) & self.change.series for each in find_series(sentence)):
            return True
        if any(own.covers(version) for version in find_versions(sentence) for own in self.change.versions):
            return True
        return bool(set(get_terms(sentence)) & set(self.change.terms))

    def is_named(self, sentence: str) -> bool:
        """Return whether a sentence names most of the terms of what is changed."""
        terms = frozenset((*get_terms(sentence), *get_terms(split_camel(sentence))))
        named = sum(weight for term, weight in self.change.terms.items() if term in terms)
        return named >= NAMED * sum(self.change.terms.values()) > 0

    def _note(self, name: str, weight: float, is_hit: bool) -> None:
        self.wanted[name] = weight
        if is_hit:
            self.hits[name] = weight

    def _counts_attribute(self) -> bool:
        """Return whether a number stands close to a term that the announcement sets a limit on."""
        words = get_terms(self.passage.text)
        at = [index for index, word in enumerate(words) if word in self.change.counted]
        return any(word[:1].isdigit() for index in at for word in words[max(0, index - 4) : index + 4])

    def _compare_series(self) -> None:
        if not self.change.series:
            return
        named = [set(each.names) for each in self.passage.series]
        is_hit = any(names & self.change.series for names in named)
        self.series = 1 if is_hit else -1 if named else 0
        self._note("series", 3.0, is_hit)

    def _compare_versions(self) -> None:
        versions = self.change.versions
        if not versions:
            return
        is_hit = any(own.covers(other) for own in versions for other in self.passage.versions)
        names = {own.name for own in versions}
        named = [other for other in self.passage.versions if other.name in names]
        if not is_hit and not named:
            # The name and the number may stand apart: "osSku Ubuntu, which means 22.04".
            is_hit = any(
                set(get_terms(own.name)) <= self.passage.terms and own.number in self.passage.numbers
                for own in versions
            )
        self.version = 1 if is_hit else -1 if named else 0
        self._note("version", 3.0, is_hit)

    def _compare_qualifiers(self) -> None:
        if self.change.tiers:
            others = {each for each in self.passage.qualifiers if each.startswith("tier:")}
            self.conflicts += bool(others) and not self.change.tiers & others
        groups = {qualifier.split(":")[0] for qualifier in self.change.qualifiers}
        for qualifier in self.change.qualifiers:
            self._note(qualifier, 1.0, qualifier in self.passage.qualifiers)
        for group in groups:
            own = {each for each in self.change.qualifiers if each.startswith(f"{group}:")}
            others = {each for each in self.passage.qualifiers if each.startswith(f"{group}:")}
            self.conflicts += bool(others) and not own & others
