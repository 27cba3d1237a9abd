"""Cautions about a thing, for people: in place of the name of the tool that agents get, there is a link."""

from __future__ import annotations

import re

from refdesk.server.console.addresses import find_address

_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z0-9])")
_IMPACTS = re.compile(r": list_impacts\.$")
_ANNOUNCEMENT = re.compile(r": announcement (\S+)\.$")
_CONTRADICTED = re.compile(r"^Contradicted by (.+): list_cases\.$")
_SAME = re.compile(r"^Says the same as (\S+?)(?:, .+)?\.$")


def split_caution(caution: str, page: str) -> list[tuple[str, str]]:
    """Return the sentences of a caution, each with the address of what shows it; empty if nothing does.

    Args:
        caution: As operations return it.
        page: The address of the thing.
    """
    return [_lead(sentence, page.partition("#")[0]) for sentence in _SENTENCE.split(caution) if sentence]


def _lead(sentence: str, page: str) -> tuple[str, str]:
    if _IMPACTS.search(sentence):
        return _IMPACTS.sub(".", sentence), f"{page}#impacts"
    if found := _ANNOUNCEMENT.search(sentence):
        return _ANNOUNCEMENT.sub(".", sentence), find_address("azure-updates", found[1])
    if found := _CONTRADICTED.match(sentence):
        count = found[1].count(",") + 1
        return f"Contradicted by {'another entry' if count == 1 else f'{count} other entries'}.", f"{page}#cases"
    if found := _SAME.match(sentence):
        return "Another entry says the same.", find_address("knowledge", found[1])
    return sentence, ""
