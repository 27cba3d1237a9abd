"""What an announcement changes: which thing, how, from when, and what replaces it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from refdesk.impact.dates import find_dates
from refdesk.impact.kinds import ChangeKind
from refdesk.impact.numbers import find_former
from refdesk.impact.products import find_products, name_product
from refdesk.impact.qualifiers import find_qualifiers, find_tiers
from refdesk.impact.series import find_series
from refdesk.impact.subjects import find_counted, find_identifiers, find_pairs, find_subjects, weigh_terms
from refdesk.impact.versions import Version, find_versions
from refdesk.impact.wording import split_sentences

_KINDS: dict[ChangeKind, str] = {
    "retires": r"""\bretir(?:e|es|ed|ing|ement)\b|\bend[- ]of[- ](?:life|support|sale)|\bends?\s(?:support|on)\b
        |\bsunset|\bdiscontinu|\b(?:shut|shutting|closing|wind(?:ing)?)\sdown\b|\bstops?\s(?:running|working)\b|\bbeing\sremoved\b""",
    "breaks": r"""\bbreaking\schange|\bno\slonger\s(?:be\s)?(?:accept|support|available|allow|work|possible|include)
        |\bwill\s(?:stop|fail|be\sblocked|be\sdisabled|be\senforced|be\srejected)\b|\bmandatory\b|\b(?:now|will)\srequires?\b""",
    "deprecates": r"\bdeprecat",
    "price": r"""\bpric(?:e|es|ing)\b[^.]{0,40}\b(?:reduc|chang|increas|lower|cut|updat)
        |\b(?:reduc|lower|increas|chang|cut|new)\w*\b[^.]{0,30}\bpric(?:e|es|ing)\b""",
    "limit": r"""\blimits?\b[^.]{0,40}\b(?:increas|rais|doubl|reduc|lower|chang)
        |\b(?:increas|rais|doubl|lower)\w*\b[^.]{0,50}\blimits?\b|\bup\sfrom\b|\b(?:increased|increase)\s(?:from|by)\b
        |\bfrom\s\d[\d,.]*\s?\w*\sto\s\d|\bmaximum\b[^.]{0,40}\bincreas|\bup\sto\s\d+\s?x\b
        |\bpreviously\b[^.]{0,80}\b(?:requir|limit|max|only)""",
    "renames": r"\brenam(?:e|ed|ing)\b|\bis\snow\scalled\b|\bnew\snames?\b",
    "default": r"\b(?:by|as|new|the)\sdefault\b|\bdefaults?\sto\b|\bdefaulting\b",
}
_PATTERNS: dict[ChangeKind, re.Pattern[str]] = {
    kind: re.compile(pattern, re.IGNORECASE | re.VERBOSE) for kind, pattern in _KINDS.items()
}
_RELEASED = re.compile(
    r"\s*(?:generally,?\s+available|general\s+availability|launched|now\s+(?:generally\s+)?available)\b", re.IGNORECASE
)
_OF_OFFERS: tuple[ChangeKind, ...] = ("price", "limit", "renames")
"""Kinds of change that an announcement which only offers something may still make in passing."""

_LABEL = re.compile(
    r"""^\s*(?:retirement|announcing|update|generally,?\savailable|(?:public\s|private\s)?preview|in\sdevelopment|launched
        |general\savailability|deprecation|notice)\s*:\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_OFFERED = re.compile(
    r"\s*(?:generally,? available|(?:public |private )?preview|in development|announcing|general availability)\b", re.I
)
_RETIREMENT = re.compile(r"\s*retirement\s*:", re.IGNORECASE)
_SUCCESSOR = re.compile(
    r"""\s*(?:[–—-]|\.|,|\band\b|\bplease\b|;)?\s*\b(?:
        (?:please\s+)?(?:migrate|transition|upgrade|move|switch|convert)(?:\s+(?:your|all)\s+(?:\w+\s+){1,3}?)?\s*to
        |replaced?\s+(?:by|with)|will\s+be\s+(?:replaced|succeeded)\s+by|now\s+called)\b\s*(?P<named>\.?[^.;]{3,80})""",
    re.IGNORECASE | re.VERBOSE,
)
_INSTEAD = re.compile(
    r"""\b(?:migrat\w+|transition\w*|upgrad\w+|mov\w+|switch\w*|convert\w*|shift\w*)\b[^.;]{0,90}?\bto\s+
        (?:use\s+|the\s+|an?\s+|latest\s+|a\s+supported\s+)*[^.;,(]{3,80}
      |\b(?:replaced|succeeded|superseded)\s(?:by|with)\s+(?:the\s+|an?\s+)?[^.;,(]{3,80}
      |\brecommend(?:ing|ed)?\s+(?:the\s+|using\s+)?[^.;,(]{3,80}""",
    re.IGNORECASE | re.VERBOSE,
)
_VAGUE = re.compile(r"\b(?:these|this|select|certain|following)\b", re.IGNORECASE)
_SAID = re.compile(r"\b(?:will|has|have|is|are|was)\b|\bretir|\breach", re.IGNORECASE)
_OF_SERIES = re.compile(r"\b(?:series|sku|vm|virtual machine|reserved)", re.IGNORECASE)
_RENAMED = re.compile(
    r"(?P<old>[A-Z][\w/-]+(?: [A-Z][\w/-]+){0,4})\s*"
    r"(?:→|->|⇒|(?:is|are|was|were|will be) (?:now )?(?:called|renamed(?: to)?))"
)
_HEAD = 1200
"""The first this many characters of an announcement say what it is about; the rest is advice and help."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The parts of an announcement that are read.

    Attributes:
        products: Its products, as named by its source.
        due: The months that its source gives for what it announces, each as its first day.
    """

    id: str
    title: str
    text: str
    products: tuple[str, ...] = ()
    due: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an announcement changes.

    Attributes:
        products: Ids of the products that it changes, in whole or in part.
        is_named: Whether its title names them; if not, only its source does.
        related: Products that its source names.
        context: Products that the changed thing is a part of, or is used in.
        series: Series of virtual machines that it is about, folded.
        versions: Versions that it is about.
        terms: Further terms that name its subject, each with its weight.
        pairs: Neighbouring terms of the subject.
        identifiers: Names that it spells out, folded.
        phrases: Names that are no longer valid.
        counted: Terms for what it sets a limit on.
        qualifiers: Words that narrow it: a tier, a system, a cloud, a region.
        tiers: The only tiers that it applies to.
        former: Numbers that were valid before.
        successors: Products, series and versions that replace the changed thing.
        due: When it takes effect; `None` if the announcement does not say.
        start, end: Offsets in the text of the sentence that says it best; equal if only the title does.
    """

    id: str
    kind: ChangeKind
    products: frozenset[str]
    is_named: bool
    related: frozenset[str]
    context: frozenset[str]
    series: frozenset[str]
    versions: tuple[Version, ...]
    terms: dict[str, float]
    pairs: frozenset[tuple[str, str]]
    identifiers: frozenset[str]
    phrases: frozenset[str]
    counted: frozenset[str]
    qualifiers: frozenset[str]
    tiers: frozenset[str]
    former: frozenset[str]
    successors: frozenset[str]
    due: date | None
    start: int
    end: int


def read_change(announcement: Announcement) -> Change | None:
    """Return what an announcement changes, or `None` if it only offers something that is not released yet."""
    title, text = " ".join(announcement.title.split()), announcement.text
    kind, (start, end) = _find_kind(title, text)
    if kind is None:
        return None
    subject, successor = _find_subject(_LABEL.sub("", title), text[start:end])
    named, context = find_subjects(subject)
    head, given = text[:_HEAD], frozenset(map(name_product, announcement.products))
    return Change(
        id=announcement.id,
        kind=kind,
        products=named or given,
        is_named=bool(named),
        related=given,
        context=context,
        series=_find_series(subject, text),
        versions=_find_versions(subject, text[start:end]),
        terms=weigh_terms(subject),
        pairs=find_pairs(subject),
        identifiers=find_identifiers(_INSTEAD.sub(" ", head)),
        phrases=_find_old_names(text) if kind == "renames" else frozenset(),
        counted=find_counted(text[start : end + 300]) if kind == "limit" else frozenset(),
        qualifiers=find_qualifiers(subject),
        tiers=find_tiers(text[start:end]),
        former=find_former(f"{title}. {text}") if kind in ("limit", "price", "default") else frozenset(),
        successors=_find_successors(f"{successor} . {' . '.join(m[0] for m in _INSTEAD.finditer(head))}"),
        due=find_due(announcement, text[start:end]) if kind != "releases" else None,
        start=start,
        end=end,
    )


def find_due(announcement: Announcement, says: str = "") -> date | None:
    """Return when an announcement takes effect, or `None` if it does not say.

    That is the last day named in its title, else in the sentence that says it, else in its text within the month that
    its source gives; else the first day of that month or, without a month, the last day named in its text.
    """
    for text in (announcement.title, says):
        if named := find_dates(text):
            return max(named)
    spoken = find_dates(announcement.text)
    if announcement.due:
        month = max(announcement.due)
        return max((day for day in spoken if (day.year, day.month) == (month.year, month.month)), default=month)
    return max(spoken, default=None)


def _find_kind(title: str, text: str) -> tuple[ChangeKind | None, tuple[int, int]]:
    """Return how an announcement changes something, and the offsets of the sentence that says so."""
    bare, sentences = _LABEL.sub("", title), list(split_sentences(text))[:12]
    kind = _name_kind(title, bare)
    if kind is not None:
        return kind, _find_saying(kind, text, sentences)
    kinds = _OF_OFFERS if _OFFERED.match(title) else tuple(_PATTERNS)
    for start, end in sentences[:6]:
        for each in kinds:
            if _PATTERNS[each].search(text, start, end):
                return each, (start, end)
    return ("releases", sentences[0] if sentences else (0, 0)) if _RELEASED.match(title) else (None, (0, 0))


def _name_kind(title: str, bare: str) -> ChangeKind | None:
    if _RETIREMENT.match(title):
        only_deprecates = re.search("deprecat", bare, re.I) and not re.search("retir", bare, re.I)
        return "deprecates" if only_deprecates else "retires"
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.search(bare)), None)


_TAKES_AWAY: tuple[ChangeKind, ...] = ("retires", "breaks", "deprecates")
_LINK = re.compile(r"\s*[-*]?\s*\[[^\]]*\]\([^)]*\)\s*$")


def _find_saying(kind: ChangeKind, text: str, sentences: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the first sentence on a change of this kind, else on something taken away, else the first of all."""
    spoken = [(start, end) for start, end in sentences if not _LINK.match(text[start:end])]
    ways: list[tuple[ChangeKind, ...]] = [_TAKES_AWAY] if kind in _TAKES_AWAY else [(kind,), _TAKES_AWAY]
    for kinds in ways:
        for start, end in spoken:
            if any(_PATTERNS[each].search(text, start, end) for each in kinds):
                return start, end
    return spoken[0] if spoken else (0, 0)


