"""Masks personal data in a conversation before anything of it is stored or sent to a model.

Masked are e-mail addresses, card numbers, telephone numbers, social security numbers, bank account numbers (IBAN too),
and whatever follows words such as "account number" or "PIN". A run of twelve digits or more is masked whatever it is.
Dates, times, prices, versions and network addresses stay. Every pattern is linear in the length of the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import regex

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.playbooks import Turn

CARD, EMAIL, PHONE = "[card number]", "[e-mail]", "[phone number]"
SOCIAL_SECURITY, ACCOUNT, SECRET = "[social security number]", "[account number]", "[secret]"

_MIN_ACCOUNT_DIGITS = 7
_MIN_PHONE_DIGITS = 7
_MAX_PHONE_DIGITS = 15
_MIN_OPAQUE_DIGITS = 12

_Replace: TypeAlias = "Callable[[regex.Match[str]], str]"

_EMAIL = regex.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_IBAN = regex.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?!\w)")
_NAMED = regex.compile(
    r"""(?<!\w)(?P<name>
        (?P<secret>pin|cvv|cvc|passcode|password|security\ code|access\ code)(?:\ (?:code|number))?
        | (?:account|acct|customer|member|policy|iban|passport|licen[cs]e|social\ security|ssn)
          (?:\ (?:number|no\.?|id|\#))?
        | user\ ?name | login
        | (?P<code>暗証番号|パスワード) | 口座番号 | 会員番号
      )(?P<between>\s{0,2}(?:is|was|are|=|:|：|は|が)?\s{0,2}['"#]?)
      (?P<value>(?=\S{0,40}\d)[\w@.*+-]{3,40}(?:[ -]\d{2,8}){0,6})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_NUMBER = regex.compile(
    r"""(?P<left>
        (?<![\w.]) \d{4}-\d{1,2}-\d{1,2} (?![\d-]) [T ]?
      | (?<![\w.]) \d{1,2}([/.-])\d{1,2}\2(?:\d{4}|\d{2}) (?![\d./-])
      | (?<![\w.]) \d{1,3}(?:\.\d{1,3}){3} (?![\d.])
      )
      | (?P<number> (?<![A-Za-z0-9_.,]) (?:\+|\(\+?)?\d (?:[\s().\-/]{0,2}\d){5,40} (?![\d]) )""",
    regex.VERBOSE,
)
_SOCIAL_SECURITY = regex.compile(r"\d{3}-\d{2}-\d{4}")
_DOTTED_PHONE = regex.compile(r"\d{3}\.\d{3}\.\d{4}")
_SPACED_NUMBERS = regex.compile(r"\d{1,5}(?:\s\d{1,5})+")
_BARE_SECRET = regex.compile(r"\W*(?:(?:it'?s|is|sure|ok|yes),?\s)?\W*\d[\d\s-]{2,11}\W*", regex.IGNORECASE)


def mask(text: str) -> str:
    """Return the text with personal data replaced by what it was, in square brackets. Masking again changes nothing."""
    text = _EMAIL.sub(EMAIL, text)
    text = _IBAN.sub(ACCOUNT, text)
    text = _NAMED.sub(_mask_named, text)
    return _NUMBER.sub(_mask_number, text)


def mask_turns(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns, each masked; a customer's turn of digits alone, which answers a question, is masked whole."""
    return tuple(replace(turn, text=_mask_turn(turn)) for turn in turns)


def mask_value(value: JsonValue) -> JsonValue:
    """Return a JSON value with e-mail addresses, card and social security numbers masked in its texts.

    Other numbers stay: what a caller hands over as metadata are references of its own, such as a ticket.
    """
    if isinstance(value, str):
        return _NUMBER.sub(_mask_certain, _EMAIL.sub(EMAIL, value))
    if isinstance(value, dict):
        return {key: mask_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_value(item) for item in value]
    return value


def _mask_turn(turn: Turn) -> str:
    if turn.speaker == "customer" and _BARE_SECRET.fullmatch(turn.text):
        masked = mask(turn.text)
        return masked if masked != turn.text else SECRET
    return mask(turn.text)


def _mask_named(match: regex.Match[str]) -> str:
    if match["secret"] or match["code"]:
        stands = SECRET
    else:
        stands = SOCIAL_SECURITY if _SOCIAL_SECURITY.fullmatch(match["value"]) else ACCOUNT
    return f"{match['name']}{match['between']}{stands}"


def _mask_number(match: regex.Match[str]) -> str:
    number = match["number"]
    return (_classify(number) or number) if number is not None else match[0]


def _mask_certain(match: regex.Match[str]) -> str:
    number = match["number"]
    kind = _classify(number) if number is not None else None
    return kind if kind in {CARD, SOCIAL_SECURITY} else match[0]


def _classify(number: str) -> str | None:
    """Return the placeholder for a number, or `None` when it identifies nobody."""
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
    if number.isdecimal():
        return ACCOUNT if count >= _MIN_ACCOUNT_DIGITS else None
    if _SPACED_NUMBERS.fullmatch(number) and count < 9:
        return None
    return PHONE if _MIN_PHONE_DIGITS <= count <= _MAX_PHONE_DIGITS else None


def _passes_luhn(digits: Sequence[int]) -> bool:
    """Return whether the last digit checks the others (ISO/IEC 7812-1, annex B)."""
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
