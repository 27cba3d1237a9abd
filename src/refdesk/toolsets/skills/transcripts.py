"""Parses transcripts of many formats into turns of a customer, an agent and tools.

It understands lines with a speaker (`Customer: …`, `[Agent] …`, `**User:** …`, with or without a time before or after
it, in several languages), JSON (a list of turns, an object that holds one, one object a line), and plain text, which
is read as a report: its beginning is the problem, the rest what was done. HTML is taken off. Takes time linear in the
length of the text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

import regex

from refdesk.core import visible
from refdesk.playbooks import Speaker, Turn
from refdesk.toolsets.skills import markup, tool_calls

MAX_TURNS = 2000
"""Most turns that are read of a conversation: half of them from its beginning, half from its end."""

_CUSTOMER_WORDS = """
    customer user client caller human member guest buyer shopper visitor patient subscriber requester enduser
    you cliente usuario kunde kundin utilisateur お客様 お客さま 顧客 客 ユーザー 利用者 客户 用户 顾客 고객
    клиент пользователь zákazník klant
"""
_AGENT_WORDS = """
    agent assistant support representative rep advisor operator csr bot wizard ai helpdesk specialist
    technician staff employee chatbot model consultant advocate supportagent me agente berater beraterin
    conseiller オペレーター 担当者 担当 サポート エージェント スタッフ 客服 坐席 助手 상담원 агент оператор поддержка
"""
_TOOL_WORDS = """
    system tool function action knowledgebase api event note database tools internal 系统 システム
"""
_CUSTOMERS = frozenset(_CUSTOMER_WORDS.split())
_AGENTS = frozenset(_AGENT_WORDS.split())
_TOOLS = frozenset(_TOOL_WORDS.split())
_OF_A_SPEAKER = frozenset({"id", "name", "number", "no", "email", "phone", "address", "reference", "account"})
"""Words of a label that names something of the customer's, such as "user id", and not the customer."""

_IGNORED = frozenset({"userguide", "instructions", "developer"})
"""Speakers whose words are not part of the conversation: instructions to one of the sides."""

_SPEAKER_KEYS = ("speaker", "role", "agent", "from", "author", "sender", "participant", "type", "name", "who")
_TEXT_KEYS = ("text", "content", "message", "utterance", "body", "value", "msg", "transcript")
_LIST_KEYS = (
    "messages",
    "turns",
    "conversation",
    "events",
    "dialogue",
    "dialog",
    "log",
    "original",
    "transcript",
    "utterances",
)

_TIME = r"[\[(]?\d{1,4}[:.\-/T]\d{2}[\d:.\-/TZ ,]{0,24}(?:[ap]\.?m\.?)?[\])]?\s{0,3}[-–|]?\s{0,3}"
_LINE = regex.compile(
    rf"""^[^\S\n]{{0,8}}(?:>\s)?(?P<bullet>[*-]\s)?(?:{_TIME})?
    (?: \*{{0,2}}[\[<](?P<tag>[^\W\d_][\w .'\-]{{0,30}})[\]>]\*{{0,2}}\s{{0,2}}[:：]?
      | \*{{0,2}}(?P<label>[^\W\d_][\w .'\-]{{0,30}}?)(?:\s?[(\[][^)\]\n]{{0,30}}[)\]])?\*{{0,2}}\s?[:：]\*{{0,2}}
    )(?:\s|(?<=：)|$)""",
    regex.VERBOSE | regex.IGNORECASE | regex.MULTILINE,
)
_OFFER = regex.compile(
    r"\b(?:how (?:can|may) i|can i help|help you|assist you|thank you for (?:calling|contacting))", regex.IGNORECASE
)
_SENTENCE = regex.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_MAX_LABELS = 6
_MAX_OPENING = 8


