"""What an announcement is about, in its own words: terms of its title that name it, and names that it spells out."""

from __future__ import annotations

import re
from itertools import pairwise

from refdesk.impact.common_terms import COMMON_TERMS
from refdesk.impact.dates import MONTH, MONTHS
from refdesk.impact.products import find_products
from refdesk.impact.qualifiers import REGION
from refdesk.impact.series import find_series
from refdesk.impact.versions import find_versions
from refdesk.impact.wording import get_terms

_ANY_MONTH = r"(?:jan\w*|feb\w*|mar(?:ch)?|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*)"
_FRAME = re.compile(
    rf"""\b(?:will\s+(?:be\s+)?(?:fully\s+)?|is\s+|are\s+|to\s+be\s+|now\s+)?
        (?:retir(?:e|es|ed|ing|ement)|deprecat(?:ed|ion|ing)|discontinued|removed|closing\s+down|stop\s+running|reach(?:es)?)\b
      | \bend[- ]of[- ](?:life|support)(?:\s+reminder)?(?:\s+of)?\b | \b(?:will\s+)?ends?\s+(?:support(?:\s+for)?|on)\b
      | \bends\b | \bsupport\s+(?:for|of|ends)\b | \b(?:migrate|upgrade|migration)\s+(?:from|of)\b
      | \bremove\s+dependency\s+on\b | \b(?:is|are)\s+(?:now\s+)?(?:generally\s+)?available\b | \bnow\b
      | \b(?:by|on|before|after|starting|effective|in|until|from|through|early|late)\s+(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?
        (?:early\s+|late\s+)?{_ANY_MONTH}\b\.?\s*\d{{0,2}}(?:st|nd|rd|th)?\s*,?\s*(?:\d{{4}})?
      | \b{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\s*,?\s*\d{{4}}\b | \b20\d\d\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What titles say about any subject."""

_GENERIC = frozenset(
    get_terms(
        f"""azure microsoft service support feature series sku tier plan new existing customer creation blocked request
        account resource available availability preview version latest update upgrade app application instance node
        virtual machine vm system use using used date extended remain select certain related change changing
        announcement announcing release default limit limited increased increase price pricing reduction region general
        mode managed legacy old classic protocol hosting retirement retire deprecation deprecate end life stop run
        running migrate migration pool profile built reminder remove dependency these them public enhancement naming
        standard image operated deployment aka runtime api type lts nosql per add {" ".join(MONTHS)}"""
    )
)
_IGNORED_IN_PAIRS = frozenset(get_terms(f"azure microsoft {' '.join(MONTHS)}"))
_RUNTIMES = frozenset(("python", "node", "java", "php", "powershell", "dotnet", "prometheus"))
_CAMEL = re.compile(r"(?<![\w-])(?:[a-z0-9]+|[A-Z][a-z0-9]+)(?:[A-Z][a-z0-9]{2,})+(?!\w)")
_IDENTIFIER = re.compile(
    r"(?<![\w./:@])(?:[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[a-z][a-z0-9]+(?:[-_][a-z0-9]+)+|[A-Z]{2,}(?:_[A-Z0-9]+)+)(?![\w/@.])"
)
_TITLED = re.compile(r"(?<![\w.] )(?<!\w)[A-Z][a-z]+(?: (?:[A-Z][a-z]+|[A-Z]{2,5})){1,3}(?!\w)")
_COMMON_NAME = re.compile(
    r"^(?:azure|microsoft|learn|required|recommended|help|key|next|take|what|if|for|the|this|after|on|starting|existing"
    r"|new|you|your|we|to|in)\b|\b(?:support|actions?|portal|dates?|questions?)$"
    r"|^(?:long|end|built|up|on|next|self|pay|pre|re|non|multi|step|third|cost|high|low)-",
    re.IGNORECASE,
)
_PART_OF = re.compile(r"\s(?:in|on|for|from|with|of|by)\s", re.IGNORECASE)


def find_subjects(subject: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the products that a subject names, and those that it is only a part of: B in "A on B"."""
    mentions = find_products(subject)
    found = frozenset(m.product for m in mentions if not m.is_brand) or frozenset(m.product for m in mentions)
    if len(found) < 2:
        return found, frozenset()
    for one, other in pairwise(mentions):
        if not subject[one.end : other.start].strip() and one.product != other.product:
            # "Azure Monitor SCOM Managed Instance" is a part of Azure Monitor.
            return frozenset((other.product,)), found - {other.product}
    for between in _PART_OF.finditer(subject):
        first = found & {mention.product for mention in find_products(subject[: between.start()])}
        if first:
            return first, found - first
    return found, frozenset()


def weigh_terms(subject: str) -> dict[str, float]:
    """Return the terms that name a subject, without products, series, versions and regions, each with its weight.

    Initials, names with digits and runtimes weigh most; terms common in the titles of announcements weigh least.
    """
    weights: dict[str, float] = {}
    for word in re.findall(r"[^\s,;:()\"“”‘’&/]+", split_camel(_take_out_names(_FRAME.sub(" ", subject)))):
        for term in get_terms(word):
            if term not in _GENERIC and len(term) >= 2 and (not term.isdigit() or len(term) == 4):
                weights[term] = max(weights.get(term, 0.0), _weigh(word) * COMMON_TERMS.get(term, 1.0))
    return weights


def find_pairs(subject: str) -> frozenset[tuple[str, str]]:
    """Return the neighbouring terms of a subject."""
    terms = [term for term in get_terms(_FRAME.sub(" ", subject)) if term not in _IGNORED_IN_PAIRS]
    return frozenset(pairwise(terms))


def find_identifiers(text: str) -> frozenset[str]:
    """Return names of settings, packages and parts that a text spells out, folded."""
    found = {match[0] for match in _IDENTIFIER.finditer(text)}
    found |= {match[0] for match in _TITLED.finditer(text) if not find_products(match[0])}
    return frozenset(name.casefold() for name in found if len(name) >= 7 and not _COMMON_NAME.search(name))


def find_counted(text: str) -> frozenset[str]:
    """Return the terms for what a text counts: the rules in "2,000 security rules per NSG"."""
    found = re.finditer(r"(?<![\w.])\d[\d,.]*\s+(?:new\s+)?([a-z]+(?:\s+(?:or\s+)?[A-Za-z]+)?)", text)
    return frozenset(term for match in found for term in get_terms(match[1])) - _GENERIC


def split_camel(text: str) -> str:
    """Return a text with names like `dnsEndpointType` split into words."""
    return _CAMEL.sub(lambda match: " ".join(re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", match[0])), text)


def _take_out_names(text: str) -> str:
    spans = [match.span() for match in REGION.finditer(text)]
    for finder in (find_products, find_versions, find_series):
        spans += [(named.start, named.end) for named in finder(text)]
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text


def _weigh(word: str) -> float:
    if word.lower() in _RUNTIMES:
        return 2.5
    letters = re.sub(r"[^A-Za-z0-9]", "", word)
    mixes = any(map(str.isdigit, letters)) and any(map(str.isalpha, letters))
    if (len(letters) >= 3 and (letters.isupper() or mixes)) or re.search(r"[a-z][A-Z]|[A-Z]{2,}[a-z]", word):
        return 2.0
    return 1.0
