"""What changes the course of a conversation: a fix that customers found themselves, and advice that is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.kit import phrases, sentences, verdicts
from refdesk.language_models.rules import foreign, imperatives
from refdesk.language_models.rules.verbs import COMMON, get_base, is_past

FOLLOWED = 0.6
"""If an agent has said this share of the terms of what a customer did before, it counts as the agent's advice."""

_MARK = regex.compile(
    r"""\bnever\s?mind\b | \bforget\ (?:about\ )?it\b | \bturn(?:s|ed)\ out\b | \b(?:figured|worked
        |sorted)\ (?:it|this|that)\ out\b
    | \bfound\ (?:it|out|the\ (?:problem|issue|fix|cause|solution|culprit|answer|reason))\b
    | \b(?:by\ )?(?:my|our)sel(?:f|ves)\b | \bon\ my\ own\b | \bignore\ me\b | \bno\ need\b | \bin\ the\ meantime\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
"""How customers say that they need no help any more."""

_RESULT = regex.compile(
    r"""(?:^|[,;]\s*|\b(?:and|so|then|after\ which|but)\s+)(?:(?:and|so|then|but|now|suddenly|finally)\s+)*
    (?P<result>(?:it|that|this|everything|all|(?:my|the|our)\s\p{L}+(?:\s\p{L}+)?|which|we|i)(?:['’]s|\ is|\ are
        |['’]m|\ am|\ has|\ have)?\s
      (?:now\ |all\ |finally\ |just\ |been\ |actually\ |immediately\ )*
      (?:works?|worked|working|fixed|solved|resolved|fine|back|ok|okay|good|great|sorted|came\ back|went\ away
        |gone|did\ the\ trick|helped
        |online|connected|started\ working|in\ again)\b.*
      |(?:works?|working|fixed|solved|resolved|sorted|all\ good|problem\ solved)\b.*)$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_ADVERBS = r"(?:(?:just|then|now|also|simply|finally|actually|already|went\ ahead\ and|have|['’]ve|had|only)\s+)*"
_HAD_TO = regex.compile(
    rf"\bI\s+{_ADVERBS}(?:had|needed)\s+(?:only\s+|just\s+)?to\s+(?P<plain>\p{{Ll}}[\p{{Ll}}-]+)\b(?P<rest>[^.!?;\n]*)",
    regex.IGNORECASE,
)
_TRIED = regex.compile(rf"\bI\s+{_ADVERBS}tried\s+(?P<doing>\p{{Ll}}+ing)\b(?P<rest>[^.!?;\n]*)", regex.IGNORECASE)
_DID = regex.compile(
    rf"\bI(?:['’]ve)?\s+{_ADVERBS}(?P<past>\p{{Ll}}[\p{{Ll}}-]+)\b(?P<rest>[^.!?;\n]*)", regex.IGNORECASE
)
_DOING = regex.compile(
    r"(?:^|[,;:.!–-]\s*|\b(?:but|and|so|that|after|by|actually)\s+)(?P<doing>(?!nothing|something|anything|everything|having"
    r"|being|doing|trying|using)\p{Ll}{2,}ing)\b(?P<rest>[^.!?;\n]{2,80}?)"
    r"(?=,?\s+(?:has\s+|have\s+|just\s+|actually\s+|finally\s+|seems?\s+to\s+have\s+)*(?:fixed|solved|resolved"
    r"|did\ the\ trick|helped|worked|sorted"
    r"|made\ it\ work|it\ (?:works?|worked)|everything\ works))",
    regex.IGNORECASE,
)
_NO_FIX = frozenset(
    """
    had found got thought saw figured realized realised noticed said tried did was forgot meant needed wanted managed
    followed solved fixed resolved worked sorted discovered spotted missed received heard asked lost hoped guessed knew
    felt read learned learnt remembered told understood spoke talked been came
    """.split()  # noqa: SIM905
)
"""Past forms that do not say what helped."""

_OWN = {"my": "your", "mine": "yours", "me": "you", "myself": "yourself", "our": "your", "i": "you", "i'd": "you had"}
_PERSON = regex.compile(r"\b(?:my|mine|me|myself|our|I'd|I)\b", regex.IGNORECASE)

_CLAUSES = regex.compile(r"\s*[;；]\s*|[,，、:：]\s*|\s+[–—-]+\s+")
_TAKEN_BACK = regex.compile(
    r"""^(?:(?:oh|oops|sorry|apologies|wait|hang\ on|hold\ on|actually|no|i['’]?m\ sorry|my\ apologies|please|but
        |and)[\s,.!-]*)*
    (?: (?:that(?:['’]s|\ is|\ was)|this\ (?:is|was)|what\ i\ (?:just\ )?(?:said|told\ you|wrote
        |suggested)(?:\ \p{L}+){0,3}?\ (?:is|was)
        |i\ was|(?:my|the)\ (?:last|previous)\ \p{L}+\ (?:was|is)|i\ (?:gave|told|sent)\ you)
        \ (?:\p{L}+\ ){0,2}?(?:wrong|incorrect|a\ mistake|mistaken|not\ (?:right|correct)|my\ (?:mistake|error)
        |an\ error
        |the\ wrong\ (?:\p{L}+\ )?(?:one|steps?|article|instructions?|advice|menu|setting|answer|information
        |procedure|model|page|option|button))
      | (?:that['’]?s\ )?my\ (?:mistake|bad|error) | scratch\ that | i\ take\ (?:that|it)\ back | correction
        | i\ stand\ corrected
      | (?:ignore|forget|disregard)\ (?:that|this)(?:\ (?:please|last\ \p{L}+|advice|suggestion|step|part))?
      | (?:ignore|forget|disregard)\ (?:what|everything)\ i\b.* | (?:ignore|forget|disregard)\ my\ (?:last|previous)\b.*
      | i\ (?:misspoke|misread|made\ a\ mistake|mixed\ \p{L}+\ up|mixed\ up|got\ (?:that|it)\ wrong|confused)\b.*
    )[\s.!,]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_AFTER_ALL = regex.compile(r"\b(?:after\ all|any\s?more)\b", regex.IGNORECASE)
_INSTEAD = regex.compile(r"^(?:rather|instead|please|but|and|so)\b[\s,]*", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fix:
    """What a customer did that helped, as an order or, if it is not in English, as it was said; and the result."""

    order: str
    result: str


@lru_cache(sentences.MAX_REMEMBERED)
def find_fix(text: str, advice: tuple[str, ...], is_awaited: bool) -> Fix | None:
    """Return what helped and what a customer did without being told to.

    Args:
        text: What the customer says.
        advice: What agents have said before: whoever did that has followed advice.
        is_awaited: Whether the customer says this in answer to advice; then it must be said to be their own finding.
    """
    is_marked = _MARK.search(text) is not None or phrases.has("MENDED", text)
    if (is_awaited and not is_marked) or verdicts.judge_end(text) != "worked":
        return None
    found = _find_foreign(text) if foreign.is_foreign(text) else _find_english(text)
    return found if found is not None and not _is_followed(found.order, advice) else None


def _find_english(text: str) -> Fix | None:
    line = " ".join(text.split())
    for pattern in (_HAD_TO, _TRIED, _DOING, _DID):
        for match in pattern.finditer(line):
            result = _RESULT.search(match["rest"])
            rest = match["rest"][: result.start()] if result is not None else match["rest"]
            if verb := _get_verb(match):
                order = _tell(f"{verb}{imperatives.restore_all(rest)}".rstrip(" ,;:-–"))
                if _tells(order):
                    return Fix(order, result["result"] if result is not None else line)
    return None


def _get_verb(match: regex.Match[str]) -> str:
    groups = match.groupdict()
    if plain := groups.get("plain"):
        return "" if plain in {"be", "have", "know"} else plain
    if doing := groups.get("doing"):
        return get_base(doing)
    past = match["past"].casefold()
    return get_base(past) if is_past(past) and past not in _NO_FIX else ""


def _tell(order: str) -> str:
    return _PERSON.sub(lambda match: _OWN[match[0].casefold()], order)


def _tells(order: str) -> bool:
    verb, _, rest = order.partition(" ")
    return bool(rest) or verb.casefold() in COMMON


def _find_foreign(text: str) -> Fix | None:
    """Return the sentence that says most, without the clauses that only say that no help is needed."""
    said = [
        " ".join(part for part in _CLAUSES.split(each) if not _says_only_mended(part)) for each in sentences.split(text)
    ]
    told = max(said, key=len, default="")
    return Fix(told, told) if len(_get_terms(told)) > 1 or (told and sentences.is_unspaced(told)) else None


def _says_only_mended(clause: str) -> bool:
    return phrases.has("MENDED", clause) or not sentences.says_something(clause)


def _is_followed(order: str, advice: Sequence[str]) -> bool:
    terms = _get_terms(order)
    return bool(terms) and any(len(terms & _get_terms(said)) >= FOLLOWED * len(terms) for said in advice)


def _get_terms(text: str) -> frozenset[str]:
    return frozenset(analyse(text)) - get_stop_terms()


@lru_cache(sentences.MAX_REMEMBERED)
def split_taken_back(sentence: str) -> tuple[str, str] | None:
    """Return the part of a sentence that takes advice back, and the order that replaces it, which may be empty.

    Return `None` if the sentence takes nothing back.
    """
    clauses = _CLAUSES.split(sentence)
    if not (phrases.has("TAKEN_BACK", sentence) or any(_TAKEN_BACK.match(clause) for clause in clauses)):
        order = imperatives.find_order(sentence)
        is_after_all = order is not None and order.is_forbidden and _AFTER_ALL.search(sentence)
        return (sentence, "") if is_after_all else None
    starts = [place for place, clause in enumerate(clauses) if _is_order(clause)]
    if not starts:
        return sentence, ""
    lead = _INSTEAD.sub("", clauses[starts[0]])
    return ", ".join(clauses[: starts[0]]), ", ".join([lead, *clauses[starts[0] + 1 :]])


def _is_order(clause: str) -> bool:
    if _TAKEN_BACK.match(clause) or phrases.has("TAKEN_BACK", clause):
        return False
    bare = _INSTEAD.sub("", clause)
    order = imperatives.find_order(bare)
    return order is not None and not order.is_forbidden
