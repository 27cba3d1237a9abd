"""The cases of a skill: the conversations that it was learned from, masked and cut to size, as records in the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from refdesk.kit import sentences, verdicts
from refdesk.model import Metadata, MetadataKey
from refdesk.playbooks import Case, Turn

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import JsonValue
    from refdesk.playbooks import Speaker
    from refdesk.protocols import Reader
    from refdesk.toolsets.skills.records import Skill

MAX_CASES = 200
"""Most cases of a skill that an induction looks at: the newest."""

MAX_TURNS = 240
MAX_TEXT = 800
"""Most turns of a case that are kept, and most code points of each."""

EARLIER = "earlier"
"""The id of the case that stands for what a skill said before cases were kept."""

_OUTCOMES = {"worked": "likely_resolved", "failed": "likely_failed", "": ""}


def digest(turns: Sequence[Turn]) -> str:
    """Return the id of a conversation: the same for the same turns."""
    said = [[turn.speaker, turn.text, turn.call] if turn.call else [turn.speaker, turn.text] for turn in turns]
    return hashlib.blake2b(json.dumps(said, ensure_ascii=True).encode(), digest_size=16).hexdigest()


def make_case(turns: Sequence[Turn], confirmed: bool = False, note: str = "") -> Case:
    """Return the case of masked turns; of a very long one, only its beginning and its end."""
    half = MAX_TURNS // 2
    kept = turns if len(turns) <= MAX_TURNS else [*turns[:half], *turns[-half:]]
    outcome = "resolved" if confirmed else judge(turns)
    return Case(digest(turns), tuple(_cut(turn) for turn in kept), outcome, note)


def judge(turns: Sequence[Turn]) -> str:
    """Return how a conversation seems to have gone, by the customer's last words; empty if they do not tell.

    The customer may have said earlier that it worked: "No, that is all" only answers whether there is anything else.
    """
    said = [turn.text for turn in reversed(turns) if turn.speaker == "customer"]
    verdict = verdicts.judge_end(said[0]) if said else ""
    for text, earlier in pairwise(said):
        if verdict or sentences.split(text):
            break
        verdict = "worked" if verdicts.judge_end(earlier) == "worked" else ""
    return _OUTCOMES[verdict]


def make_earlier(skill: Skill) -> Case:
    """Return what a skill says as a case, for one that was learned before cases were kept."""
    said = [Turn("customer", skill.problem), *_retell(skill)]
    return Case(EARLIER, tuple(_cut(turn) for turn in said), "resolved")


def _retell(skill: Skill) -> Iterator[Turn]:
    for step in skill.playbook.steps:
        yield Turn("agent", step.say or step.do)
        yield Turn("customer", "OK")


def _cut(turn: Turn) -> Turn:
    if len(turn.text) <= MAX_TEXT:
        return turn
    return replace(turn, text="{}" if turn.call else turn.text[:MAX_TEXT].rstrip())


def get_kind(skill_id: str) -> str:
    """Return the kind of the records of a skill's cases."""
    return f"skill_case/{skill_id}"


def to_record(case: Case, org: str, skill_id: str, agent: str, now: datetime) -> Metadata:
    """Return the record of a skill's case; it names the agent who sent it, so that erasing the agent erases it."""
    turns: list[JsonValue] = [[turn.speaker, turn.text, turn.call] for turn in case.turns]
    value: dict[str, JsonValue] = {
        "skill_id": skill_id,
        "turns": turns,
        "outcome": case.outcome,
        "note": case.note,
        "agent": agent,
        "at": now.isoformat(),
    }
    return Metadata(MetadataKey(org, get_kind(skill_id), case.id), value)


def to_case(record: Metadata) -> Case:
    """Return the case of a record."""
    turns = cast("Sequence[Sequence[str]]", record.value["turns"])
    return Case(
        record.key.name,
        tuple(Turn(cast("Speaker", speaker), text, call) for speaker, text, call in turns),
        str(record.value["outcome"]),
        str(record.value["note"]),
    )


async def read_cases(reader: Reader, org: str, skill_id: str) -> list[Case]:
    """Return the cases of a skill, oldest first, the newest `MAX_CASES` of them."""
    records = await reader.list_metadata(get_kind(skill_id), org=org, limit=10 * MAX_CASES)
    records.sort(key=lambda record: (str(record.value["at"]), record.key.name))
    return [to_case(record) for record in records[-MAX_CASES:]]
