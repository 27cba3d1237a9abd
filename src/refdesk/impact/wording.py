"""What sentences say about the things they name: that they are gone, self-hosted or only planned; and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refdesk.core.search.analysis import analyse, get_stop_terms

_SENTENCE_END = re.compile(r"(?:[.!?…][\"'”’)\]]*(?=\s+[^a-z\s]|\s*$)|\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)])\s))\s*")

_LEFT = r"""moved|migrated|ported|upgraded|converted|replaced|switched|swapped|retired|removed|deleted|dropped
        |decommissioned|rebuilt|rewritten|redeployed|resized|transitioned|abandoned|given\s+(?:up|back)|phased\s+out|shut\s+down
        |turned\s+off|switched\s+off|gone|left\s+behind"""
_GONE = re.compile(
    rf"""\b(?:was|were|been|got|is|are|we|have|has|had|all|everything|last\s+\w+)\s+
        (?:(?:all|now|already|finally|fully|since|then|meanwhile|both|just)\s+)*(?:{_LEFT})
      | \b(?:moved|migrated|ported|switched|upgraded|transitioned|replaced|converted|changed|went)\b[^.;]{{0,60}}
        \b(?:from|off|away\s+from)\b
      | \b(?:moved|migrated|ported|switched|upgraded|replaced|converted|swapped|dropped|removed|abandoned|left|retired
        |decommissioned)\b(?=[^.;]{{0,90}}\b(?:in|since|before|last|on|by|during|for|with|when|see)\b)
      | \bno\s+longer\b | \bnot?\b[^.;]{{0,40}}\bany\s?more\b | \bany\s?more\b
      | \b(?:was|were)\s+(?:finished|completed)\b | \bused\s+to\s+(?:be|run|use|have|live)\b
      | \bformerly\b | \bgoodbye\b | \bgave\s+(?:it\s+)?up\b | \bnothing\s+(?:of\b|\w+\s+left)
      | \b(?:no|none|nothing|zero)\b[^.;]{{0,50}}\b(?:left|remains?|remaining|in\s+use)\b
      | \b(?:left|behind)\b[^.;]{{0,40}}\bbehind\b
      | \bsince\s+the\s+(?:move|migration|rewrite|refresh|upgrade|switch|change|relaunch)\b | \btook\s+over\b
      | \bin\s+favou?r\s+of\b | \b(?:is|are|was|were)\s+gone\b | \bused\s+until\b | \bsuccessor\b | \breplaced\b""",
    re.IGNORECASE | re.VERBOSE,
)
_AHEAD = re.compile(
    r"""\b(?:will|would|shall|should|must|may|might|could|can|cannot|can't|to)\s+
        (?:not\s+)?(?:be\s+)?(?:start\s+)?(?:to\s+)?
        (?:mov|migrat|port|upgrad|convert|replac|switch|swap|retir|remov|delet|drop|decommission|rebuild|rewrit
        |transition|abandon)\w*
      | \b(?:plan(?:s|ned|ning)?|intend|next\s+(?:year|quarter|month)|not\s+yet|until\s+they|when\s+we|before\s+we
        |once\s+we|have\s+to|need(?:s)?\s+to|todo|open\s+ticket)\b
      | \b(?:start|begin)\s+(?:convert|migrat|mov|upgrad)ing\b
      | \bnot\s+(?:been\s+)?(?:moved|migrated|upgraded|replaced)\b
      | \bnever\s+(?:been\s+)?(?:moved|migrated|upgraded)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_OWN = re.compile(
    r"""\b(?:our|my|their|its)\s+own\b(?!\s+(?:registration|app\b|domain|certificate|subscription))
      | \bself[\s-]?hosted\b | \bourselves\b | \bon[\s-]prem(?:ises|ise)?\b | \bbare[\s-]?metal\b
      | \b(?:in|from)\s+(?:our|the)\s+(?:own\s+)?(?:data\s?cent(?:re|er)s?|server\s+room|basement|rack|depot|plant)\b
      | \brack\s+\d+\b | \bserver\s+room\b
      | \bon\s+(?:(?:two|three|four|five|six|\d+|a|the|our|some|linux|windows|plant|few)\s+)*(?:linux\s+|windows\s+)?
        (?:vms?|virtual\s+machines?|servers?|hosts?|boxes|box|laptops?|raspberry)\b
      | \b(?:open[\s-]source|oss|debian\s+package|by\s+(?:puppet|ansible|helm)|installed\s+by|wsl|laptops?|k3s|patroni
        |keepalived|operator)\b
      | \b(?:aws|amazon|gcp|google\s+cloud|hetzner|ovh)\b
      | \b(?:no|not\s+in|nothing[^.;]{0,20}\bin)\s+(?:the\s+)?(?:cloud|azure)\b | \bazure\s+is\s+not\b
      | \bnot?\s+(?:involved|managed|in\s+azure)\b | \bno\s+managed\b""",
    re.IGNORECASE | re.VERBOSE,
)


_AWAITED = re.compile(
    r"""\b(?:not|never|isn't|aren't|wasn't|cannot|can't|don't|doesn't|won't)\b[^.;]{0,60}\byet\b
      | \b(?:is|are|was|were)(?:\s+(?:still\s+)?not|n't)\s+(?:be\s+)?(?:generally\s+)?
        (?:available|supported|released|offered|possible|ga)\b
      | \b(?:does|do)(?:\s+(?:still\s+)?not|n't)\s+(?:offer|support|have)\b
      | \b(?:only|still)\s+(?:a|in)\s+(?:(?:public|private)\s+)?preview\b | \bpreview\s+only\b
      | \b(?:until|once|as\s+soon\s+as|when|before)\b[^.;]{0,60}\b
        (?:is|are|becomes?|goes|go|reaches)\s+(?:ga\b|generally\s+available|available|supported|released)
      | \bwait(?:s|ing)?\s+(?:for|until)\b | \bno\s+support\s+for\b | \bcoming\s+soon\b
      | \bworkaround\s+until\b""",
    re.IGNORECASE | re.VERBOSE,
)


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the sentences and list items of a text, without surrounding blanks."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield from _trim(text, start, match.end())
        start = match.end()
    yield from _trim(text, start, len(text))


def _trim(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def is_gone(sentence: str) -> bool:
    """Return whether a sentence says that something was left behind, rather than that it will be."""
    return _GONE.search(sentence) is not None and _AHEAD.search(sentence) is None


def is_awaited(sentence: str) -> bool:
    """Return whether a sentence says that something is not available yet."""
    return _AWAITED.search(sentence) is not None


def is_own(text: str) -> bool:
    """Return whether a text speaks of something self-hosted, or of another cloud."""
    return _OWN.search(text) is not None


def get_terms(text: str) -> list[str]:
    """Return the terms of a text in order, without stop words."""
    return [term for term in analyse(text) if term not in get_stop_terms()]
