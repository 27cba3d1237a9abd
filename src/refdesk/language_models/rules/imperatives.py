"""Words what an agent said as what to do: "I have refunded the second payment" becomes "Refund the second payment".

English is reworded; other languages, and whatever no rule knows, are quoted, so that nothing is claimed that was not
said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import regex

from refdesk.language_models.rules import foreign
from refdesk.language_models.rules.verbs import COMMON, IRREGULAR, begins_order, can_begin_order, get_base, is_past

Manner: TypeAlias = Literal["ask", "act", "have", "tell"]
"""Ask the customer, do it oneself, have the customer do it, tell the customer."""

_LEAD = regex.compile(
    r"""^(?:\[…\]\ |(?:and|so|but|then|now|also|next|first|finally|of\ course|certainly|absolutely|sure\ thing
    |in\ that\ case
    |no\ problem|right|very\ good|ok(?:ay)?|great|perfect|alright
    |fantastic|excellent|wonderful|awesome|good\ news|thanks?(?:\ you)?|unfortunately|please
    |(?:i'?m|i\ am|we'?re|we\ are)\ (?:very\ |so\ |really\ |truly\ )?(?:sorry|afraid)(?:,?\ but)?(?:\ that)?
    |i\ apologi[sz]e(?:,?\ but)?|(?:it\ )?(?:looks|seems)\ like|i\ see\ that)\b[\s,.:;!–-]*)+""",
    regex.IGNORECASE | regex.VERBOSE,
)
_ASKED_FOR = regex.compile(
    r"""(?:(?:can|could|would|will|may|might)\ (?:you\ (?:please\ |kindly\ |also\ |just\ )*
      (?:tell\ (?:me|us)|give\ (?:me|us)|provide(?:\ (?:me|us)(?:\ with)?)?|share|confirm|send\ (?:me|us)
      |let\ (?:me|us)\ (?:have|know)|verify(?!\ (?:the|an?)\b)
      |enter(?!\ (?:the|an?)\b[^.?!]{0,60}\ (?:in|into|on|under)\b))
      | (?:i|we)\ (?:please\ |also\ |just\ )*(?:have|get|know|ask\ for|take))
    | (?:please\ )?(?:tell|give|provide|send)\ (?:me|us)(?:\ with)? | (?:please\ )?let\ (?:me|us)\ (?:have|know)
    | (?:please\ )?(?:provide|confirm|share|specify|state|describe
      |verify(?!\ (?:the|an?)\b)
      |enter(?!\ (?:the|an?)\b[^.?!]{0,60}\ (?:in|into|on|under)\b))
    | (?:i|we)(?:'ll|\ will|'d|\ would)?\ (?:also\ |just\ |still\ )*(?:need|require)(?:\ to\ (?:have|know|get))?)
    \ (?:please\ )?(?P<what>(?:with\ )?(?:your|the|a|an|me\ your|what|which|when|where
    |how)\b.*?)(?:\ now)?(?:,?\ please)?[\s.?!]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_WHAT_IS = regex.compile(
    r"^(?:what|which|who|when|where)(?:'s|\ is|\ are|\ was|\ were)\ (?P<what>(?:your"
    r"|the)\ .*?)(?:,?\ please)?[\s.?!]*$",
    regex.IGNORECASE | regex.VERBOSE,
)
_WH = regex.compile(
    r"""^(?P<wh>(?:on\ |at\ |for\ |to\ |from\ )?(?:what|which|when|where|how|who|whom|whose|why)\b(?:(?!\b(?:you|i
    |we)\b).)*?)\s?
    \b(?P<aux>are|were|is|was|will|would|do|did|have|has|can|could|should|might|may)\ (?P<who>you|i
    |we)\b\ ?(?P<rest>.*?)[\s?.!]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_INVERTED = regex.compile(
    r"^(?P<wh>(?:which|what)\ \p{L}+)\ (?P<verb>is|was)\ (?P<who>it|this|that)\b(?P<rest>.*?)[\s?]*\?$",
    regex.IGNORECASE | regex.VERBOSE,
)
_SUBJECT = regex.compile(
    r"^(?P<what>(?:how\ (?:many|much)|which|what|who)\b.{0,40}?\b(?:is|are|was|were|will|would|can|should|has"
    r"|have)\b.*?)[\s?]*\?$",
    regex.IGNORECASE | regex.VERBOSE,
)
_WHETHER = regex.compile(
    r"""^(?P<aux>are|were|will|would|do|did|have|can|could|should|shall|may|is|has|was)\ (?P<who>you|i|we|there
    |this|that|it
    |the\ \w+|your\ \w+)\b\ (?P<rest>.*?)[\s?.!]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_HAVE = regex.compile(
    r"^(?:(?:could|can|would|will)\ you\ (?:please\ |kindly\ )*|please\ |kindly\ |you(?:'ll|\ will)?\ (?:can"
    r"|need\ to|should|must|have\ to)\ (?!(?:now\ )?(?:see|hear|get|receive|notice|feel|be|have|find)\b)"
    r"|try\ to\ |(?:please\ )?(?:(?:do\ not|don['’]?t|never)\ forget|remember|be\ sure|make\ sure)\ to\ )"
    r"(?P<what>\p{Ll}.*?)[\s?.!]*$",
    regex.IGNORECASE | regex.VERBOSE,
)
_IF = regex.compile(
    r"^(?P<when>(?:if|should|when|once|for|as\ for|regarding)\ [^,:]{2,120})[,:]\ (?:then\ )?(?P<please>please\ )?"
    r"(?P<what>\p{Ll}.*?)[\s.?!]*$",
    regex.IGNORECASE | regex.VERBOSE,
)
_BARE = regex.compile(
    r"^(?:open|click|go|log|sign|restart|reboot|unplug|plug|press|select|choose|enter|try|check|make\ sure|turn|hold"
    r"|update|drive|walk|continue|follow|call|contact|use|wait|keep|bring|fill|send|reply|type|swipe|connect|charge|leave|set|run"
    r"|enable|disable|insert|release|install|download|clear|delete|remove|scroll|navigate|visit|tap|reset|switch|disconnect"
    r"|reconnect)\b",
    regex.IGNORECASE,
)
"""What begins an order whatever follows; for other verbs `verbs.begins_order` looks at what follows."""

_LETS = regex.compile(r"^let['’]?s\ (?:(?:just|now|also|please|first)\ )*(?P<what>\p{Ll}.*?)[\s.!]*$", regex.IGNORECASE)
_COMMAND = regex.compile(r"^(?P<what>`[^`\n]+`)[\s.;]*$")
"""A line that is nothing but what is to be typed."""

_TO_CUSTOMER = regex.compile(r"\bthe\ customer\b", regex.IGNORECASE)
_FORBIDDEN = regex.compile(
    r"^(?:please\ |kindly\ )?(?:do\ not|don['’]?t|never)\ (?!worry\b|hesitate\b|mind\b|forget\b)"
    r"(?P<what>\p{L}.*?)[\s?.!]*$",
    regex.IGNORECASE,
)
_DID = regex.compile(
    r"""^(?:(?:i|we)(?:'ve|\ have|\ had|'d)\ (?:(?:now|just|also|already|gone\ ahead\ and|successfully)\ )*
        (?P<done>\p{Ll}+)
      | (?:i|we)\ (?:(?:now|just|also|already|went\ ahead\ and|successfully)\ )*(?P<past>\p{Ll}{2,}ed|sent|made
    |put|set|found|took|gave)
      | (?:(?:i|we)(?:'ll|\ will)|(?:i'm|i\ am|we're|we\ are)\ going\ to|let\ me|i\ can)\ (?:(?:now|just|also
    |go\ ahead\ and|quickly)\ )*
        (?P<plain>\p{Ll}+)
      | (?:i'm|i\ am|we're|we\ are)\ (?:(?:now|just|also
    |currently)\ )*(?P<doing>\p{Ll}{2,}ing)
      | i\ (?:(?:now|just|also|then|first)\ )*(?P<present>\p{Ll}+)(?=\ (?:the|your|an?|it|this|them)\b)
    )\b(?P<rest>.*?)[\s.!]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_DONE = regex.compile(
    r"""^(?P<what>(?:your|the|a|an|this|that)\ (?:[\p{L}'’-]+\ ){0,4}?[\p{L}'’-]+)\ (?:has|have)\ (?:(?:now|just
    |also|already|successfully)\ )*
    been\ (?:(?:now|just|also|already|successfully)\ )*(?P<done>\p{Ll}+)\b(?P<rest>.*?)[\s.!]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_JOINED = regex.compile(
    rf"((?:,|\band|\bthen)\s(?:(?:then|also)\s)?)(?:(?:I|we)(?:['’]ve|\ have)?\s|have\s)?(?:(?:then|also)\s)?"
    rf"((?:\p{{Ll}}+-)?\p{{Ll}}{{3,}}ed|{'|'.join(IRREGULAR)})\b",
    regex.IGNORECASE,
)
_NOT_DONE = frozenset("been had seen heard understood noticed tried known thought hoped received".split())  # noqa: SIM905
"""Participles of what happened to the agent, which are not acts of its own."""

_MENTAL_VERBS = """
    understand see know think believe apologize apologise hope appreciate love like wish guess suppose help assist be
    have need want wonder recommend suggest am look
"""
_MENTAL = frozenset(_MENTAL_VERBS.split())
_SPEAKING = frozenset(["tell", "inform", "explain", "let", "show", "give"])
_WORD = regex.compile(
    r"""\b(?:I'm|I\ am|we're|we\ are|I've|we've|I'll|we'll|I|we|me|us|my|our|yours?|yourself|you're|you've|you'll
    |you'd
    |(?:do|did|would|will|can|could|have|are|should)\ you|you)\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_SHIFTS = """
    i'm=you are|i am=you are|we're=you are|we are=you are|i've=you have|we've=you have|i'll=you will|we'll=you will
    |i=you|we=you|me=you|us=you|my=your|our=your|your=their|yours=theirs|yourself=themselves|you're=they are
    |do you=they|did you=they|you've=they have|you'll=they will|you'd=they would|you=them
"""
_SHIFTED = {pair.strip().partition("=")[0]: pair.strip().partition("=")[2] for pair in _SHIFTS.split("|")}

_COUNTRIES = frozenset(["US", "ME"])
"""Words in capitals that do not mean "us" or "me"."""

_FINITE = regex.compile(
    r"\ (?:are|have|had|want|wanted|wish|prefer|receive|purchase|order|choose|use|need|would|will|can|could|may"
    r"|should|must|were|do|did|like|gave|paid|chose"
    r"|know|see|get|mean|say|said|ask|cannot|might|shall|\p{Ll}+n['’]t"
    r"|\p{Ll}+ed)\b"
)
_SUBORDINATE = regex.compile(
    r"\b(?:otherwise|if|when|whenever|until|once|because|unless|before|after|while|where|how|what|whether)\ $",
    regex.IGNORECASE,
)
"""What a clause begins with: the "you" after it is a subject."""
_FINITE_VERB = regex.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|can't|cannot|could|may|might|should|must|do|does|did|don't"
    r"|doesn't|didn't"
    r"|won't|isn't|aren't|failed|found|sent|made|gave|took|got|paid|needs?|takes?|costs?|shows?|says|goes)\b|['’](?:s|re|ve|ll|d|m)\b|\p{Ll}{2,}(?<!e)ed\b",
    regex.IGNORECASE,
)
"""What a statement has; without it, it is a fragment, and is quoted."""

_OPEN_END = regex.compile(r"\b(?:is|are|was|were|at|in|to|for|with|of|by|the|an?)$", regex.IGNORECASE)
"""Where a statement breaks off: what followed belonged to one case."""

_BARE_PARTICIPLE = regex.compile(r"^(?!(?:I|we|you|he|she|it|they)\b)\p{L}+\ \p{Ll}+ed$", regex.IGNORECASE)
"""A telegram, such as "ride booked"."""

_PAST = {"have": "had", "go": "went", "get": "got", "see": "saw", "make": "made", "pay": "paid", "buy": "bought"}
_THIRD = {"do": "does", "have": "has", "are": "is", "were": "was", "go": "goes"}


def word(said: str) -> tuple[Manner, str]:
    """Return the manner of an utterance, and the utterance as an order to the agent, without a full stop at its end."""
    for sentence in _by_weight(said):
        if found := _word_foreign(sentence):
            return found
        bare = _LEAD.sub("", sentence)
        if found := _word_question(bare) or _word_done(bare) or _word_request(bare, _is_polite(sentence, bare)):
            return found[0], _capitalise(found[1])
    return "tell", tell(said)


def word_found(said: str) -> str:
    """Return what a customer did unasked as what to have customers do; quoted if it is not in English."""
    if foreign.is_foreign(said):
        return f"Have the customer do what helped another: “{said.strip().rstrip(' .。')}”"
    return f"Have the customer {_shift(_lower(said))}"


def tell(said: str) -> str:
    """Return a statement as what to tell the customer: its first sentence, in indirect speech."""
    bare = _LEAD.sub("", _SENTENCES.split(said)[0]).rstrip(" .!?") or said.strip()
    if foreign.is_foreign(bare):
        return f"Say: “{bare}”"
    if _OPEN_END.search(bare):
        return f"Say: “{bare} …”"
    if not _FINITE_VERB.search(bare) or _BARE_PARTICIPLE.match(bare) or is_past(bare.partition(" ")[0].casefold()):
        return f"Say: “{bare}”"
    return f"Tell the customer that {_shift(_lower(bare), first='')}"


def is_fragment(said: str) -> bool:
    """Return whether a line orders nothing and has no verb, like the name of a product."""
    return find_order(said) is None and not _FINITE_VERB.search(said)


CUSTOMERS = "customer's "
"""What `get_wanted` puts before something that is the customer's own."""


def get_wanted(said: str) -> str:
    """Return what a question asks for, such as "customer's account number" or "name of the host".

    It is empty if the question does not say.
    """
    for sentence in _by_weight(said):
        bare = _LEAD.sub("", sentence)
        match = _ASKED_FOR.match(bare) or _WHAT_IS.match(bare) or _OWN_LAST.search(bare)
        if match and (own := _OWN.match(match["what"])):
            words = (word if sum(map(str.isupper, word)) > 1 else word.casefold() for word in own["what"].split())
            whose = CUSTOMERS if own["whose"].casefold() == "your" else ""
            return f"{whose}{_shift(' '.join(words))}"
    return ""


_OWN = regex.compile(
    r"""^(?P<whose>your|the)\ (?P<what>[\p{L}'’-]+
    (?:\ (?!as\b(?!\ an?\b)|and\b|or\b|for\b|so\b|please\b|in\b|on\b|to\b)[\p{L}'’-]+){0,8})""",
    regex.IGNORECASE | regex.VERBOSE,
)
_OWN_LAST = regex.compile(
    r"\b(?P<what>your\ [\p{L}'’ -]{2,40}?)(?:\ as\ well)?(?:,?\ please)[\s.?!]*$", regex.IGNORECASE | regex.VERBOSE
)
_SENTENCES = regex.compile(r"(?<=[.!?…])(?<!\b(?:Dr|Mr|Mrs|Ms|Prof|St|No)\.)\s+|(?<=[。！？])\s*")


def _by_weight(said: str) -> list[str]:
    """Return the sentences of an utterance: first the questions, then the rest, each in order."""
    parts = [part for part in _SENTENCES.split(said) if part.strip()]
    return sorted(parts, key=lambda part: not part.rstrip().endswith(("?", "？")))


def _word_question(said: str) -> tuple[Manner, str] | None:
    if match := _ASKED_FOR.match(said) or _WHAT_IS.match(said) or _OWN_LAST.search(said):
        what = regex.sub(r"^(?:with|me) ", "", match["what"])
        if regex.match(r"(?:what|which|when|where|how)\b", what, regex.IGNORECASE):
            return "ask", f"Ask {_shift(what)}"
        return "ask", f"Ask for {_shift(what)}"
    if match := _WH.match(said):
        return "ask", f"Ask {_lower(match['wh'])} {_turn(match['aux'], match['who'], match['rest'])}"
    if match := _INVERTED.match(said):
        return (
            "ask",
            f"Ask {_lower(match['wh'])} {match['who'].casefold()} {match['verb'].casefold()}{_shift(match['rest'])}",
        )
    if match := _SUBJECT.match(said):
        return "ask", f"Ask {_shift(_lower(match['what']))}"
    if "?" in said and (match := _WHETHER.match(said.rpartition(", ")[2] if _asks_last(said) else said)):
        return "ask", f"Ask whether {_turn(match['aux'], match['who'], match['rest'])}"
    if said.rstrip().endswith("?"):
        return "ask", f"Ask: “{said.strip()}”"
    return None


def _asks_last(said: str) -> bool:
    """Return whether a question stands behind a comma: "…, can I book this room for you?"."""
    return _WHETHER.match(said) is None and ", " in said


def _turn(auxiliary: str, who: str, rest: str) -> str:
    """Return the parts of a question as a clause: "are", "you", "arriving" become "the customer is arriving"."""
    auxiliary, who = auxiliary.casefold(), who if who == "IT" else who.casefold()
    subject = "the customer" if who == "you" else "you" if who in {"i", "we"} else _shift(who)
    rest = _shift(rest, first="" if subject == "the customer" else "the customer")
    if auxiliary in {"do", "did"} and who == "you":
        verb, _, after = rest.partition(" ")
        return f"{subject} {_third(verb) if auxiliary == 'do' else _put_back(verb)} {after}".strip()
    if auxiliary in {"do", "did"}:
        return f"{subject} {rest if who in {'i', 'we'} or auxiliary == 'do' else f'did {rest}'}".strip()
    if who == "you":
        auxiliary = _THIRD.get(auxiliary, auxiliary)
    elif who in {"i", "we"}:
        auxiliary = {"can": "may", "could": "may", "shall": "should", "am": "are"}.get(auxiliary, auxiliary)
    return f"{subject} {auxiliary} {rest}".strip()


def _third(verb: str) -> str:
    known = _THIRD.get(verb)
    if known is None:
        known = f"{verb}es" if regex.search(r"(?:s|x|z|ch|sh|o)$", verb) else f"{verb}s"
        if regex.search(r"[^aeiou]y$", verb):
            known = f"{verb[:-1]}ies"
    return known


def _put_back(verb: str) -> str:
    """Return a verb in the past tense if that is known; else with "did", as in the question."""
    return _PAST.get(verb.casefold(), f"did {verb}")


@dataclass(frozen=True, slots=True)
class Order:
    """What a sentence tells somebody to do, or says was done: from its verb on, in the words of whoever said it.

    Attributes:
        is_forbidden: Whether it is not to be done.
        is_report: Whether it only says that something has been done, by nobody in particular.
        when: The condition that the sentence begins with.
    """

    manner: Manner
    what: str
    is_forbidden: bool = False
    is_report: bool = False
    when: str = ""


def find_order(sentence: str) -> Order | None:
    """Return what a sentence orders or says was done; `None` if it is a question or another statement."""
    if foreign.is_foreign(sentence):
        return _find_foreign(sentence)
    bare = _LEAD.sub("", sentence)
    return None if _word_question(bare) else _find_done(bare) or _find_request(bare, _is_polite(sentence, bare))


def _find_foreign(sentence: str) -> Order | None:
    sort = foreign.sort(sentence)
    if sort in {"", "ask"}:
        return None
    return Order("act" if sort == "act" else "have", foreign.leave_polite(sentence), is_forbidden=sort == "forbid")


def _word_foreign(sentence: str) -> tuple[Manner, str] | None:
    """Return a question, an order or a report in another language than English, quoted; otherwise `None`.

    The manner comes first, as in `word`.
    """
    if not foreign.is_foreign(sentence):
        return None
    sort = foreign.sort(sentence)
    return ("have" if sort == "forbid" else sort, foreign.word(sentence)) if sort else None


def _find_done(said: str) -> Order | None:
    if match := _DID.match(said):
        verb = _find_verb(match)
        if verb and verb not in _MENTAL and verb not in _SPEAKING:
            return Order("act", f"{verb}{match['rest'] if match['plain'] else restore_all(match['rest'])}")
        return None
    if match := _DONE.match(said):
        return Order("act", f"{get_base(match['done'])} {_lower(match['what'])}{match['rest']}", is_report=True)
    return None


def _word_done(said: str) -> tuple[Manner, str] | None:
    order = _find_done(said)
    return (order.manner, _shift(order.what)) if order else None


def restore_all(rest: str) -> str:
    """Return the rest of a sentence, with further participles after "and" or a comma in their base form."""
    return _JOINED.sub(lambda match: f"{match[1]}{get_base(match[2])}", rest)


def _find_verb(match: regex.Match[str]) -> str:
    if plain := match["plain"]:
        return plain.casefold()
    if doing := match["doing"]:
        return get_base(doing)
    if present := match["present"]:
        return present.casefold() if present.casefold() in COMMON else ""
    word = (match["done"] or match["past"]).casefold()
    return "" if word in _NOT_DONE or not is_past(word) else get_base(word)


def _is_polite(sentence: str, bare: str) -> bool:
    """Return whether a sentence begins with "please" and a verb."""
    lead = sentence.removesuffix(bare).rstrip(" ,").casefold()
    return lead.endswith("please") and can_begin_order(bare)


def _find_request(said: str, is_polite: bool) -> Order | None:
    if (match := _IF.match(said)) and (match["please"] or begins_order(match["what"])):
        return Order("have", _lower(match["what"]), when=match["when"])
    if match := _COMMAND.match(said):
        return Order("have", f"run {match['what']}")
    if match := _LETS.match(said):
        return Order("have", _lower(match["what"])) if begins_order(match["what"]) else None
    if match := _FORBIDDEN.match(said):
        return Order("have", _lower(match["what"]), is_forbidden=True)
    if match := _HAVE.match(said):
        return Order("have", _lower(match["what"]))
    if is_polite or _BARE.match(said) or begins_order(said):
        return Order("act" if _TO_CUSTOMER.search(said) else "have", _lower(said.rstrip(" ?.!")))
    return None


def _word_request(said: str, is_polite: bool) -> tuple[Manner, str] | None:
    order = _find_request(said, is_polite)
    if order is None or order.manner == "act":
        return order and ("act", order.what)
    if order.is_forbidden:
        what, _, instead = order.what.partition(", ")
        what = f"{what}, but to {instead}" if begins_order(instead) else order.what
        return "have", f"Tell the customer not to {_shift(what, first='')}"
    when = _shift(order.when, first="")
    return "have", f"{f'{when}: have' if when else 'Have'} the customer {_shift(order.what)}"


def _shift(text: str, first: str = "the customer") -> str:
    """Return the text in indirect speech: "I" becomes "you"; the first "you" "the customer", later ones "they".

    Args:
        text: What was said.
        first: What the customer is called first; empty if the customer has been named already.
    """
    is_first = bool(first)

    def tell(match: regex.Match[str]) -> str:
        nonlocal is_first
        if match[0] in _COUNTRIES and not text.isupper():
            return match[0]
        said = match[0].casefold()
        if said.endswith(" you") and said not in _SHIFTED:
            told = f"they {said[:-4]}"
        elif said == "you" and (_FINITE.match(text[match.end() :]) or _SUBORDINATE.search(text[: match.start()])):
            told = "they"
        else:
            told = _SHIFTED[said]
        if is_first and told in {"their", "them"}:
            is_first = False
            return first if told == "them" else f"{first}'s"
        is_first = is_first and told[:4] != "they"
        return told

    return _WORD.sub(tell, text)


def _lower(text: str) -> str:
    first, _, _ = text.partition(" ")
    return (
        text
        if first in {"I", "I'm", "I've", "I'll"} or first.isupper() or first.endswith(".") or text[:1] == "["
        else text[:1].lower() + text[1:]
    )


def _capitalise(text: str) -> str:
    text = " ".join(text.split()).rstrip(" .,;:")
    return text[:1].upper() + text[1:]
