"""What the cases show about an act: how it was answered, when it was done and when not, and what it led to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

from refdesk.core.machine_orders import is_order
from refdesk.kit import phrases, sentences
from refdesk.language_models.rules import imperatives
from refdesk.language_models.rules.moves import get_terms

if TYPE_CHECKING:
    from refdesk.language_models.rules.acts import Act
    from refdesk.language_models.rules.moves import Move

MAX_FIELDS = 4
MAX_QUOTE = 60
MIN_TELLING = 2
"""Fewest cases in which something must be seen to be a condition."""

DOMINANT = 0.9
"""Share of a tool's answers before an act that must have one value for the act to depend on it."""

_MASKED = regex.compile(r"\[[^\[\]\n]{1,40}\]")
_REFUSAL = regex.compile(
    r"""\b(?:don'?t\ (?:have|know|remember|recall)|do\ not\ (?:have|know|remember|recall)|can'?t|cannot|can\ not
    |forgot|forgotten|lost|not\ sure
    |no\ idea|unable|won'?t|refuse|didn'?t\ (?:bring|get|save))\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_AGREES = regex.compile(
    r"^\W*(?:yes|yeah|yep|yup|sure|ok|okay|great|perfect|thanks|thank\ you|correct|please|fine|good|sounds|alright"
    r"|awesome"
    r"|excellent|got\ it|that'?s\ (?:fine|great|right|perfect|correct|it))\b",
    regex.IGNORECASE | regex.VERBOSE,
)
_DECLINES = regex.compile(r"^\W*(?:no|nope|nah|not\ really|never\ mind)\b", regex.IGNORECASE | regex.VERBOSE)
_OBJECTS = regex.compile(r"\b(?:not|no|nothing|never|still|too)\b|n['’]t\b", regex.IGNORECASE)
_QUESTION = regex.compile(r"[?？]\s*$")
_OWN_MEMBER = regex.compile(
    r"(?:^|[_-]|(?<=\p{Ll}))(?:i[dD]|ID|[nN]ame|[eE]-?mail|[pP]hone|[aA]ddress|[zZ]ip|[bB]irth)$|^(?:id|name|email)$"
)
"""Names of members that say who or which one it is."""

_IDENTIFIER = regex.compile(r"(?=.*\d)(?=.*[\p{L}_#-])[\w#-]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """How customers answered an act: counts by kind."""

    gave: int = 0
    refused: int = 0
    agreed: int = 0
    declined: int = 0

    @property
    def count(self) -> int:
        """The number of all answers."""
        return self.gave + self.refused + self.agreed + self.declined


def read_replies(act: Act) -> Reply:
    """Return how the customers answered an act."""
    counts = Counter(classify(move.after) for move in act.moves if move.after and not move.after.startswith("{"))
    return Reply(counts["gave"], counts["refused"], counts["agreed"], counts["declined"])


@lru_cache(sentences.MAX_REMEMBERED)
def classify(text: str) -> str:
    """Return whether a customer refused, declined, agreed, or gave something else."""
    if _refuses(text):
        return "refused"
    if _DECLINES.match(text) or phrases.has("DECLINES", text):
        return "declined"
    return "agreed" if _AGREES.match(text) or phrases.has("AGREES", text) else "gave"


def _refuses(text: str) -> bool:
    return _REFUSAL.search(text) is not None or phrases.has("REFUSES", text)


def write_check(act: Act, manner: str) -> str:
    """Return what showed that a step was done, judging by what was said or answered next; empty if nothing did."""
    if act.kind == "call":
        return _write_tool_check(act)
    reply = read_replies(act)
    if act.kind != "say" or not reply.count:
        return ""
    if manner in {"ask", "whether"}:
        return _write_asked(reply) if manner == "ask" else _write_whether(reply)
    if reply.agreed * 2 >= reply.count:
        return f"The customer agrees or thanks ({reply.agreed} of {reply.count})."
    if manner == "tell":
        return ""
    replies = [said for move in act.moves for said in sentences.split(move.after) if not _QUESTION.search(said)]
    said = next((reply for reply in replies if not _OBJECTS.search(reply)), replies[0] if replies else "")
    return f"The customer says so, as in “{sentences.shorten(_quote(said), MAX_QUOTE)}”." if said else ""


def _write_asked(reply: Reply) -> str:
    if reply.refused * 4 >= reply.count and reply.refused >= MIN_TELLING:
        return f"The customer gives it ({reply.count - reply.refused} of {reply.count}) or cannot ({reply.refused})."
    return f"The customer gives it ({reply.count - reply.refused} of {reply.count})."


def _write_whether(reply: Reply) -> str:
    if not reply.agreed + reply.declined + reply.refused:
        return f"The customer answers ({reply.gave})."
    counts = {"yes": reply.agreed, "no": reply.declined + reply.refused, "something else": reply.gave}
    said = [f"{word} ({count})" for word, count in counts.items() if count]
    return f"The customer says {' or '.join(said)}."


def _write_tool_check(act: Act) -> str:
    names = Counter(name for move in act.moves for name in move.result if name.casefold() not in {"apiname", "id"})
    often = [name for name, count in names.most_common(MAX_FIELDS) if count * 3 >= len(act.moves)]
    if often:
        return f"It answers with {', '.join(often)}."
    said = Counter(
        sentences.shorten(_quote(first), MAX_QUOTE)
        for move in act.moves
        if not move.result and (first := next(iter(sentences.split(move.after)), ""))
    )
    return f"It answers, as in “{said.most_common(1)[0][0]}”." if said else ""


def find_condition(act: Act, others: Sequence[Act]) -> str:
    """Return, as a clause, when an act is done rather than another at the same point; empty if nothing tells.

    It may depend on what a tool has answered, or on whether the customer agreed, declined, or could not give what was
    asked.
    """
    mine = [move for move in act.moves if move.before]
    theirs = [move for other in others if other is not act for move in other.moves if move.before]
    if len({move.case for move in mine}) < MIN_TELLING or len(theirs) < MIN_TELLING:
        return ""
    for say, test in _get_tests(mine):
        yes, no = _share(mine, test), _share(theirs, test)
        if yes >= 0.6 and no <= yes / 3:
            return say
    return ""


def _get_tests(moves: Sequence[Move]) -> list[tuple[str, Callable[[Move], bool]]]:
    """Return what could be the condition, as clauses and tests, the strongest first."""
    tests: list[tuple[str, Callable[[Move], bool]]] = []
    # What a tool answers is data: a text in it that gives orders cannot be a condition either.
    values = Counter(
        (name, value)
        for move in moves
        for name, value in move.after_call.items()
        if len(value) <= MAX_QUOTE and value.strip()
    )
    names = Counter(name for move in moves for name in move.after_call)
    for (name, value), count in values.most_common(5):
        if (
            count >= max(MIN_TELLING, DOMINANT * names[name])
            and name.casefold() != "apiname"
            and _is_telling(name, value)
        ):
            tests.append((f"the tool answers {name} “{value}”", _holds(name, value)))
    for name, count in names.most_common(8):
        if count >= MIN_TELLING and name.casefold() not in {"apiname", "id"}:
            tests.append((f"the tool answers with {name}", _has(name)))
    for clause, kind in (
        ("the customer cannot give it", "refused"),
        ("the customer declines", "declined"),
        ("the customer agrees", "agreed"),
    ):
        tests.append((clause, _is(kind)))
    return tests


def _is_telling(name: str, value: str) -> bool:
    """Return whether a value can be a condition: it gives no order and names nobody, and nothing of one case alone."""
    if is_order(value) or _MASKED.fullmatch(value.strip()) or _OWN_MEMBER.search(name):
        return False
    return _IDENTIFIER.fullmatch(value.strip()) is None


def _holds(name: str, value: str) -> Callable[[Move], bool]:
    return lambda move: move.after_call.get(name) == value


def _has(name: str) -> Callable[[Move], bool]:
    return lambda move: name in move.after_call


def _is(kind: str) -> Callable[[Move], bool]:
    return lambda move: not move.after_call and classify(move.before) == kind


def _share(moves: Sequence[Move], test: Callable[[Move], bool]) -> float:
    return sum(map(test, moves)) / len(moves)


def find_refusals(acts: Sequence[Act], name: Callable[[Act], str]) -> list[str]:
    """Return, for what customers could not give, what was done next, most frequent first."""
    followers: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    wanted: dict[str, str] = {}
    for act in acts:
        asked = imperatives.get_wanted(act.moves[0].text) if act.kind == "say" else ""
        for move in act.moves:
            if asked and move.after and _refuses(move.after):
                counts[act.id] += 1
                wanted[act.id] = asked.removeprefix(imperatives.CUSTOMERS)
                if (after := _find_next(move, acts)) is not None and after is not act:
                    followers[act.id][name(after)] += 1
    found: list[str] = []
    for id, count in counts.most_common():
        then, often = followers[id].most_common(1)[0] if followers[id] else ("", 0)
        if often >= min(MIN_TELLING, count) and often * 3 >= count:
            found.append(f"If the customer cannot give the {wanted[id]} ({count}×): {then} ({often} of {count}).")
    return found


def _find_next(move: Move, acts: Sequence[Act]) -> Act | None:
    later = [
        (each.place, number)
        for number, act in enumerate(acts)
        for each in act.moves
        if each.case == move.case and each.place > move.place
    ]
    return acts[min(later)[1]] if later else None


def count_led_on(act: Act, after: Sequence[Act]) -> int:
    """Return in how many cases an act was followed by one of those that come after it in the playbook."""
    last: dict[int, int] = {}
    for other in after:
        for move in other.moves:
            last[move.case] = max(last.get(move.case, -1), move.place)
    first: dict[int, int] = {}
    for move in act.moves:
        first.setdefault(move.case, move.place)
    return sum(last.get(case, -1) > place for case, place in first.items())


def get_telling_terms(texts: Sequence[str]) -> Counter[str]:
    """Return in how many of the texts each term occurs."""
    return Counter(term for text in texts for term in set(get_terms(text)))


def _quote(text: str) -> str:
    return " ".join(text.replace("“", '"').replace("”", '"').split())
