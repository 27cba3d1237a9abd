"""Masks personal data in a conversation before any of it is stored or sent to a model.

Masked are names where people are introduced, addressed or sign; e-mail and postal addresses; card, telephone and social
security numbers; bank accounts (IBAN); dates of birth; IP addresses; API keys; and whatever is given as an account,
order or customer number, a password, a PIN or a one-time code. A run of twelve or more digits is always masked. Dates,
times, prices, versions and private network addresses stay, and so does the product's own text: a word such as
"password" alone does not cause masking. Every pattern is linear in the length of the text.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

import regex

from refdesk.kit import mask_patterns, personal_names
from refdesk.kit.mask_patterns import (
    ACCOUNT,
    ADDRESS,
    BIRTH,
    CARD,
    EMAIL,
    KEY,
    NETWORK,
    ORDER,
    PHONE,
    SECRET,
    SOCIAL_SECURITY,
)
from refdesk.playbooks import Turn

if TYPE_CHECKING:
    from refdesk.model import JsonValue

_MIN_ACCOUNT_DIGITS = 7
_MIN_PHONE_DIGITS = 7
_MAX_PHONE_DIGITS = 15
_MIN_OPAQUE_DIGITS = 12

_Replace: TypeAlias = "Callable[[regex.Match[str]], str]"

_EMAIL = regex.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_IBAN = regex.compile(r"(?<!\w)(?i:[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?)(?!\w)")
_KEY = regex.compile(
    r"""(?<![\w-])(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abpr]|shpat|AKIA|ASIA|AIza|SG|npm|hf|whsec|dop_v1)(?:[-_.]
    |(?<=AKIA|ASIA|AIza))
        [\w-]{10,200}(?:\.[\w-]{1,200}){0,3}
    | (?<!\w)eyJ[\w-]{8,2000}\.[\w-]{4,4000}(?:\.[\w-]{0,2000})? | (?<!\w)(?=[0-9a-f]{0,40}\d)[0-9a-f]{32,128}(?!\w)
    | (?<![\w/+])(?=[\w/+]{0,400}\d)(?=[\w/+]{0,400}[a-z])(?=[\w/+]{0,400}[A-Z])[A-Za-z0-9/+]{32,400}(?![\w/+])
    | (?i:(?<=bearer\ )|(?<=api\ key\ )|(?<=api\ key:\ )|(?<=api\ key\ is\ )|(?<=token:\ )
    |(?<=token\ is\ ))[A-Za-z0-9+/_.-]{12,400}""",
    regex.VERBOSE,
)
_LINK = (
    r"(?:\s{0,2}(?:is|was|are|will\ be|should\ be|to|=|:|：|は|が|ist|es|est|\#)\s{0,2}"
    r"(?:now\s|set\ to\s|still\s)?['\"“#(]{0,2})"
)
_PASSWORD = regex.compile(
    rf"""(?<!\w)(?P<name>(?:password|passphrase|passcode|passwort|contraseña|mot\ de\ passe|pwd|pw|パスワード|暗証番号))
      (?P<between>{_LINK})(?P<value>[^\s"“”'’,;()]{{3,60}})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_NEAR = 30
_CHANGES = regex.compile(r"\b(?:chang|set|reset|switch|updat)", regex.IGNORECASE)
_NO_PASSWORD = regex.compile(
    r"(?:\p{Ll}{1,20}|incorrect|wrong|required|expired|case|not|too|it|the|a|my|your|that|this|correct|invalid"
    r"|reset|\[[^\]]*\]?)[.!?]*",
    regex.IGNORECASE,
)
"""What may follow "the password is" in a sentence about passwords, and is not a password: a plain word."""

_SECRET = regex.compile(
    rf"""(?<!\w)(?P<name>(?:pin|cvv|cvc|cvv2|otp|passcode|security\ code|access\ code|verification\ code
        |confirmation\ code|one-?\ ?time\ (?:code
        |password|passcode)|auth(?:entication|orization)?\ code|sms\ code|login\ code|2fa\ code|clearance\ code|暗証番号
        |(?<!error\ )(?<!status\ )(?<!zip\ )(?<!promo\ )(?<!country\ )
        (?<!area\ )(?<!exit\ )(?<!post\ )(?<!source\ )(?<!discount\ )code)
        (?:\ (?:code|number|i\ (?:got|received)|you\ sent|from\ the\ (?:app|sms|text|e-?mail)))?)
      (?P<between>{_LINK}|(?<=pin|otp|cvv|cvc|passcode|password)\s{{1,2}}(?=\d{{3,8}}(?!\w))
    |(?<=code)\s{{1,2}}(?=\d{{6,8}}(?!\w)))
      (?P<value>(?=[\w-]{{0,20}}\d)[A-Za-z0-9][\w-]{{2,20}}(?:\ \d{{3,4}})?)(?![\w.]\d)""",
    regex.VERBOSE | regex.IGNORECASE,
)
_NAMED = regex.compile(
    rf"""(?<!\w)(?P<name>(?:
        (?P<order>order|booking|reservation|invoice|ticket|case|tracking|confirmation|reference|ref|shipment
    |return|rma|claim|transaction)
        | account|acct|customer|client|member(?:ship)?|policy|iban|passport|licen[cs]e|driver'?s\ licen[cs]e
    |social\ security|ssn|tax|insurance
        | patient|employee|student|user|loyalty|frequent\ flyer|sort|routing|口座|会員)
        (?:\ ?(?:number|no\.?|nr\.?|num|id|code|番号)|(?=\s?\#)|(?<=iban|ssn|acct|ref|reference|tracking
    |confirmation|policy|account|passport|customer|order|booking|invoice
        |ticket|case|reservation|licen[cs]e)))
      (?P<between>{_LINK}|\s{{1,2}}\#?(?=[A-Za-z]{{0,4}}-?\d[\d-]{{3}})|\s?\#\s?)
      (?P<value>(?=[\w@-]{{0,12}}\d)[A-Za-z0-9][\w@*+/-]{{2,40}}(?:[ -]\d{{2,8}}){{0,6}})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_LOGIN = regex.compile(
    rf"(?<!\w)(?P<name>user\ ?name|login"
    rf"|user\ id)(?P<between>{_LINK})(?P<value>(?=[\w.@-]{{0,40}}(?:[\d_]|\.\w))[\w.@-]{{4,40}}\w)",
    regex.VERBOSE | regex.IGNORECASE,
)
_BIRTH = regex.compile(
    r"""(?P<name>\b(?:born(?:\ on)?|birth\ ?date|date\ of\ birth|birthday|dob|d\.o\.b\.?)(?:\ (?:is|was
    |on))?\s?[:=]?\s(?:the\ )?)
      (?:\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4} | (?:\d{1,2}(?:st|nd|rd|th)?\ (?:of\ )?)?\p{L}{3,9}\.?\ (?:\d{1,2}(?:st
    |nd|rd|th)?,?\ )?\d{4})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_STREET = regex.compile(
    r"""(?<![\w.])\d{1,5}[a-zA-Z]?\ (?:(?:N|S|E|W|North|South|East|West)\.?\ )?(?:\p{Lu}[\p{L}’'-]{1,20}[ ]
    |\d{1,3}(?:st|nd|rd|th)\ ){1,3}
      (?:Street|St|Avenue|Ave|Road|Rd|Drive|Dr|Lane|Ln|Boulevard|Blvd|Court|Ct|Place|Pl|Way|Terrace|Square|Sq
    |Close|Crescent|Parkway|Pkwy
      |Highway|Hwy|Circle|Row|Walk|Mews|Gardens|Hill)\b\.?
      (?:,?\ (?:Apt|Apartment|Suite|Unit|Flat|Floor|\#)\.?\ ?[\w-]{1,6})?
      (?:,\ \p{Lu}[\p{L}’' -]{1,30}){0,2}(?:,?\ [A-Z]{2}\ \d{5}(?:-\d{4})?|,?\ [A-Z]{1,2}\d[A-Z\d]?\ ?\d[A-Z]{2}
    |,?\ \d{4,6})?
    | \b\p{Lu}[\p{L}-]{2,25}(?:straße|strasse|str\.|weg|gasse|platz
    |allee)\ \d{1,4}[a-z]?(?:,?\ \d{4,5}\ \p{Lu}\p{L}{2,20})?
    | \b(?:rue|avenue|boulevard|calle|via|plaza)\ (?:(?:de|del|la|le|des|du
    |di)\ ){0,2}\p{Lu}[\p{L}’'-]{2,20}(?:\ \p{Lu}[\p{L}’'-]{2,20})?,?\ \d{1,4}\b
    | \b\d{1,4},?\ (?i:rue|avenue|boulevard)\ (?:(?:de|la|le|des
    |du)\ ){0,2}\p{Lu}[\p{L}’'-]{2,20}(?:,?\ \d{5}\ \p{Lu}\p{L}{2,20})?
    | \b(?i:p\.?\ ?o\.?\ box)\ \d{1,6}\b
    | (?<=\b(?i:zip|zip\ code|postcode|postal\ code)(?:\ is
    |:)?\ )(?=[A-Z\d ]{0,6}\d)[A-Z\d]{2,5}(?:\ \d[A-Z]{2})?\b""",
    regex.VERBOSE,
)
_IPV4 = regex.compile(
    r"""(?P<lead>(?<!\w)(?i:version|ver|v|firmware|release|build|driver|update)\.?\s{0,2}|(?i:my|his
    |her)\ ip(?:\ address)?(?:\ is|:)?\s)?
      (?<![\d.\w])(?P<address>(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3})(?![\d.]?\d)""",
    regex.VERBOSE,
)
_IPV6_SHORT = regex.compile(
    r"(?<![\w:])(?=[0-9A-Fa-f:]{0,36}::)(?:[0-9A-Fa-f]{1,4}(?::{1,2}(?=[0-9A-Fa-f]))){2,7}[0-9A-Fa-f]{1,4}(?![\w:])"
)
_IPV6 = regex.compile(
    r"(?<![\w:])(?=[0-9A-Fa-f:]{6,39}(?![\w:]))(?:[0-9A-Fa-f]{1,4}:){3,7}(?:[0-9A-Fa-f]{0,4}:?){0,4}[0-9A-Fa-f]{1,4}(?![\w:])"
)
_PRIVATE = regex.compile(r"(?:10|127|0|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|255)\.")
_NUMBER = regex.compile(
    r"""(?P<left>
        (?<![\w.]) \d{4}-\d{1,2}-\d{1,2} (?![\d-]) [T ]?
      | (?<![\w.]) \d{1,2}([/.-])\d{1,2}\2(?:\d{4}|\d{2}) (?![\d./-])
      | (?<![\w.]) \d{1,3}(?:\.\d{1,3}){3} (?![\d.])
      )
      | (?P<number> (?<![A-Za-z0-9_.,]) (?:\+|\(\+?)?\d (?:[\s().\-/]{0,2}\d){5,40} (?![\d]) )""",
    regex.VERBOSE,
)
_HASHED = regex.compile(r"(?<![\w&#])\#[A-Z]{0,3}-?\d{4,12}(?!\w)")
_SOCIAL_SECURITY = regex.compile(r"\d{3}-\d{2}-\d{4}")
_DOTTED_PHONE = regex.compile(r"\d{3}\.\d{3}\.\d{4}")
_YEARS = regex.compile(r"(?:19|20)\d\d\s?[-/]\s?(?:19|20)\d\d")
_SPACED_NUMBERS = regex.compile(r"\d{1,5}(?:\s\d{1,5})+")
_BARE_SECRET = regex.compile(r"\W*(?:(?:it'?s|is|sure|ok|yes),?\s)?\W*\d[\d\s-]{2,11}\W*", regex.IGNORECASE)
_ASKS_SECRET = regex.compile(r"\bpassword|passcode|passphrase|パスワード", regex.IGNORECASE)
_BARE_PASSWORD = regex.compile(
    r"\W*(?:(?:it'?s|is|sure|ok|yes)[,:]?\s)?(?P<value>(?=\S{0,40}[\d!@#$%^&*_])\S{5,60})\W*", regex.IGNORECASE
)
_ASKS_REFERENCE = regex.compile(
    r"\b(?:booking|reservation|order|confirmation|ticket|case|tracking|account|customer|member(?:ship)?|policy|serial|reference)"
    r"(?:\ (?:number|no\.?|code|reference|id))\b|\breference\b|\brecord\ locator\b|\bpnr\b",
    regex.IGNORECASE,
)
_BARE_REFERENCE = regex.compile(
    r"\W*(?:(?:it'?s|it\ is|sure|ok|yes)[,:]?\s)*\#?(?=[\w-]{0,19}\d)"
    r"(?=[\w-]{0,19}\p{L})[\p{Lu}\d](?:[\p{Lu}\d-]{3,19})\W*",
    regex.IGNORECASE,
)
_ARGUMENTS: tuple[tuple[regex.Pattern[str], str], ...] = tuple(
    (regex.compile(pattern, regex.IGNORECASE), stands)
    for pattern, stands in (
        (r"mail", EMAIL),
        (r"phone|mobile|fax", PHONE),
        (r"pin\b|pin_?code|password|passcode|secret|token|otp|cvv|answer|code$", SECRET),
        (r"birth|dob", BIRTH),
        (r"card", CARD),
        (r"address|street|zip|postal", ADDRESS),
        (r"account|iban|ssn|passport", ACCOUNT),
        (r"(?:customer|full|first|last|guest|patient|user|host|client|passenger)[_ ]?name$", personal_names.NAME),
    )
)
"""Names of tool arguments whose values are personal whatever they look like, each with its placeholder."""


def mask(text: str) -> str:
    """Return the text with personal data replaced by its kind in square brackets. Masking again changes nothing."""
    return _mask_data(personal_names.mask_names(text, personal_names.find_in(text)))


def mask_turns(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns, each masked; a name found in one of them is masked in all of them, with the same placeholder.

    A customer's turn is masked as a whole if it is only digits or, where a password or a reference was asked for, looks
    like one.
    """
    names = personal_names.find_names(turns)
    masked: list[Turn] = []
    asked = ""
    for turn in turns:
        masked.append(_mask_call(turn) if turn.call else replace(turn, text=_mask_turn(turn, asked, names)))
        asked = turn.text if turn.speaker == "agent" else asked
    return tuple(masked)


def mask_value(value: JsonValue) -> JsonValue:
    """Return a JSON value with e-mail addresses, card and social security numbers masked in its texts.

    Other numbers stay: in metadata, callers pass references of their own, such as tickets.
    """
    if isinstance(value, str):
        return _NUMBER.sub(_mask_certain, _EMAIL.sub(EMAIL, value))
    if isinstance(value, dict):
        return {key: mask_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_value(item) for item in value]
    return value


def _mask_data(text: str) -> str:
    text = _KEY.sub(KEY, text)
    for pattern, stands in mask_patterns.BEFORE:
        text = mask_patterns.replace_value(text, pattern, stands)
    text = _EMAIL.sub(EMAIL, text)
    text = _IBAN.sub(_mask_iban, text)
    text = _BIRTH.sub(lambda match: f"{match['name']}{BIRTH}", text)
    text = _STREET.sub(ADDRESS, text)
    text = mask_patterns.PLAIN_PASSWORD.sub(_mask_plain_password, _PASSWORD.sub(_mask_password, text))
    for pattern in (_SECRET, _NAMED, _LOGIN):
        text = pattern.sub(_mask_named, text)
    for pattern, stands in mask_patterns.AFTER:
        text = mask_patterns.replace_value(text, pattern, stands)
    text = _IPV6_SHORT.sub(NETWORK, _IPV6.sub(NETWORK, _IPV4.sub(_mask_network, text)))
    text = _NUMBER.sub(_mask_number, text)
    return _HASHED.sub(ORDER, text)


def _mask_turn(turn: Turn, asked: str, names: Sequence[str]) -> str:
    text = _mask_data(personal_names.mask_names(turn.text, names))
    if turn.speaker != "customer" or text != turn.text:
        return text
    is_password = _ASKS_SECRET.search(asked) is not None and _BARE_PASSWORD.fullmatch(turn.text) is not None
    if is_password or _BARE_SECRET.fullmatch(turn.text):
        return SECRET
    return ORDER if _ASKS_REFERENCE.search(asked) and _BARE_REFERENCE.fullmatch(turn.text) else text


def _mask_call(turn: Turn) -> Turn:
    """Return the call with its arguments masked, according to their names and their values."""
    arguments = cast("dict[str, str]", json.loads(turn.text))
    masked = {name: _mask_argument(name, value) for name, value in arguments.items()}
    return replace(turn, text=json.dumps(masked, ensure_ascii=False))


def _mask_argument(name: str, value: str) -> str:
    spaced = regex.sub(r"(?<=\p{Ll})(?=\p{Lu})", "_", name)
    found = next((stands for pattern, stands in _ARGUMENTS if pattern.search(spaced)), None)
    return found or _mask_data(value)


def _mask_iban(match: regex.Match[str]) -> str:
    return ACCOUNT if sum(map(str.isdigit, match[0])) * 2 >= len(match[0].replace(" ", "")) else match[0]


def _mask_password(match: regex.Match[str]) -> str:
    value = match["value"].rstrip(".!?")
    if not value or _NO_PASSWORD.fullmatch(value) or value.casefold().split("-")[0] in mask_patterns.NO_PASSWORD:
        return match[0]
    return f"{match['name']}{match['between']}{SECRET}{match['value'][len(value) :]}"


def _mask_plain_password(match: regex.Match[str]) -> str:
    stands = ACCOUNT if match["name"].casefold().startswith(("user", "login")) else SECRET
    between, before = match["between"].strip(), match.string[max(0, match.start() - _NEAR) : match.start()]
    if (
        match["value"].casefold() in mask_patterns.NO_PASSWORD
        or (between == "," and stands == ACCOUNT)
        or (between == "to" and not _CHANGES.search(before))
    ):
        return match[0]
    return f"{match['name']}{match['between']}{stands}"


def _mask_named(match: regex.Match[str]) -> str:
    groups = match.groupdict()
    if match.re is _SECRET:
        stands = SECRET
    elif groups.get("order"):
        stands = ORDER
    else:
        stands = SOCIAL_SECURITY if _SOCIAL_SECURITY.fullmatch(match["value"]) else ACCOUNT
    return f"{match['name']}{match['between']}{stands}"


def _mask_network(match: regex.Match[str]) -> str:
    lead = match["lead"] or ""
    is_own = "ip" in lead.casefold()
    if (lead and not is_own) or (not is_own and _PRIVATE.match(match["address"])):
        return match[0]
    return f"{lead}{NETWORK}"


def _mask_number(match: regex.Match[str]) -> str:
    number = match["number"]
    return (_classify(number) or number) if number is not None else match[0]


def _mask_certain(match: regex.Match[str]) -> str:
    number = match["number"]
    kind = _classify(number) if number is not None else None
    return kind if kind in {CARD, SOCIAL_SECURITY} else match[0]


def _classify(number: str) -> str | None:
    """Return the placeholder for a number, or `None` if it identifies nobody."""
    digits = [unicodedata.decimal(character) for character in number if character.isdecimal()]
    count = len(digits)
    if _SOCIAL_SECURITY.fullmatch(number):
        return SOCIAL_SECURITY
    if 13 <= count <= 19 and _passes_luhn(digits):
        return CARD
    if "." in number and not _DOTTED_PHONE.fullmatch(number) and not number.startswith("+"):
        return None
    if count >= _MIN_OPAQUE_DIGITS and not number.startswith("+"):
        return ACCOUNT
    if _YEARS.fullmatch(number):
        return None
    if number.isdecimal():
        return ACCOUNT if count >= _MIN_ACCOUNT_DIGITS else None
    if _SPACED_NUMBERS.fullmatch(number) and count < 9:
        return None
    return PHONE if _MIN_PHONE_DIGITS <= count <= _MAX_PHONE_DIGITS else None


def _passes_luhn(digits: Sequence[int]) -> bool:
    """Return whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