def read(transcript: str) -> tuple[Turn, ...]:
    """Return the turns of a transcript, in order, without blank ones; empty if it contains no word."""
    text = transcript.replace("\r\n", "\n").replace("\r", "\n").strip().lstrip("\ufeff")
    turns = _read_json(text)
    if turns is None:
        text = markup.take_off(text)
        turns = [call for turn in _read_lines(text) or _read_report(text) for call in _find_calls(turn)]
    shown = (turn if turn.call else replace(turn, text=markup.take_off(turn.text)) for turn in turns)
    return _shorten(tuple(_join(turn for turn in shown if turn.call or _has_word(turn.text))))


def holds_turns(text: str) -> bool:
    """Return whether a text in JSON is a conversation by itself: it holds at least two turns."""
    return len(_read_json(text) or ()) > 1


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text)) and visible.is_seen(text)


def _shorten(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    half = MAX_TURNS // 2
    return turns if len(turns) <= MAX_TURNS else turns[:half] + turns[-half:]


def _join(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the turns with trimmed text; consecutive ones of one speaker become one turn, a line for each."""
    for (speaker, call), group in groupby(turns, key=lambda turn: (turn.speaker, turn.call)):
        if call:
            yield from group
        else:
            yield Turn(speaker, "\n".join(turn.text.strip() for turn in group))


def _read_json(text: str) -> list[Turn] | None:
    """Return the turns of a JSON transcript, or `None` when the text is not one."""
    if not text.startswith(("{", "[")):
        return None
    try:
        values: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return None
    items = list(_find_items(values, 4))
    turns = [turn for item in items for turn in _read_item(item)]
    if any(not turn.call and turn.speaker != "system" for turn in turns):
        return turns
    # A transcript whose turns say nothing is not to be read as plain text: its words would be the syntax of the JSON.
    return [] if not turns and _is_empty_transcript(values, 4) else None


def _is_empty_transcript(value: object, depth: int) -> bool:
    """Return whether a value has the form of a transcript: turns with their texts, or an empty list of them."""
    if isinstance(value, list):
        return depth > 0 and any(_is_empty_transcript(item, depth - 1) for item in cast("list[object]", value))
    if not isinstance(value, dict):
        return False
    members = {str(key).lower(): item for key, item in cast("dict[object, object]", value).items()}
    lists = [members[key] for key in _LIST_KEYS if isinstance(members.get(key), list)]
    if lists:
        return not lists[0] or _is_empty_transcript(lists[0], depth - 1)
    is_said = any(isinstance(members.get(key), str) for key in _SPEAKER_KEYS)
    return is_said and any(key in members for key in _TEXT_KEYS)


def _find_calls(turn: Turn) -> Iterator[Turn]:
    """Yield a tool's turn line by line, each call as a call; yield any other turn as it is."""
    if turn.speaker != "system":
        yield turn
        return
    for line in turn.text.splitlines():
        yield tool_calls.read_line(line) or Turn("system", line)


def _find_items(value: object, depth: int) -> Iterator[object]:
    """Yield what may be turns: members of the outermost list whose members look like turns."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if _read_item(item) or depth == 0:
                yield item
            else:
                yield from _find_items(item, depth - 1)
    elif isinstance(value, dict) and depth:
        members = {str(key).lower(): item for key, item in cast("dict[object, object]", value).items()}
        for key in _LIST_KEYS:
            if isinstance(members.get(key), list):
                yield from _find_items(members[key], depth - 1)
                return


def _read_item(item: object) -> list[Turn]:
    """Return the turns of a message: what it says, then what it calls; none if it is not a message."""
    if isinstance(item, list):
        pair = cast("list[object]", item)
        if len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str):
            return _make_turns(pair[0], pair[1])
        return []
    if not isinstance(item, dict):
        return []
    members = {str(key).lower(): value for key, value in cast("dict[object, object]", item).items()}
    speaker = next((value for key in _SPEAKER_KEYS if isinstance(value := members.get(key), str)), None)
    text = next((found for key in _TEXT_KEYS if (found := _get_text(members.get(key)))), "")
    if speaker is None or _is_ignored(speaker):
        return []
    return [*_make_turns(speaker, text), *tool_calls.read_members(members, text)]


def _get_text(value: object) -> str:
    """Return a turn's text: a string, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = cast("list[object]", value)
        texts = [cast("Mapping[str, object]", part).get("text") if isinstance(part, dict) else part for part in parts]
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _make_turns(label: str, text: str) -> list[Turn]:
    speaker = _recognise(label)
    if speaker is None or not text:
        return []
    call = tool_calls.read_line(text) if speaker == "system" else None
    return [call or Turn(speaker, text)]


def _recognise(label: str) -> Speaker | None:
    """Return the role of a label, or `None` when it is unknown."""
    words = _get_words(label)
    if words & (_IGNORED | _OF_A_SPEAKER):
        return None
    if words & _TOOLS:
        return "system"
    # "customer support" and "user agent" are the agent's side.
    if words & _AGENTS:
        return "agent"
    return "customer" if words & _CUSTOMERS else None


def _is_ignored(label: str) -> bool:
    return bool(_get_words(label) & _IGNORED)


def _get_words(label: str) -> set[str]:
    """Return the words of a label, and all of them joined into one."""
    parts = regex.split(r"[\s_\-.']+", label.strip().casefold())
    return {"".join(parts), *parts}


def _read_lines(text: str) -> list[Turn] | None:
    """Return the turns of a transcript of lines with speakers, or `None` when it is not one."""
    marks = list(_LINE.finditer(text))
    if not marks:
        return None
    if not marks[0]["bullet"]:
        # If the turns are not items of a list, then any list item is part of what is said.
        marks = [mark for mark in marks if not mark["bullet"]]
    speakers = _assign(_get_parts(text, marks))
    marks = [mark for mark in marks if _get_label(mark) in speakers]
    # A report may quote what the agent said; what is said by agents alone is no report.
    is_of_agents = len(marks) > 1 and not text[: marks[0].start()].strip() and "agent" in speakers.values()
    if "customer" not in speakers.values() and not is_of_agents:
        return None
    lead = [Turn("customer", text[: marks[0].start()])] if text[: marks[0].start()].strip() else []
    for label, words in _get_parts(text, marks):
        speaker = speakers[label]
        if speaker is not None:
            lead.append(Turn(speaker, words))
    return lead


def _get_parts(text: str, marks: Sequence[regex.Match[str]]) -> list[tuple[str, str]]:
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [(_get_label(mark), text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]


def _get_label(mark: regex.Match[str]) -> str:
    return " ".join((mark["tag"] or mark["label"]).casefold().split())


def _assign(parts: Sequence[tuple[str, str]]) -> dict[str, Speaker | None]:
    """Return the role of each label; `None` for one whose words are to be left out.

    Unknown labels count as names if they recur or offer help. If only one side is known by its label, names are the
    other side. Otherwise those who offer help are agents and the rest customers; if nobody offers help, the first to
    speak is the customer and the rest are agents.
    """
    counts = Counter(label for label, _ in parts)
    known: dict[str, Speaker | None] = {}
    for label in counts:
        speaker = _recognise(label)
        if speaker is not None or _is_ignored(label):
            known[label] = speaker
    offering = {label for label, words in parts[:_MAX_OPENING] if _OFFER.search(words)}
    unknown = [label for label, count in counts.items() if label not in known and (count > 1 or label in offering)]
    names = unknown[:_MAX_LABELS]
    has_agent, has_customer = "agent" in known.values(), "customer" in known.values()
    for label in names:
        if has_agent != has_customer:
            known[label] = "customer" if has_agent else "agent"
        else:
            is_agent = label in offering or (label != names[0] and not offering & set(names))
            known[label] = "agent" if is_agent else "customer"
    return known


def _read_report(text: str) -> list[Turn]:
    """Return a text without speakers as two turns: its beginning as the problem, the rest as what was done."""
    head, _, tail = text.partition("\n\n")
    if not tail.strip():
        sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
        head, tail = "".join(sentences[:1]), "\n".join(sentences[1:])
    return [Turn("customer", head), Turn("agent", tail)]
