"""Which orders cannot be one act, however alike they are: they do the opposite, something else, or set another value.

What belongs to one case, such as the number of an order, a day or an amount, makes no difference, and neither does what
the agent set to another value in each case.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from refdesk.kit import sentences
from refdesk.language_models.rules import imperatives
from refdesk.language_models.rules.verbs import COMMON, get_base

_OPPOSITES = """
    enable,activate,allow,permit,unblock,turn-on,switch-on,power-on/disable,deactivate,block,deny,turn-off,switch-off,power-off
    add,insert,attach,install,include,reinstall,create/remove,delete,uninstall,erase,detach,exclude,purge
    open/close,shut start,launch,begin,resume/stop,end,terminate,quit,suspend,pause
    connect,plug,plug-in,link,pair,join/disconnect,unplug,unlink,unpair,leave
    increase,raise,turn-up,extend/decrease,lower,reduce,turn-down,shorten upgrade,update/downgrade upload/download
    log-in,sign-in,log-on,sign-on/log-out,sign-out,log-off,sign-off show,display/hide check,tick,select/uncheck,untick
    accept,approve/reject,decline,refuse grant/revoke tighten/loosen import/export zoom-in/zoom-out push/pull
    fill/empty,drain freeze/thaw buy/sell keep/remove,delete,replace,cancel book,reserve,schedule,confirm/cancel
    compress/extract encrypt/decrypt
"""
_CONTRASTS = """
    left/right up/down upper/lower top/bottom light/dark high/low higher/lower automatic/manual automatically/manually
    public/private wired/wireless always/never front/back,rear hot,warm/cold internal/external incoming/outgoing old/new
    inbound/outbound primary/secondary clockwise/counterclockwise,anticlockwise horizontal/vertical maximum/minimum
    true/false black/white long/short local/remote online/offline
"""
_KINDS_OF_VERBS = """
    enable,activate,turn-on,switch-on disable,deactivate,turn-off,switch-off add,insert,install,attach,reinstall,create
    remove,delete,uninstall,erase,clear,empty,wipe,clean restart,reboot,reset refund,reimburse,return,credit cancel
    replace,swap,exchange,change update,upgrade downgrade send,forward,mail,email,ship,resend print rename connect,pair
    disconnect,unplug lock unlock check,verify,inspect,review
"""
"""Verbs grouped by what they do; a verb of another group does something else."""


def _pair(text: str) -> frozenset[tuple[str, str]]:
    sides = [[side.split(",") for side in pair.split("/")] for pair in text.split()]
    pairs = [(a, b) for one, other in sides for a in one for b in other]
    return frozenset(pairs) | {(b, a) for a, b in pairs}


_OPPOSITE_VERBS, _CONTRASTING = _pair(_OPPOSITES), _pair(_CONTRASTS)
_CONTRASTED = frozenset(word for pair in _CONTRASTING for word in pair)
_KIND = {verb: number for number, kind in enumerate(_KINDS_OF_VERBS.split()) for verb in kind.split(",")}
_WAYS = frozenset(["open", "go", "click", "press", "select", "choose"])
"""Verbs that lead to what is done, rather than say it."""

_REVERSING = ("un", "dis", "de")

_VERB = regex.compile(
    r"(?:^|[,;]\s*|\b(?:and|then|or)\s+)(?:(?:and|then|please|also|have|just|to)\s+)*(?P<verb>\p{L}[\p{L}-]+)\b"
    r"(?P<rest>(?:(?!\b(?:and|then|or)\b)[^,;])*)",
    regex.IGNORECASE,
)
_PARTICLE = regex.compile(r"\b(?:on|off|in|out|up|down)\b", regex.IGNORECASE)
_WITH_PARTICLE = frozenset(["turn", "switch", "power", "plug", "log", "sign", "zoom"])

_SETTING = frozenset(
    """
    set use switch change select choose pick open upgrade downgrade update enable disable configure adjust put increase
    decrease lower raise limit turn install allow block try press dial activate deactivate
    """.split()  # noqa: SIM905
)
_OF_ONE_CASE = regex.compile(
    r"""\[[^\[\]\n]{1,40}\]
    | \b(?:order|booking|reservation|ticket|case|invoice|account|customer|member|reference|confirmation|tracking
      |appointment|room|table|seat|flight|gate|card|code|pin|password|number|no\.?|id|phone|policy|serial|contract|parcel
      |extension)
      (?:\s(?:number|no\.?|id|code))?[:\#\s]+(?:is\s)?\#?[\p{L}-]*\d[\w-]*
    | \b\d{1,2}(?::\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.|o'clock)(?!\p{L}) | \b\d{1,2}:\d\d\b | \b\d{1,2}(?:st|nd|rd|th)\b
    | \b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}*\.?\s\d{1,4}\b | \b\d{4}-\d\d(?:-\d\d)?\b
    | \b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b | [$€£¥]\s?\d[\d.,]*
    | \b\d[\d.,]*\s?(?:eur|usd|gbp|chf|jpy|dollars?|euros?|pounds?|credits?|[$€£¥])(?!\p{L})
    | \b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_NUMBER = regex.compile(r"(?<![\w.])v?\d+(?:[.,]\d+)*")
_WORD = regex.compile(r"(?<![\w.\[])(?:v?\d+(?:[.,]\d+)*|\p{L}[\p{L}\d-]*)(?![\w\]])")
SLOT = "[value]"
"""Stands for a value that every case has of its own."""

_CODE = regex.compile(r"(?<![\w-])\p{Lu}[\p{Lu}\d]+(?:-[\p{Lu}\d]+)*(?![\w-])")
_LETTER = regex.compile(
    r"\b(?:option|mode|profile|drive|input|channel|port|plan|type|class|layout|preset|slot|bay|version|variant|level|zone"
    r"|scheme|group|tab|key|button)\s(?P<value>\p{L})\b",
    regex.IGNORECASE,
)
_CHOSEN = regex.compile(
    r"(?<!\b(?:go|navigate|back)\s)\b(?:to|select|choose|use|pick)\s(?:the\s)?(?P<value>(?-i:\p{Lu})[\p{L}\d-]+)",
    regex.IGNORECASE,
)
_SET_TO = regex.compile(
    r"\bto\s(?P<value>\p{Ll}[\p{L}\d-]*)(?=\s*$|[.,;)]|\s(?:in|on|under|for|at|and|instead|mode)\b)", regex.IGNORECASE
)
_QUOTED = regex.compile(r"[“\"](?P<value>[^“”\"]{1,40})[”\"]")
_IN_WORDS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "eight": "8", "ten": "10"}
_NO_VALUES = frozenset(["it", "them", "this", "that", "me", "us", "you", "work", "something", "another", "yourself"])


