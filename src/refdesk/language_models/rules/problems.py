"""Extracts the customer's problem, in the customer's words, with its conditions and keywords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.kit import phrases, sentences, verdicts
from refdesk.language_models.rules import foreign

if TYPE_CHECKING:
    from refdesk.playbooks import Turn

MAX_TITLE = 90
MAX_PROBLEM = 300
"""Code points: title, problem, conditions and keywords together fit what an embedding model reads at once."""

MAX_CONDITIONS = 4
MAX_CONDITION = 160
MAX_KEYWORDS = 16
MIN_TELLING = 4
"""With this many telling words, a sentence names the problem whatever they are."""

SHOUTED = 4
"""Fewest words in capitals that count as shouted, rather than as names or codes."""

FEW_TELLING = 2
"""Telling words that are enough if no sentence tells more."""

MOST_BEFORE = 4
"""How many sentences are searched for the problem."""

MAX_REMEMBERED = 1024
"""Most conversations whose problem and keywords are kept in memory: refining rereads what it has read before."""

OPENING_TURNS = 8
"""Turns of the customer that are the opening: the first is often a greeting, and later ones mostly answer questions."""

_ASKING = regex.compile(
    r"""^(?:(?:can|could|would|will)\ (?:you|i|we)\ (?:please\ )?(?:(?:help|assist)\ me\ (?:to\ |with\ )?|please\ )?
    | (?:i(?:'d|\ would)|would)\ (?:really\ )?like\ (?:you\ )?(?:to\ )?(?:please\ )?
    | (?:i\ (?:just\ |really\ |urgently\ )?|just\ )(?:need|want|wanted|wish|have|am\ trying|was\ trying)\ to
      \ (?:please\ )?
    | i(?:'m|\ am)\ (?:trying|looking|hoping|calling|writing)\ (?:to|for|about|because|in\ to)\ (?:please\ )?
    | (?:please\ )?help\ me\ (?:to\ |with\ )? | please\ | i\ need\ (?:some\ )?help\ (?:with\ |to\ )?)""",
    regex.IGNORECASE | regex.VERBOSE,
)
_INTRODUCTION = regex.compile(
    r"""^(?:my\ name(?:'s|\ is)|i'm|i\ am|this\ is)\ \[name[\ \d]{0,3}\](?:,?\ and\b|\ ?[,.;:–-])\s*(?=\S+\s+\S)""",
    regex.IGNORECASE | regex.VERBOSE,
)
_WISH = regex.compile(
    r"""\b(?:need|want|like\ to|help|how\ (?:do|can|to)|why|can(?:'t|\ ?not|\ you|\ i)|could|won't|doesn't|isn't|broken
    |error|fail|problem|issue|wrong|lost|missing|trying|looking|cancel|change|book|schedule|refund|return)""",
    regex.IGNORECASE | regex.VERBOSE,
)
_CIRCUMSTANCE = regex.compile(
    r"""\b(?:don't|do\ not|didn't|did\ not|haven't|can't|cannot|won't|isn't|not|never|no\ longer|forgot|lost|only
    |already|because|since|when|after|if|but|instead|still|wrong|error|version|expired|using)\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_WORD = regex.compile(r"(?<![\w\[])\p{L}[\p{L}\p{N}'’-]*[\p{L}\p{N}](?![\w\]])")
_UNSPACED_WORD = regex.compile(r"[\p{Katakana}ー]{2,12}|[\p{Han}]{2,8}")
FILLERS = frozenset(
    analyse(
        """
        name help goodbye sorry thank thanks provide give time today like may able also call can't don't
        good great hello hi inform information let look moment ok okay ask assist question quite really
        right say see sure take tell understand unfortunately wait welcome yes yet back bye customer day
        full further glad got keep mean new now number one out possible put still thing think try way
        well work first last all anything correct perfect fine successfully require
        """
    )
)
"""What is said in nearly every conversation of a service desk."""

_VAGUE = frozenset(
    analyse(
        """
        problem issue trouble broken wrong doesn't isn't won't stop request urgent asap strange weird something nothing
        anything everything someone hope happen please halp quick question concern stuff
        """
    )
)
"""Words that name no problem by themselves: "It's broken"."""

_INTRODUCED = regex.compile(
    r"""\b(?:my\ name(?:'s|\ is)|name\ is|i'm|i\ am|this\ is|it's|call\ me|dear|mr\.?|mrs\.?|ms\.?|dr\.?)
    \s((?-i:\p{Lu})[\p{L}'’-]+)(?:\s((?-i:\p{Lu})[\p{L}'’-]+))?""",
    regex.IGNORECASE | regex.VERBOSE,
)
_ASKS_NAME = regex.compile(r"\bnames?\b|名前", regex.IGNORECASE)
MAX_NAME_WORDS = 4
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]{1,40}\]")
_I = regex.compile(r"\bi\b(?=['’]|\s)")
_PLEASE = regex.compile(
    r"""(?:,?\s+please|(?:,\s*(?:and\s+)?|\s+and\s+)(?:(?:can|could|would)\ you\ (?:please\ )?(?:help|assist)(?:\ me)?
    |(?:i\ )?(?:was\ |am\ )?(?:hoping|wondering\ if)\ you\ (?:could|can)\ (?:help|assist)(?:\ me)?)
    (?:\ (?:out|with\ (?:that|this|it)))?(?:,?\ please)?)$""",
    regex.IGNORECASE | regex.VERBOSE,
)
"""What can be cut from the end of a title."""

_HOW = regex.compile(r"\bhow (?:do|can|to|would)\b|\bwhere (?:do|can)\b", regex.IGNORECASE)
_BUG = regex.compile(
    r"\b(?:error|bug|crash\w*|broken|fail\w*|not work\w*|doesn't work|won't|stopped|freez\w*|wrong|outage"
    r"|(?:is|are|was|were|been|went|goes|broke[n]?)\ down)\b",
    regex.IGNORECASE,
)
_WISHED = regex.compile(r"\b(?:feature|it would be (?:nice|great)|suggest\w*|please add)\b", regex.IGNORECASE)
_ESCALATING = regex.compile(
    r"""\b(?:escalat\w*|supervisor|manager|transfer(?:red|ring)?\ (?:you|to)|human\ agent|specialist|second\ level
    |tier\ (?:2|two))\b""",
    regex.IGNORECASE | regex.VERBOSE,
)


def escalates(text: str) -> bool:
    """Return whether an agent says that somebody else takes over."""
    return _ESCALATING.search(text) is not None or phrases.has("HANDED_OVER", text)


@dataclass(frozen=True, slots=True)
class Problem:
    """What the customer wants, in the customer's words."""

    title: str
    text: str
    conditions: tuple[str, ...]


@lru_cache(MAX_REMEMBERED)
def find_problem(conversation: tuple[Turn, ...]) -> Problem | None:
    """Return the problem, or `None` if the customer says nothing that could be searched for."""
    turns = list_said(conversation)
    began, after = ([each for is_after, said in turns if is_after == late for each in said] for late in (False, True))
    said = [*began, *after]
    if not said:
        return None
    main = _find_main(began, after)
    opening = [each for _, said in turns[:OPENING_TURNS] for each in said]
    kept = list(_fit(dict.fromkeys([main, *opening]), MAX_PROBLEM))
    conditions = [sentences.shorten(s, MAX_CONDITION) for s in said if s not in kept and _CIRCUMSTANCE.search(s)]
    return Problem(_write_title(main), " ".join(kept), tuple(dict.fromkeys(conditions))[:MAX_CONDITIONS])


def list_said(conversation: Sequence[Turn]) -> list[tuple[bool, list[str]]]:
    """Return what the customer said, turn by turn, each with whether the agent had said more than questions before it.

    Sentences that only say how it went are left out, unless the customer says nothing else.
    """
    told, whole = list[tuple[bool, list[str]]](), list[tuple[bool, list[str]]]()
    is_answered = False
    for turn in leave_names(conversation):
        said = sentences.split(turn.text) if turn.speaker in {"customer", "agent"} else ()
        if turn.speaker == "agent":
            is_answered = is_answered or any(not sentence.endswith(("?", "？")) for sentence in said)
        elif said:
            whole.append((is_answered, [*said]))
            told.append((is_answered, [each for each in said if not (is_answered and _says_outcome(each))]))
    return told if any(said for _, said in told) else whole


def _says_outcome(sentence: str) -> bool:
    """Return whether a sentence says whether something helped, and nothing else."""
    return bool(verdicts.judge_answer(sentence)) and _count_telling(sentence) < MIN_TELLING


def _find_main(began: Sequence[str], after: Sequence[str]) -> str:
    """Return the sentence that names the problem: one that the customer began with, if those say anything."""
    open_still = [sentence for sentence in began if verdicts.judge_answer(sentence) != "worked"]
    for said in (open_still, [sentence for sentence in after if not verdicts.judge_answer(sentence)]):
        counts = [(sentence, _count_telling(sentence)) for sentence in said[:MOST_BEFORE]]
        for sentence, count in counts:
            if count >= MIN_TELLING or (count and _wishes(sentence)):
                return sentence
        if found := next((sentence for sentence, count in counts if count >= FEW_TELLING), ""):
            return found
    said = [*began, *after]
    return next((sentence for sentence in said if _count_telling(sentence)), said[0])


def _wishes(sentence: str) -> bool:
    """Return whether a sentence says what is wanted or what is wrong."""
    if foreign.is_foreign(sentence):
        return phrases.has("WISH", sentence)
    return _WISH.search(sentence) is not None


def _count_telling(sentence: str) -> int:
    """Return how many different telling words a sentence has: words that not every customer says."""
    telling = set(analyse(sentence)) - get_stop_terms() - FILLERS - _VAGUE
    return len([term for term in telling if not term.isdigit()])


def leave_names(conversation: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the turns without those in which customers only answer the question for their name."""
    asked = False
    for turn in conversation:
        if not (asked and turn.speaker == "customer" and len(turn.text.split()) <= MAX_NAME_WORDS):
            yield turn
        asked = turn.speaker == "agent" and _ASKS_NAME.search(turn.text) is not None


def _fit(parts: Sequence[str] | dict[str, None], length: int) -> Iterator[str]:
    for part in parts:
        length -= len(part) + 1
        if length < 0:
            return
        yield part


def _write_title(sentence: str) -> str:
    bare = _INTRODUCTION.sub("", sentence)
    asked = _PLEASE.sub("", _ASKING.sub("", bare).rstrip(" .!?。！？")) or sentence
    if _PLACEHOLDER.sub("", asked).isupper() and len(asked.split()) >= SHOUTED:
        asked = _I.sub("I", asked.lower())
    title = sentences.shorten(asked, MAX_TITLE)
    return title[:1].upper() + title[1:]


@lru_cache(MAX_REMEMBERED)
def find_keywords(conversation: tuple[Turn, ...]) -> tuple[str, ...]:
    """Return the words that both sides use most, each in its most frequent spelling, most distinctive first.

    A word counts by the number of turns that it is in, times the number of sides that say it.
    """
    names = _get_names(conversation)
    spellings: dict[str, Counter[str]] = {}
    weights: Counter[str] = Counter()
    speakers: dict[str, set[str]] = {}
    for turn in leave_names(conversation):
        if turn.call or (turn.speaker == "system" and turn.text.startswith(("{", "["))):
            continue
        told = [each for each in sentences.split(turn.text) if turn.speaker != "customer" or not _says_outcome(each)]
        for term, spelling in _get_words(" ".join(told), names).items():
            spellings.setdefault(term, Counter())[spelling] += 1
            weights[term] += 1
            speakers.setdefault(term, set()).add(turn.speaker)
    ranked = sorted(weights, key=lambda term: -weights[term] * len(speakers[term]))
    return tuple(spellings[term].most_common(1)[0][0] for term in ranked[:MAX_KEYWORDS])


def _get_names(conversation: Sequence[Turn]) -> frozenset[str]:
    """Return the terms in the names by which people introduce themselves or are addressed."""
    found = (match for turn in conversation for match in _INTRODUCED.finditer(turn.text))
    return frozenset(term for match in found for name in match.groups() if name for term in analyse(name))


def _get_words(text: str, names: frozenset[str]) -> dict[str, str]:
    """Return term → spelling of the words of a text that could be keywords, in the order of the text."""
    if sentences.is_unspaced(text):
        return {word: word for word in _UNSPACED_WORD.findall(text)}
    words: dict[str, str] = {}
    for word in _WORD.findall(text):
        terms = analyse(word)
        if len(terms) == 1 and len(terms[0]) > 2 and not {terms[0]} & (get_stop_terms() | FILLERS | names):
            words.setdefault(terms[0], word.lower())
    return words


def guess_issue_type(problem: str, conversation: Sequence[Turn]) -> str:
    """Return `escalation`, `bug`, `feature-request`, `how-to`, or an empty text if nothing shows any of them."""
    if any(turn.speaker == "agent" and escalates(turn.text) for turn in conversation[-6:]):
        return "escalation"
    for name, pattern in (("feature-request", _WISHED), ("bug", _BUG), ("how-to", _HOW)):
        if pattern.search(problem):
            return name
    return ""