def _find_subject(title: str, says: str) -> tuple[str, str]:
    """Return what a title is about, using the given sentence if the title is vague, and what replaces it."""
    cut = _SUCCESSOR.search(title)
    subject = title[: cut.start()] if cut else title
    if len(subject.split()) < 2 or _VAGUE.search(subject):
        said = _SAID.split(says, maxsplit=1)[0]
        subject = said if cut else f"{title} {said}"
    return subject, cut["named"] if cut else ""


def _find_series(subject: str, text: str) -> frozenset[str]:
    found = {series.names[0] for series in find_series(subject)}
    if not found and not _OF_SERIES.search(subject):
        return frozenset()
    head = text[:700]
    instead = _INSTEAD.search(head)
    for series in find_series(head[: instead.start()] if instead else head):
        found |= set(series.names[:1] if found else series.names)
    return frozenset(found)


def _find_versions(subject: str, says: str) -> tuple[Version, ...]:
    named = find_versions(subject)
    return tuple(named or (version for version in find_versions(says) if version.name not in ("api", "sdk")))


def _find_old_names(text: str) -> frozenset[str]:
    return frozenset(" ".join(match["old"].split()) for match in _RENAMED.finditer(text))


def _find_successors(text: str) -> frozenset[str]:
    found = {mention.product for mention in find_products(text) if not mention.is_brand}
    found |= {name for series in find_series(text) for name in series.names[:1]}
    return frozenset(found | {f"{version.name} {version.number}" for version in find_versions(text)})
