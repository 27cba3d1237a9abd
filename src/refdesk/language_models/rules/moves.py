"""What happens in a case, move by move: what the agent says and does, and what the customer and tools answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import regex

from refdesk.core.machine_orders import is_order
from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.kit import phrases, sentences
from refdesk.language_models.rules import corrections, imperatives

if TYPE_CHECKING:
    from refdesk.playbooks import Case, Turn

MAX_WORDS = 45
"""Most words that an agent says at once that can be one move; if there are more, each sentence is a move."""

MAX_MOVES = 120
"""Most moves of a case that are looked at, from its beginning."""

MAX_SAID = 400
MAX_REMEMBERED = 1024
"""Most cases whose moves are kept in memory: a refinement rereads what the one before has read."""

_SHORT = 4
"""Most words of a sentence beginning with a greeting that is nothing but a greeting."""

Kind: TypeAlias = Literal["say", "call", "log", "greet", "close", "repair", "unsay"]
"""What is said, a call of a tool, a note of what was done; three kinds of talk that are not about the problem; and
words that take back what was said before."""

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
_MARKUP = regex.compile(r"\*\*|__")
_ITEM = regex.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_STRUCTURED = regex.compile(r"[\[{]\s*[\[{\"']")
_ID = regex.compile(r"(?=\S*[_\d])[\p{L}\d_#-]+|\[[^\[\]\n]{1,40}\]|(?:null|none|true|false)", regex.IGNORECASE)
_ERROR = regex.compile(r"\s*Error:\s*(?P<error>\S.{0,80})$", regex.IGNORECASE)
_LABELLED = regex.compile(
    r"^(?:[^\s:]+\s){0,3}[^\s:]+:(?:\s+(?P<value>\S.*))?$|^(?:[^\s:]+\s){0,3}#?(?P<value>\[[^\[\]\n]{1,40}\][.,]?)$"
)
_VOCATIVE = regex.compile(
    r"""^\[name[ \d]{0,3}\],\s* | ,\s*\[name[ \d]{0,3}\](?=[\s.!?,]*$)
    | (?<!\b(?:for|of|to|with|by|from|is|was|at|as|and|or|contact|call|ask|see|mr\.?|mrs\.?|ms\.?|dr\.?
      |named|called|user|it|are|under))
      \s\[name[ \d]{0,3}\](?=\s*\?)""",
    regex.IGNORECASE | regex.VERBOSE,
)
_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})")
_LITTLE = frozenset(analyse("please thank thanks sorry okay sure great unfortunately alright just also now then hello"))


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that the agent says or does, or a tool that is called.

    Attributes:
        case: The number of the case.
        place: Its place among the moves of its case, from 0.
        turn: The number of the turn, which tells what is said at once.
        text: What is said, on one line, or the tool's name.
        arguments: Those of a call.
        before: What the customer or a tool said just before its turn; empty if neither did.
        after: What the customer said or the tool answered next; empty if the agent went on.
        result: The members of what the tool answered, as text, if that is a JSON object.
        after_call: The members of what a tool answered, if that is what `before` is.
        is_found: Whether it is something that helped and that a customer did unasked; its text is that as an order.
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
    is_found: bool = False


@lru_cache(MAX_REMEMBERED)
def read_case(number: int, case: Case) -> tuple[Move, ...]:
    """Return the moves of a case, in order."""
    moves: list[Move] = []
    turns, facts = case.turns, _find_facts(case)
    has_records = any(turn.speaker == "system" and _STRUCTURED.match(turn.text.strip()) for turn in turns)
    for at, turn in enumerate(turns):
        if turn.speaker == "customer" and len(moves) < MAX_MOVES and (fix := _find_fix(turn, moves)) is not None:
            moves.append(Move(number, len(moves), at, "say", fix.order, after=fix.result, is_found=True))
        for kind, said in _read_turn(turn, turns[at - 1] if at else None, has_records):
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
                        read_answer(before.text) if before is not None and before.speaker == "system" else {},
                    )
                )
    return tuple(moves)


def _find_fix(turn: Turn, moves: Sequence[Move]) -> corrections.Fix | None:
    said = tuple(move.text for move in moves if move.kind == "say" and not move.is_found)
    is_awaited = bool(moves) and any(
        move.turn == moves[-1].turn and imperatives.find_order(each) is not None
        for move in moves
        for each in sentences.split_all(move.text)
        if move.kind == "say"
    )
    return corrections.find_fix(turn.text, said, is_awaited)


def _find_facts(case: Case) -> dict[str, str]:
    """Return the facts of this case alone, which its tools were given or answered, each with a slot to replace it."""
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
    """Return the terms by which utterances are compared: without names, numbers, masked values and little words."""
    return [*_get_terms(text)]


@lru_cache(sentences.MAX_REMEMBERED)
def _get_terms(text: str) -> tuple[str, ...]:
    bare = _INNER_NAME.sub(" ", _NUMBER.sub(" ", _PLACEHOLDER.sub(" ", text)))
    terms = [term for term in analyse(bare) if term not in _LITTLE]
    telling = [term for term in terms if term not in get_stop_terms()]
    return tuple(telling or terms)


def read_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object as texts; none if the text is not such an object."""
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


