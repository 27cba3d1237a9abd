"""Transcripts in many forms give the same turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refdesk.errors import SourceError
from refdesk.playbooks import Turn
from refdesk.toolsets.skills.transcript_files import read_transcripts
from refdesk.toolsets.skills.transcripts import MAX_TURNS, read

TURNS = (
    Turn("customer", "The printer is dead: no lights."),
    Turn("agent", "Is it plugged in?"),
    Turn("customer", "Now it works"),
)
SAID = [turn.text for turn in TURNS]


def as_json(speaker: str, text: str, names: tuple[str, str]) -> list[dict[str, str]]:
    return [{speaker: names[place % 2], text: said} for place, said in enumerate(SAID)]


@pytest.mark.parametrize(
    "transcript",
    [
        f"Customer: {SAID[0]}\nAgent: {SAID[1]}\nCustomer: {SAID[2]}",
        f"customer:{SAID[0]}\nagent:{SAID[1]}\ncustomer:{SAID[2]}".replace(":", ": ", 1)
        .replace("\nagent:", "\nagent: ")
        .replace("\ncustomer:", "\ncustomer: "),
        f"\ufeffUSER: {SAID[0]}\r\nASSISTANT: {SAID[1]}\r\nUSER: {SAID[2]}\r\n",
        f"[10:22] Customer (web): {SAID[0]}\n[10:23] **Agent:** {SAID[1]}\n[10:24] Customer (web): {SAID[2]}",
        f"2024-01-15 10:22:33 - Client: {SAID[0]}\n2024-01-15 10:22:40 - Support: {SAID[1]}\n10:23 Client: {SAID[2]}",
        f"<customer> {SAID[0]}\n[Agent] {SAID[1]}\n<customer> {SAID[2]}",
        f"Anna: {SAID[0]}\nBob: {SAID[1]}\nAnna: {SAID[2]}\nBob: ok".removesuffix("\nBob: ok") + "",
        f"お客様：{SAID[0]}\nオペレーター：{SAID[1]}\nお客様：{SAID[2]}",
        json.dumps(as_json("role", "content", ("user", "assistant"))),
        json.dumps({"id": 1, "messages": as_json("speaker", "text", ("Customer", "Agent"))}),
        json.dumps(
            {"Events": [*as_json("Agent", "Text", ("User", "Wizard")), {"Agent": "UserGuide", "Text": "Say hi"}]}
        ),
        json.dumps([[name, said] for name, said in zip(["customer", "agent", "customer"], SAID, strict=True)]),
        "\n".join(map(json.dumps, as_json("from", "body", ("visitor", "operator")))),
    ],
)
def test_a_transcript_gives_its_turns_whatever_its_form(transcript: str) -> None:
    if transcript.startswith("Anna"):
        transcript += "\nBob: How can I help you otherwise?"
        assert read(transcript)[:3] == TURNS
    else:
        assert read(transcript) == TURNS


def test_lines_without_a_speaker_belong_to_the_turn_before() -> None:
    assert read("Customer: one\ntwo: three\nAgent: four") == (
        Turn("customer", "one\ntwo: three"),
        Turn("agent", "four"),
    )


def test_turns_of_one_speaker_in_a_row_are_one() -> None:
    assert read("Agent: a\nAgent: b\nCustomer: c") == (Turn("agent", "a\nb"), Turn("customer", "c"))


def test_a_report_is_read_as_a_problem_and_what_was_done() -> None:
    report = "The VPN drops every hour.\n\nWe changed the MTU to 1400. It works now."
    assert read(report) == (
        Turn("customer", "The VPN drops every hour."),
        Turn("agent", "We changed the MTU to 1400. It works now."),
    )


@pytest.mark.parametrize("text", ["", " \n\t", "?!", "{}", "[]", '{"a": []}', "Customer:\nAgent:"])
def test_what_holds_no_turn_never_breaks(text: str) -> None:
    assert all(turn.text.strip() for turn in read(text))


def test_a_long_conversation_keeps_its_beginning_and_its_end() -> None:
    turns = read("".join(f"Customer: q{number}\nAgent: a{number}\n" for number in range(5000)))
    assert len(turns) == MAX_TURNS
    assert turns[0] == Turn("customer", "q0")
    assert turns[-1] == Turn("agent", "a4999")


def test_a_file_of_conversations_a_line_gives_each(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    talks = [json.dumps({"turns": as_json("role", "text", ("user", "agent"))}) for _ in range(3)]
    path.write_text("\n".join(talks) + "\n")
    assert [found.place for found in read_transcripts(path)] == ["talks.jsonl:1", "talks.jsonl:2", "talks.jsonl:3"]
    assert [read(found.text) for found in read_transcripts(path)] == [TURNS] * 3


def test_a_file_of_turns_a_line_is_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, as_json("role", "text", ("user", "agent")))))
    [found] = read_transcripts(path)
    assert read(found.text) == TURNS


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match=r"talk\.txt"):
        list(read_transcripts(tmp_path / "talk.txt"))


CALLS = (
    Turn("customer", "Where is order 4471?"),
    Turn("system", '{"order": "4471"}', "find_order"),
    Turn("system", '{"status": "sent"}'),
    Turn("agent", "It was sent."),
)


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "user", "content": "Where is order 4471?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "find_order", "arguments": '{"order": "4471"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": '{"status": "sent"}'},
            {"role": "assistant", "content": "It was sent."},
        ],
        [
            {"role": "user", "content": "Where is order 4471?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "find_order", "input": {"order": "4471"}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": '{"status": "sent"}'}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It was sent."}]},
        ],
        [
            {"Agent": "User", "Action": "utter", "Text": "Where is order 4471?"},
            {"Agent": "Wizard", "Action": "query", "APIName": "find_order", "Constraints": [{"order": '"4471"'}]},
            {"Agent": "KnowledgeBase", "Action": "return_item", "Item": {"status": "sent"}},
            {"Agent": "Wizard", "Action": "utter", "Text": "It was sent."},
        ],
    ],
    ids=["OpenAI", "Anthropic", "a log of queries"],
)
def test_calls_of_tools_are_read_from_every_form_of_log(messages: list[object]) -> None:
    assert read(json.dumps(messages)) == CALLS


def test_a_line_that_calls_a_tool_is_a_call() -> None:
    talk = (
        'Customer: Where is order 4471?\nTool: find_order(order="4471")\nTool: {"status": "sent"}\nAgent: It was sent.'
    )
    assert read(talk) == CALLS


def test_an_item_of_a_list_in_an_agents_turn_stays_what_the_agent_said() -> None:
    turns = read(
        "Customer: What do you have of me?\n"
        "Agent: This is what is stored:\n- **User ID:** ann_7\n- **Customer:** since 2019\n* Name: Ann\n"
        "Customer: Thanks, that is right."
    )
    assert [turn.speaker for turn in turns] == ["customer", "agent", "customer"]
    assert "User ID" in turns[1].text


def test_turns_that_are_all_items_of_a_list_are_turns() -> None:
    assert [turn.speaker for turn in read("- Customer: It is dark.\n- Agent: Please change the bulb.")] == [
        "customer",
        "agent",
    ]


@pytest.mark.parametrize(
    "transcript",
    [
        '{"messages": []}',
        '{"id": "c-5", "messages": []}',
        '[{"role": "user", "content": ""}]',
        '{"id": "c-5", "messages": [{"role": "user", "content": "", "ts": 5}, {"role": "agent", "content": null}]}',
        '[{"speaker": "customer", "text": "\u3164"}]',
        '{"role": "user", "content": ""}\n{"role": "assistant", "content": "?!"}',
        "Customer: \u3164\u200b\nAgent: \u00ad",
    ],
)
def test_turns_that_say_nothing_are_no_transcript(transcript: str) -> None:
    assert read(transcript) == ()


def test_json_that_has_no_turns_is_read_as_text() -> None:
    assert read('["It hums.", "Then it stops."]')


@pytest.mark.parametrize(
    "transcript",
    [
        "Customer: <p>The <b>printer</b> is dead:&nbsp;no lights.</p>\n"
        "Agent: <div>Is it <a href='x'>plugged in</a>?</div>\nCustomer: <br/>Now it works<script>alert(1)</script>",
        "<!DOCTYPE html><html><head><title>Chat</title><style>p{}</style></head><body><p><b>Customer:</b> The printer "
        "is dead: no lights.</p><p><b>Agent:</b> Is it plugged in?</p><div>Customer: Now it works</div></body></html>",
        json.dumps(as_json("role", "content", ("user", "assistant"))).replace("Now it works", "<p>Now it works</p>"),
    ],
)
def test_html_is_taken_off_messages_and_whole_conversations(transcript: str) -> None:
    assert [turn.speaker for turn in read(transcript)] == ["customer", "agent", "customer"]
    assert [" ".join(turn.text.split()) for turn in read(transcript)] == SAID


def test_tags_that_a_conversation_is_about_stay() -> None:
    turns = read(
        "Customer: How do I centre a <div> if a<b && c>d?\nAgent: Put it into <center>…</center>, Anna <a@b.example>."
    )
    assert [turn.text for turn in turns] == [
        "How do I centre a <div> if a<b && c>d?",
        "Put it into <center>…</center>, Anna <a@b.example>.",
    ]


def test_what_agents_alone_say_has_no_customer() -> None:
    assert {turn.speaker for turn in read("Agent: Restart the router.\nAgent: Check the cable.")} == {"agent"}
    assert read("The router is dead.\nAgent: Restart it.\nAgent: Check it.")[0].speaker == "customer"
