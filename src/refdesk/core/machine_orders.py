"""Recognises text that gives orders to a machine that reads it, not to a person: a playbook must not pass them on."""

from __future__ import annotations

import regex

_ORDER = regex.compile(
    r"""\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|guideline|rules?\b)
    | \b(?:system|developer)\s(?:prompt|message|instruction) | \b(?:print|reveal|repeat|show)\b.{0,30}\bprompt\b
    | \byou\sare\s(?:now|no\slonger)\s(?:an?|bound|restricted|free|dan)\b | \bas\san?\s(?:ai|language\smodel|llm)\b
    | \bact\sas\b.{0,40}\b(?:admin|root|developer|unrestricted|an?\sai) | \bjailbreak | \bprompt\sinjection
    | <\s*/?\s*(?:system|assistant|instructions?|tool)\b | \[/?inst\] | <\|
    | \b(?:add|write|save|store|put|include|insert|output|record)\b.{0,40}\b(?:skills?|playbook|knowledge\sbase)\b
    | (?:以前|これまで|上記|前)の(?:指示|命令|ルール) | 指示を(?:無視|忘れ) | (?:忽略|无视).{0,8}(?:指令|指示|规则)""",
    regex.IGNORECASE | regex.VERBOSE,
)


def is_order(text: str) -> bool:
    """Return whether a text tries to give orders to a machine that reads it."""
    return _ORDER.search(text) is not None
