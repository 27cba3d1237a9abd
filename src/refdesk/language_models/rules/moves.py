"""What happens in a case, move by move: what the agent says and does, and what customer and tools answer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import regex

from refdesk.core.machine_orders import is_order
from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.kit import sentences
from refdesk.language_models.rules import imperatives

if TYPE_CHECKING:
    from refdesk.playbooks import Case, Turn

MAX_WORDS = 45
"""Of what an agent says at once that is one move; a longer turn is one for each sentence."""

MAX_MOVES = 120
"""Of a case that are looked at, from its beginning."""

MAX_SAID = 400
MAX_REMEMBERED = 1024
"""Cases whose moves are kept in memory: a refinement reads again what the one before has read."""

_SHORT = 4
"""Words of a turn that can be nothing but an aside."""

Kind: TypeAlias = Literal["say", "call", "log", "greet", "close", "repair"]
"""What is said, a call of a tool, a note of what was done; and three kinds of talk that are not about the problem."""

_CLOSING = regex.compile(
    r"\banything\ else\b|\b(?:good)?bye\b|\bhave\ a\ (?:nice|good|great|lovely|wonderful)\b|\btake\ care\b"
    r"|\bfurther\ (?:assistance|help|questions)\b|\benjoy\ your\b",
    regex.IGNORECASE | regex.VERBOSE,
)
_OFFERING = regex.compile(
    r"\bhow\ (?:can|may|could)\ i\ (?:help|assist)|\bwhat\ can\ i\ do\ for\ you|\b(?:can|may)\ i\ (?:help"
    r"|assist)\ you\b"
    r"|\bwelcome\ to\b|\bthanks?(?:\ you)?\ for\ (?:calling|contacting|reaching)",
    regex.IGNORECASE | regex.VERBOSE,
)
_REPAIR = regex.compile(
    r"\b(?:don'?t|do\ not|didn'?t|did\ not|can'?t|cannot)\ (?:quite\ |really\ |fully\ )?(?:understand|follow|catch"
    r"|get)\b"
    r"|\b(?:could|can)\ you\ (?:please\ )?(?:repeat|rephrase|clarify)\b|\bonly\ able\ to\ (?:help|assist)\b",
    regex.IGNORECASE | regex.VERBOSE,
)
_GREETING = regex.compile(
    r"^(?:hello|hi|hey|good\ (?:morning|afternoon|evening|day)|greetings)\b[^?]*$", regex.IGNORECASE | regex.VERBOSE
)
_INNER_NAME = regex.compile(r"(?<=[\p{Ll},;:’'\"]\s)(?-i:\p{Lu}[\p{L}’'-]+)")
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]{1,40}\]")
_NUMBER = regex.compile(r"(?<!\w)[£$€]?\d[\d.,:/-]*(?:st|nd|rd|th|am|pm|%)?(?!\w)")
_FACT = regex.compile(r"(?=.*[\p{Lu}\d])[^\n{}\[\]]{2,60}")
"""A value that can only be known from this case: it has a capital or a digit."""

NOT_FACTS = frozenset({"apiname", "message", "type", "requesttype", "request_type", "kind", "action"})
_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})")
_LITTLE = frozenset(analyse("please thank thanks sorry okay sure great unfortunately alright just also now then hello"))


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that the agent says or does, or a tool that is called.

    Attributes:
        case: The number of the case.
        place: Among the moves of its case, from 0.
        turn: The number of the turn, so that what is said at once is known.
        text: What is said, on one line, or the tool's name.
        arguments: Of a call.
        before: What the customer or a tool said last before it; empty at the start.
        after: What the customer said or the tool answered next; empty where the agent went on.
        result: What the tool answered, where it is a JSON object: its members as text.
        after_call: Whether `before` is what a tool answered, and its members.
    """

    case: int
    place: int
    turn: int
    kind: Kind
    text: str
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    before: str = ""
    after: str = ""
    result: dict[str, str] = field(default_factory=dict[str, str])
    after_call: dict[str, str] = field(default_factory=dict[str, str])