@dataclass(frozen=True, slots=True)
class Order:
    """What an utterance orders or says was done.

    Attributes:
        does: The verbs, with their particles, such as turn-off.
        forbids: Those that are not to be done.
        contrasts: Words that have an opposite.
        values: What something is to be set to; empty if nothing is set, or only to what belongs to one case.
        done: Those of the values that the agent set.
    """

    does: frozenset[str]
    forbids: frozenset[str]
    contrasts: frozenset[str]
    values: frozenset[str]
    done: frozenset[str] = frozenset()


@lru_cache(sentences.MAX_REMEMBERED)
def read_order(text: str) -> Order | None:
    """Return what an utterance orders or says was done, or `None` if that is nothing."""
    found = [order for each in sentences.split_all(text) if (order := imperatives.find_order(each)) is not None]
    if not found:
        return None
    does, forbids = set[str](), set[str]()
    for order in found:
        (forbids if order.is_forbidden else does).update(_list_verbs(order.what))
    words = {word for order in found for word in regex.findall(r"\p{Ll}+", order.what.casefold())}
    values = {value for order in found for value in _list_values(order.what)}
    done = {value for order in found if order.manner == "act" for value in _list_values(order.what)}
    return Order(
        frozenset(does), frozenset(forbids), frozenset(words & _CONTRASTED), frozenset(values), frozenset(done)
    )


def leave_values(order: Order, text: str, left: Set[str]) -> tuple[Order, str]:
    """Return an order without some of its values, and its text with slots for them."""

    def leave(match: regex.Match[str]) -> str:
        return SLOT if _normalise(match[0]) in left else match[0]

    return replace(order, values=order.values - left, done=order.done - left), _WORD.sub(leave, text)


def _list_verbs(what: str) -> Iterator[str]:
    for place, match in enumerate(_VERB.finditer(what)):
        verb = match["verb"].casefold()
        verb = verb if place == 0 or verb in COMMON else get_base(verb)
        if place and verb not in COMMON:
            continue
        particle = _PARTICLE.search(match["rest"]) if verb in _WITH_PARTICLE else None
        yield f"{verb}-{particle[0].casefold()}" if particle else verb


def _list_values(what: str) -> Iterator[str]:
    verbs = {match["verb"].casefold() for match in _VERB.finditer(what)}
    if not verbs & _SETTING:
        return
    text = _OF_ONE_CASE.sub(" ", what)
    yield from map(_normalise, _NUMBER.findall(text))
    yield from (_IN_WORDS[word] for word in regex.findall(r"\p{Ll}+", text) if word in _IN_WORDS)
    for pattern in (_LETTER, _CHOSEN, _SET_TO, _QUOTED):
        for match in pattern.finditer(text):
            value = match["value"].casefold()
            if value not in _NO_VALUES and value not in COMMON:
                yield value
    if not text.isupper():
        yield from (code.casefold() for code in _CODE.findall(text))


def _normalise(value: str) -> str:
    return value.casefold().removeprefix("v").replace(",", "") if _NUMBER.fullmatch(value) else value.casefold()


def differ(one: Order | None, other: Order | None) -> bool:
    """Return whether two orders cannot be one act: they contradict each other, or do different kinds of things."""
    if one is None or other is None or one == other:
        return False
    kinds, others = ({_KIND[verb] for verb in order.does if verb in _KIND} for order in (one, other))
    if kinds and others and not kinds & others and not (one.does & other.does) - _WAYS:
        return True
    return contradict(one, other)


def contradict(one: Order, other: Order) -> bool:
    """Return whether one order does what the other forbids or its opposite, or sets another value."""
    if one.does & other.forbids or other.does & one.forbids:
        return True
    mine, theirs = one.does - other.does - _reversed(one), other.does - one.does - _reversed(other)
    if any(_is_opposite(a, b) for a in mine for b in theirs):
        return True
    words, others = one.contrasts - other.contrasts, other.contrasts - one.contrasts
    if any((a, b) in _CONTRASTING for a in words for b in others):
        return True
    return bool(one.values - other.values and other.values - one.values)


def _reversed(order: Order) -> set[str]:
    """Return the verbs that an order itself undoes, as in "delete it and install it again"."""
    return {verb for verb in order.does if any(_is_opposite(verb, other) for other in order.does)}


def _is_opposite(verb: str, other: str) -> bool:
    return (verb, other) in _OPPOSITE_VERBS or any(
        verb == f"{prefix}{other}" or other == f"{prefix}{verb}" for prefix in _REVERSING
    )
