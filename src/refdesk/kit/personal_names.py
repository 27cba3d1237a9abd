"""Finds names where people are introduced, addressed or sign, and masks them throughout the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from refdesk.playbooks import Turn

NAME = "[name]"
MAX_NAMES = 40
"""Most names in a conversation; later ones are not masked."""

_PART = r"\p{Lu}[\p{L}’'-]{1,30}"
_FULL = rf"{_PART}(?:\ (?:\p{{Lu}}\.\ )?(?:(?:van|von|de|da|la|der|bin|al)\ ){{0,2}}{_PART}){{0,3}}"
_LOOSE = r"\p{L}[\p{L}’'-]{1,30}(?:\ \p{L}[\p{L}’'-]{1,30}){0,2}"
_INTRODUCED = regex.compile(
    rf"""\b(?:(?i:(?:my|the|her|his|full|last|first|maiden|account\ holder(?:'s)?|customer
        |given|family)\s(?:full\s|last\s|first\s)?
        name(?:\ is|'s|\ was|:|\ ?=)|name\ is|name:|(?:you\ can\ )?call\ me|(?:you\ are|you're|am\ i)\ (?:speaking
    |talking|chatting)\ (?:to|with)
        |speaking\ (?:to|with)|spoke\ (?:to|with)|ask\ for|on\ behalf\ of|signed(?:\ by)?:?|attn:?|care\ of
        |i(?:'m
    |\ am)\ called))\s{{1,2}}(?:(?:Mr|Mrs|Ms|Dr)\.?\s)?["“]?(?P<name>{_FULL})
    | (?:^|[.!?]\s|\n)(?i:hi|hello|hey|thanks|thank\ you|good\ (?:morning|afternoon|evening)|welcome
        |hallo|hola|bonjour|ciao)
        ,?\ (?:(?:Mr|Mrs|Ms|Miss|Dr)\.?\ )?(?P<greeted>{_FULL})(?=[,!.?]|\s?$)
    | \b(?i:nome|nombre|nom|naam|navn|namn|imię|vorname|nachname|apellido|prénom)\s?:\s?(?P<labelled>{_FULL})
    | (?i:mi\ chiamo|meu\ nome\ é|eu\ sou|ik\ heet|ik\ ben|nazywam\ się|mam\ na\ imię|jag\ heter|jeg\ hedder|jmenuji\ se
        |меня\ зовут|adım|benim\ adım|nimeni\ on)\s(?P<abroad>{_FULL})
    | (?:私の名前は|名前は|我叫|我是|我的名字是)(?P<unspaced>[\p{{Han}}\p{{Katakana}}ー]{{2,8}})
    | \b(?i:(?:account|booking|reservation|order|table|room|policy)\s(?:is|was)?\s?(?:booked\s|made\s)?under
        |under\ the\ name(?:\ of)?|in\ the\ name\ of|my\ (?:husband|wife|partner|son|daughter|mother|father|brother
        |sister|colleague|boss|friend|assistant))\s(?P<known>{_FULL})
    | \b(?i:agent|representative|colleague|technician)\s(?P<clerk>{_PART}\ {_PART})
    | \b(?i:(?:dear\s)?(?:mr|mrs|ms|miss|dr|prof|herr|frau|señora?|monsieur|madame)|dear)\.?\s(?P<titled>{_FULL})
    | \b(?i:i'?m|i\ am|this\ is|it'?s|it\ is|here\ is|hier\ ist|je\ suis|soy|ich\ bin|ich\ heiße|me\ llamo
    |je\ m'appelle|mein\ name\ ist
        |mi\ nombre\ es)\s(?P<said>{_FULL})(?=\s?(?:[.,!;)\n](?!\w)|$|\b(?:and|from|here|speaking|with|at|calling|und|y
    |et)\b))""",
    regex.VERBOSE | regex.MULTILINE,
)
_SPELT = regex.compile(
    rf"""\b(?i:my\ (?:full\ )?name\ is|my\ name's)\s(?P<name>{_LOOSE})(?=\s?(?:[.,!;\n]|$))
    | \b(?i:first|last|given|family)\ name(?:\ is|:)?\ (?P<part>\p{{Ll}}[\p{{L}}’'-]{{1,30}})(?=\s?(?:[.,!;\n]|$))
    | \bthis\ is\ (?P<small>\p{{Ll}}{{2,20}}\ \p{{Ll}}{{2,20}})\ (?=(?:calling|from|here|speaking)\b)
    | (?:^|[,.!]\s)(?P<here>{_FULL})\shere\b""",
    regex.VERBOSE | regex.MULTILINE,
)
_SIGNED = regex.compile(
    rf"(?i:(?:kind\ |best\ |warm\ |many\ )?(?:regards|wishes|thanks|greetings)|sincerely|yours(?:\ truly)?|cheers"
    rf"|grüßen?|cordialement|saludos|saluti|groeten|pozdrawiam|atenciosamente|best|love)"
    rf"(?:[,.!]?\s{{0,3}}\n\s{{0,3}}|,\s)(?P<name>{_FULL})\s*(?:\n|$)|(?:^"
    rf"|\n|[.!]\s)\s{{0,3}}[-–—~]{{1,2}}\s?(?P<dashed>{_FULL})\s*(?:\n|$)",
    regex.VERBOSE,
)
_ASKS = regex.compile(
    r"\bname\b(?!\s(?:of\ the\ (?:app|product|file|device|company|printer|plan|venue|hotel|restaurant)))"
    r"|名前|氏名|姓名|名字|\b(?:nombre|nom|nome|naam|(?:vor|nach|achter|voor)na(?:me|am)|imię|nazwisk\p{L}+|apellidos?"
    r"|cognome|prénom)\b"
    r"|\bwho\ am\ i\ (?:speaking|talking)|\bspell\b",
    regex.IGNORECASE | regex.VERBOSE,
)
_ANSWER = regex.compile(
    rf"""^\W*(?:(?i:yes|sure|ok(?:ay)?|of\ course|it'?s|it\ is|the\ name\ is|that\ is|that'?s|hi|hello)
      [\s,.:;-]*){{0,3}}(?P<name>{_FULL})\W*$
    | ^\W*(?P<small>\p{{Ll}}{{2,20}}(?:\s\p{{Ll}}{{2,20}}){{1,2}})\W*$""",
    regex.VERBOSE,
)
_COMMON_WORDS = """
    a about account actually after afraid again all already also always an and another any available back bad but
    calling can confused correct curious customer dear done everyone fine first free from glad going good great
    greek happy having hello help here hi home hoping how i in interested just last leaving locked looking lost
    support team department service desk staff
    maybe me monday more my name never new next no not now of off ok okay on only or order our out please problem
    ready really right same sad sir madam so sorry still stuck support sure team thank thanks that the then there
    this to today tomorrow trying unable unfortunately unhappy using very waiting was we well what when where which
    who why will with working writing yes you your english german french spanish american british canadian italian
    chinese january february march april may june july august september october november december tuesday wednesday
    thursday friday saturday sunday android apple google microsoft windows linux iphone ipad chrome firefox safari
    outlook excel error wifi bluetooth
"""
_UNSPACED = regex.compile(r"[\p{Han}\p{Katakana}\p{Hiragana}ー]+")
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that may follow "I am" or "this is" and are not names."""


_TITLES = frozenset(
    ["mr", "mrs", "ms", "miss", "dr", "prof", "herr", "frau", "señor", "señora", "monsieur", "madame", "sir", "madam"]
)


_LEADS = _TITLES | {"i'm", "it's", "that's", "he's", "she's", "this", "here"}
"""Words that may precede a name at the beginning of a sentence."""


def find_names(turns: Sequence[Turn]) -> list[str]:
    """Return the names in the order in which they first occur, each as written there."""
    names: dict[str, None] = {}
    asked = False
    for turn in turns:
        if turn.call or turn.speaker == "system":
            continue
        for name in [*find_in(turn.text), *(_find_answered(turn.text) if asked and turn.speaker == "customer" else ())]:
            if not any(name.casefold() in known.casefold().split() for known in names):
                names.setdefault(name)
        asked = turn.speaker == "agent" and _ASKS.search(turn.text) is not None
    return list(names)[:MAX_NAMES]


def find_in(text: str) -> Iterator[str]:
    """Yield the names that a text introduces or addresses, or that it is signed with."""
    for pattern in (_INTRODUCED, _SPELT, _SIGNED):
        for match in pattern.finditer(text):
            found = next((part for part in match.groupdict().values() if part), "")
            if name := _trim(found):
                yield name


def mask_names(text: str, names: Iterable[str]) -> str:
    """Return the text with each of the names replaced, whole or in parts; different people are numbered.

    The first is `[name]`, the second `[name 2]`, and so on, the same throughout the conversation.
    """
    for number, name in enumerate(names, start=1):
        placeholder = NAME if number == 1 else f"[name {number}]"
        parts = [part for part in name.split() if len(part) > 2 and part.casefold() not in _COMMON]
        for part in [name, *parts]:
            if part.casefold() in text.casefold():
                spelt = "|".join(map(regex.escape, {part, part.upper(), part.title()}))
                if _UNSPACED.fullmatch(part):
                    text = text.replace(part, placeholder)
                    continue
                pattern = rf"(?<![\p{{L}}\p{{N}}\[@_.])(?:{spelt})(?=’s|'s|[^\p{{L}}\p{{N}}\]@_]|$)"
                text = regex.sub(pattern, placeholder, text)
        text = regex.sub(rf"{regex.escape(placeholder)}(?:\s{regex.escape(placeholder)})+", placeholder, text)
    return text


def _find_answered(text: str) -> Iterator[str]:
    """Yield the name that answers the question for it, be it one of several lines that were sent at once."""
    for line in text.strip().splitlines():
        match = _ANSWER.match(line.strip())
        if match and (match["name"] or line.strip() == text.strip()):
            if name := _trim(match["name"] or match["small"], loose=True):
                yield name
            return


def _trim(name: str, loose: bool = False) -> str:
    """Return a name without titles before it and common words after it; empty if no name is left."""
    parts = name.split()
    while parts and parts[0].casefold().replace("’", "'").strip(".") in _LEADS:
        parts.pop(0)
    while parts and (parts[-1].casefold().strip("'’") in _COMMON or len(parts[-1]) < 2):
        parts.pop()
    if not parts or parts[0].casefold() in _COMMON:
        return ""
    if loose and any(part.casefold() in _COMMON for part in parts):
        return ""
    return " ".join(parts)
