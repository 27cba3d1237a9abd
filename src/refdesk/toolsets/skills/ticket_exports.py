"""Reads the conversations out of exports of ticket systems: Zendesk, Intercom, Salesforce cases, and tables (CSV).

Each becomes a JSON transcript, a list of messages with speaker and text, which `transcripts` reads like any other.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import cast

import regex

Members = Mapping[str, object]

_TAG = regex.compile(r"<(?:br|/p|/div|/li)\b[^<>]{0,200}>|(<[^<>]{1,2000}>)", regex.IGNORECASE)
_ID_COLUMNS = ("conversation_id", "ticket_id", "case_id", "case_number", "casenumber", "thread_id", "dialogue_id", "id")
_SPEAKER_COLUMNS = ("speaker", "role", "author_type", "author", "from", "sender", "participant")
_TEXT_COLUMNS = ("text", "message", "body", "content", "comment", "utterance")
_WHOLE_COLUMNS = ("transcript", "conversation", "dialogue")


def read_export(value: object) -> Iterator[str]:
    """Yield the transcripts that a JSON document holds; none if it is no known export."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from read_export(item)
        return
    if not isinstance(value, dict):
        return
    members = cast("Members", value)
    for key in ("tickets", "conversations", "records", "cases"):
        if isinstance(members.get(key), list):
            yield from read_export(members[key])
            return
    messages = _read_zendesk(members) or _read_intercom(members) or _read_salesforce(members)
    if len(messages) > 1:
        yield json.dumps(messages, ensure_ascii=False)


def read_table(text: str) -> list[str] | None:
    """Return the transcripts of a table, in the order of their first rows; `None` if it lacks the columns for them.

    A row is a whole conversation, or one message of the conversation whose id it names.
    """
    reader = csv.DictReader(io.StringIO(text))
    names = {name.strip().casefold().replace(" ", "_"): name for name in reader.fieldnames or () if name}
    whole = next((names[name] for name in _WHOLE_COLUMNS if name in names), None)
    said = next((names[name] for name in _TEXT_COLUMNS if name in names), None)
    speaker = next((names[name] for name in _SPEAKER_COLUMNS if name in names), None)
    if whole is not None:
        return [row[whole] for row in reader if (row.get(whole) or "").strip()]
    if said is None or speaker is None:
        return None
    key = next((names[name] for name in _ID_COLUMNS if name in names), None)
    found: dict[str, list[dict[str, str]]] = {}
    for row in reader:
        message = {"speaker": row.get(speaker) or "", "text": row.get(said) or ""}
        found.setdefault(row.get(key) or "" if key is not None else "", []).append(message)
    return [json.dumps(messages, ensure_ascii=False) for messages in found.values()]


def _read_zendesk(members: Members) -> list[dict[str, str]]:
    """Return the public comments of a ticket; whoever requested it is the customer."""
    ticket = _get(members, "ticket") or members
    comments, requester = members.get("comments") or ticket.get("comments"), ticket.get("requester_id")
    if not isinstance(comments, list) or requester is None:
        return []
    public = [comment for comment in _list(cast("object", comments)) if comment.get("public") is not False]
    messages = [
        _say(comment.get("author_id") == requester, comment.get("plain_body") or comment.get("body"))
        for comment in public
    ]
    first = _say(True, ticket.get("description"))
    return messages if messages and messages[0]["speaker"] == "customer" else [first, *messages]


def _read_intercom(members: Members) -> list[dict[str, str]]:
    """Return the parts of a conversation; users and leads are the customer."""
    source, parts = _get(members, "source"), _get(members, "conversation_parts")
    if source is None or parts is None:
        return []
    every = [source, *_list(parts.get("conversation_parts"))]
    return [
        _say((_get(part, "author") or {}).get("type") in {"user", "lead", "contact"}, part.get("body"))
        for part in every
        if part.get("body") and part.get("part_type") != "note"
    ]


def _read_salesforce(members: Members) -> list[dict[str, str]]:
    """Return the e-mails and comments of a case by date; incoming ones are the customer's."""
    lower = {key.casefold(): value for key, value in members.items()}
    if (
        not {"casenumber", "description"} & lower.keys()
        or not {"casecomments", "emailmessages", "feeds"} & lower.keys()
    ):
        return []
    dated: list[tuple[str, dict[str, str]]] = []
    for key in ("casecomments", "emailmessages", "feeds"):
        held = lower.get(key)
        for item in _list(cast("Members", held).get("records") if isinstance(held, dict) else held):
            one = {name.casefold(): value for name, value in item.items()}
            is_customer = bool(one.get("incoming")) or one.get("createdbytype") in {"Customer", "Contact"}
            text = one.get("commentbody") or one.get("textbody") or one.get("body") or one.get("htmlbody")
            dated.append((str(one.get("createddate") or one.get("messagedate") or ""), _say(is_customer, text)))
    messages = [message for _, message in sorted(dated, key=lambda pair: pair[0])]
    return [_say(True, lower.get("description") or lower.get("subject")), *messages]


def _say(is_customer: bool, text: object) -> dict[str, str]:
    plain = _TAG.sub(lambda tag: "" if tag[1] else "\n", text if isinstance(text, str) else "")
    return {"speaker": "customer" if is_customer else "agent", "text": unescape(plain).strip()}


def _get(members: Members, key: str) -> Members | None:
    value = members.get(key)
    return cast("Members", value) if isinstance(value, dict) else None


def _list(value: object) -> Sequence[Members]:
    return (
        [cast("Members", item) for item in cast("list[object]", value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )
