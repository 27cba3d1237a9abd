"""How customers begin, and whether that says anything by which a skill can be found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import regex

from refdesk.core.search.analysis import analyse, get_stop_terms

if TYPE_CHECKING:
    from refdesk.playbooks import Case

MOST_WORDS = 12
"""Most words of an opening that may say nothing; a longer one always counts as saying something."""

LOW_SCORE = 0.1
"""Score of the best answer to a question that says nothing: any threshold refuses it."""

_CIVIL_WORDS = """
    hello hi hey hallo hullo helo hiya howdy yo greetings welcome good morning afternoon evening day night today there
    please help assist assistance can could may need want question thanks thank ok okay yes sir madam dear again ai
    everyone somebody someone anyone anybody here name hola buenos días bonjour salut ciao guten tag morgen こんにちは
    すみません 你好 您好
"""
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]{1,40}\]")


@cache
def _get_civil() -> frozenset[str]:
    return frozenset(analyse(_CIVIL_WORDS)) | get_stop_terms()


def says_nothing(text: str) -> bool:
    """Return whether a text is only a greeting, a name or a bare call for help: nothing says yet what it is about."""
    if len(text.split()) > MOST_WORDS:
        return False
    from refdesk.kit import personal_names

    bare = _PLACEHOLDER.sub(" ", personal_names.mask_names(text, personal_names.find_in(text)))
    return not set(analyse(bare)) - _get_civil()


def leave_pleasantries(question: str) -> str:
    """Return a question without greetings and names, as openings are kept; unchanged if nothing else is left.

    Otherwise "I need a ride. My name is John" would be near every John.
    """
    from refdesk.kit import personal_names, sentences

    masked = personal_names.mask_names(question, personal_names.find_in(question))
    return " ".join(sentences.split(masked)) or question


def count_silent(cases: Iterable[Case]) -> int:
    """Return in how many of the cases the customer's first turn says nothing."""
    firsts = (next((turn.text for turn in case.turns if turn.speaker == "customer"), "") for case in cases)
    return sum(says_nothing(first) for first in firsts)
