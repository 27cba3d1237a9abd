"""Exports of ticket systems give the same turns as a plain transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refdesk.playbooks import Turn
from refdesk.toolsets.skills.transcript_files import read_transcripts
from refdesk.toolsets.skills.transcripts import read

TURNS = (
    Turn("customer", "The printer is dead: no lights."),
    Turn("agent", "Is it plugged in?"),
    Turn("customer", "Now it works"),
)
SAID = [turn.text for turn in TURNS]

ZENDESK = {
    "id": 1,
    "requester_id": 7,
    "description": SAID[0],
    "comments": [
        {"author_id": 7, "body": SAID[0], "public": True},
        {"author_id": 9, "body": SAID[1], "public": True},
        {"author_id": 9, "body": "He sounds angry.", "public": False},
        {"author_id": 7, "plain_body": SAID[2], "body": "<p>x</p>", "public": True},
    ],
}
INTERCOM = {
    "source": {"body": f"<p>{SAID[0]}</p>", "author": {"type": "user"}},
    "conversation_parts": {
        "conversation_parts": [
            {"part_type": "comment", "body": f"<p>{SAID[1]}</p>", "author": {"type": "admin"}},
            {"part_type": "note", "body": "angry", "author": {"type": "admin"}},
            {"part_type": "comment", "body": "<p>Now <b>it</b> works</p>", "author": {"type": "user"}},
        ]
    },
}
SALESFORCE = {
    "CaseNumber": "00001",
    "Description": SAID[0],
    "EmailMessages": {
        "records": [
            {"TextBody": SAID[2], "Incoming": True, "MessageDate": "2026-01-02T10:00:00Z"},
            {"TextBody": SAID[1], "Incoming": False, "MessageDate": "2026-01-01T10:00:00Z"},
        ]
    },
}
TABLE = "\n".join(["Ticket ID,Author,Text", *(f'1,{turn.speaker},"{turn.text}"' for turn in TURNS)])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zendesk.json", json.dumps({"tickets": [ZENDESK]})),
        ("zendesk.jsonl", json.dumps(ZENDESK)),
        ("intercom.json", json.dumps({"conversations": [INTERCOM]})),
        ("salesforce.json", json.dumps({"records": [SALESFORCE]})),
        ("table.csv", TABLE),
        (
            "whole.csv",
            'id,transcript\n1,"Customer: ' + SAID[0] + "\nAgent: " + SAID[1] + "\nCustomer: " + SAID[2] + '"\n',
        ),
    ],
)
def test_an_export_gives_the_turns_of_each_ticket(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    [transcript] = read_transcripts(tmp_path / name)
    assert read(transcript.text) == TURNS


def test_a_folder_is_read_file_by_file_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden.txt"):
        (tmp_path / name).write_text(f"Customer: {SAID[0]}\nAgent: {SAID[1]}")
    assert [transcript.place for transcript in read_transcripts(tmp_path)] == ["a.txt", "b.txt"]