def read_answer(text: str) -> dict[str, str]:
    """Return the members of what a tool answered; for an error in plain text, the error as a member."""
    match = _ERROR.match(text)
    return {"error": match["error"].rstrip(" .")} if match is not None else read_members(text)


def _look(turns: Sequence[Turn], at: int, step: int) -> Turn | None:
    """Return the turn before or after a turn (`step` -1 or 1) if it is the customer's or a tool's answer."""
    place = at + step
    if not 0 <= place < len(turns) or turns[place].speaker == "agent" or turns[place].call:
        return None
    return turns[place]


def _read_turn(turn: Turn, before: Turn | None, has_records: bool) -> Iterator[tuple[Kind, str]]:
    if turn.call:
        yield "call", turn.call
    elif turn.speaker == "system":
        # What follows a call is its answer, not a note.
        if not (before is not None and before.call) and not _is_data(turn.text):
            for sentence in sentences.split(turn.text):
                yield "log", sentence
    elif turn.speaker == "agent":
        for line in sentences.unwrap(turn.text).splitlines():
            said = _ITEM.sub("", _MARKUP.sub("", line))
            if not (has_records and _ITEM.match(line) and _is_field(said)):
                yield from _read_line(" ".join(said.split()))


def _is_field(item: str) -> bool:
    """Return whether a list item only gives a field of a record: agents pass on the records that tools answer with."""
    if _LABELLED.match(item):
        return True
    return sentences.says_something(item) and not sentences.asks(item) and imperatives.is_fragment(item)


def _is_data(text: str) -> bool:
    """Return whether what a tool wrote is a value, an error or a bare id rather than a note of what was done."""
    said = text.strip()
    return _STRUCTURED.match(said) is not None or _ID.fullmatch(said) is not None or _ERROR.match(said) is not None


def _read_line(line: str) -> Iterator[tuple[Kind, str]]:
    """Yield what an agent's line says: pleasantries by their kind, the rest as moves (see `_cut`)."""
    said = list[str]()
    for sentence in sentences.split_all(line):
        sentence = _leave_name(sentence)
        if is_order(sentence) or _is_of_one_case(sentence):
            continue
        if (taken_back := corrections.split_taken_back(sentence)) is not None:
            yield from _cut(said)
            said.clear()
            yield "unsay", taken_back[0]
            sentence = taken_back[1]
        if _CLOSING.search(sentence) or phrases.has("CLOSING", sentence):
            yield "close", sentence
        elif (
            _OFFERING.search(sentence)
            or phrases.has("OFFERING", sentence)
            or (_GREETING.match(sentence) and len(sentence.split()) <= _SHORT)
        ):
            yield "greet", sentence
        elif _REPAIR.search(sentence) or phrases.has("REPAIR", sentence):
            yield "repair", sentence
        elif sentences.says_something(sentence) and sentences.says_something(bare := sentences.drop_greeting(sentence)):
            said.append(bare)
    yield from _cut(said)


def _leave_name(sentence: str) -> str:
    """Return a sentence without the name of the person addressed, which belongs to one case alone."""
    return _VOCATIVE.sub("", sentence)


def _is_of_one_case(sentence: str) -> bool:
    """Return whether a line only introduces a list, or only gives a masked value: "Order ID: [order number]"."""
    if (match := _LABELLED.match(sentence)) is None:
        return False
    value = match["value"] or ""
    return not value or (
        _PLACEHOLDER.search(value) is not None and not any(map(str.isalpha, _PLACEHOLDER.sub("", value)))
    )


def _cut(said: list[str]) -> Iterator[tuple[Kind, str]]:
    """Yield what is said at once as moves."""
    if said and len(" ".join(said).split()) <= MAX_WORDS:
        said = [*_join_to_orders(said)]
    for text in said:
        if get_terms(text):
            yield "say", sentences.shorten(text, MAX_SAID)


def _join_to_orders(said: Sequence[str]) -> Iterator[str]:
    """Yield what is said at once as one move or, if it orders several things, as one for each with what belongs to it.

    A report of what has been done stays with what the customer is to do about it.
    """
    found = [(number, imperatives.find_order(sentence)) for number, sentence in enumerate(said)]
    orders = [number for number, order in found if order is not None and not order.is_report]
    starts = [0, *orders[1:]]
    for start, end in zip(starts, [*starts[1:], len(said)], strict=True):
        yield " ".join(said[start:end])