@lru_cache(MAX_REMEMBERED)
def read_case(number: int, case: Case) -> tuple[Move, ...]:
    """Return the moves of a case, in order."""
    moves: list[Move] = []
    turns, facts = case.turns, _find_facts(case)
    for at, turn in enumerate(turns):
        for kind, said in _read_turn(turn, turns[at - 1] if at else None):
            text = said if kind == "call" else _generalise(said, facts)
            if len(moves) < MAX_MOVES:
                before, after = _look(turns, at, -1), _look(turns, at, 1)
                moves.append(
                    Move(
                        number,
                        len(moves),
                        at,
                        kind,
                        text,
                        read_members(turn.text) if kind == "call" else {},
                        before.text[:MAX_SAID] if before is not None else "",
                        after.text[:MAX_SAID] if after is not None else "",
                        read_members(after.text) if kind == "call" and after is not None else {},
                        read_members(before.text) if before is not None and before.speaker == "system" else {},
                    )
                )
    return tuple(moves)


def _find_facts(case: Case) -> dict[str, str]:
    """Return what is true of this case alone, by how it is said: the values that its tools were given and answered."""
    facts: dict[str, str] = {}
    for turn in case.turns:
        for name, value in read_members(turn.text).items() if turn.speaker == "system" else ():
            if _FACT.fullmatch(value) and name.casefold() not in NOT_FACTS:
                facts.setdefault(value, f"[{name_in_words(name)}]")
    return facts


def _generalise(text: str, facts: dict[str, str]) -> str:
    """Return an utterance with the facts of its case as slots: "The Hyatt is free" as "The [hotel name] is free"."""
    for value in sorted(facts, key=len, reverse=True):
        if value in text:
            text = regex.sub(rf"(?<![\w\[]){regex.escape(value)}(?![\w\]])", facts[value], text)
    return text


def name_in_words(key: str) -> str:
    """Return the name of a tool or a member in words: "HotelName" becomes "hotel name"."""
    return " ".join(_CAMEL.sub(" ", key.replace("_", " ").replace("-", " ")).lower().split())


def get_terms(text: str) -> list[str]:
    """Return the terms by which two utterances are compared: without names, numbers, masked values and little words."""
    return [*_get_terms(text)]


@lru_cache(sentences.MAX_REMEMBERED)
def _get_terms(text: str) -> tuple[str, ...]:
    bare = _INNER_NAME.sub(" ", _NUMBER.sub(" ", _PLACEHOLDER.sub(" ", text)))
    terms = [term for term in analyse(bare) if term not in _LITTLE]
    telling = [term for term in terms if term not in get_stop_terms()]
    return tuple(telling or terms)


def read_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object as texts; none where the text is no object."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    return {
        key: item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for key, item in members.items()
    }


def _look(turns: Sequence[Turn], at: int, step: int) -> Turn | None:
    """Return what the customer or a tool said next to a turn, before the agent says something else."""
    place = at + step
    if not 0 <= place < len(turns) or turns[place].speaker == "agent" or turns[place].call:
        return None
    return turns[place]


def _read_turn(turn: Turn, before: Turn | None) -> Iterator[tuple[Kind, str]]:
    if turn.call:
        yield "call", turn.call
    elif turn.speaker == "system":
        # What follows a call is its answer.
        if not (before is not None and before.call) and not read_members(turn.text):
            for sentence in sentences.split(turn.text):
                yield "log", sentence
    elif turn.speaker == "agent":
        for line in turn.text.splitlines():
            yield from _read_line(" ".join(line.split()))


def _read_line(line: str) -> Iterator[tuple[Kind, str]]:
    """Yield what a line of an agent says: pleasantries by their kind, what is short as one move."""
    said = list[str]()
    for sentence in sentences.split_all(line):
        if is_order(sentence):
            continue
        if _CLOSING.search(sentence):
            yield "close", sentence
        elif _OFFERING.search(sentence) or (_GREETING.match(sentence) and len(sentence.split()) <= _SHORT):
            yield "greet", sentence
        elif _REPAIR.search(sentence):
            yield "repair", sentence
        elif sentences.says_something(sentence) and sentences.says_something(bare := sentences.drop_greeting(sentence)):
            said.append(bare)
    if said and len(" ".join(said).split()) <= MAX_WORDS:
        said = [*_join_to_orders(said)]
    for text in said:
        if get_terms(text):
            yield "say", sentences.shorten(text, MAX_SAID)


def _join_to_orders(said: Sequence[str]) -> Iterator[str]:
    """Yield what is said at once as one move; where it orders several things, one for each, with what is said to it.

    What is reported to have been done stays with what the customer is to do about it.
    """
    found = [(number, imperatives.find_order(sentence)) for number, sentence in enumerate(said)]
    orders = [number for number, order in found if order is not None and not order.is_report]
    starts = [0, *orders[1:]]
    for start, end in zip(starts, [*starts[1:], len(said)], strict=True):
        yield " ".join(said[start:end])
