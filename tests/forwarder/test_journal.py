"""What the forwarder remembers of a session, against desks that end at any point of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.forwarder.hello import pack
from refdesk.forwarder.journal import MOST_ATTEMPTS, MOST_REPEAT_SECONDS, Calls, Journal, Request, read_end

UNSURE = {"store": {"content": [{"type": "text", "text": "perhaps"}], "isError": True}}
CALLS = Calls(frozenset({"search"}), {"store": "clientToken"}, UNSURE)
OPEN: dict[str, object] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def request(id: object, method: str = "tools/call", **params: object) -> bytes:
    return line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def answer(id: object, **result: object) -> bytes:
    return line({"jsonrpc": "2.0", "id": id, "result": result})


def store(id: object, **arguments: object) -> bytes:
    return request(id, name="store", arguments=arguments)


def search(id: object) -> bytes:
    return request(id, name="search", arguments={})


class Session:
    """A client whose lines all reach a desk at once."""

    def __init__(self, *lines: bytes) -> None:
        self.journal = Journal()
        self.journal.calls = CALLS
        self.send(*lines)

    def send(self, *lines: bytes) -> None:
        for each in lines:
            parcel = self.journal.note_client(each)
            if parcel is not None:
                self.journal.note_sent(parcel)

    def resume(self, read: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Let the desk end; return what the client and what the next desk gets."""
        told = self.journal.lose(read)
        parcels = [*self.journal.replay_opening(), *self.journal.replay_rest()]
        for parcel in parcels:
            self.journal.note_sent(parcel)
        return [json.loads(each) for each in told], [json.loads(parcel.line) for parcel in parcels]


def test_what_only_reads_or_has_a_key_is_repeated_and_the_rest_is_answered() -> None:
    session = Session(search(1), store(2), store(3, clientToken="a"), request(4, "tools/list"), request("4", "ping"))
    told, repeated = session.resume()
    assert [(each["id"], each["result"]) for each in told] == [(2, UNSURE["store"])]
    assert [each["id"] for each in repeated] == [1, 3, 4, "4"]


def test_a_repeated_call_says_when_it_was_first_sent() -> None:
    session = Session(request(1, name="store", arguments={"clientToken": "a"}, _meta={"progressToken": 7}))
    began = session.resume()[1][0]["params"]["_meta"]["refdesk/askedAt"]
    [repeated] = session.resume()[1]
    assert repeated["params"]["_meta"] == {"progressToken": 7, "refdesk/askedAt": began}
    assert repeated["params"]["arguments"] == {"clientToken": "a"}


def test_a_call_with_a_key_is_not_repeated_once_no_desk_need_know_it_any_more() -> None:
    session = Session()
    parcel = session.journal.note_client(store(1, clientToken="a"))
    assert parcel is not None
    session.journal.note_sent(parcel)
    parcel.requests[0].asked_at -= MOST_REPEAT_SECONDS
    told, repeated = session.resume()
    assert ([each["id"] for each in told], repeated) == ([1], [])


def test_what_was_answered_is_neither_repeated_nor_answered_again() -> None:
    session = Session(search(1), search("1"), search(2))
    assert session.journal.note_desk(b'{"jsonrpc":"2.0","id":1,"result":{}}\n') is not None
    assert session.journal.note_desk(line({"id": 2, "jsonrpc": "2.0", "error": {}})) is not None
    assert [each["id"] for each in session.resume()[1]] == ["1"]


def test_what_a_desk_that_says_how_far_it_read_never_saw_is_repeated_though_it_writes() -> None:
    session = Session(store(1), store(2))
    told, repeated = session.resume(read=1)
    assert [each["id"] for each in told] == [1]
    assert [each["id"] for each in repeated] == [2]
    assert [each["id"] for each in session.resume()[0]] == [2]


def test_what_was_never_sent_is_sent_though_it_writes() -> None:
    session = Session(search(1))
    session.journal.lose(None)
    assert session.journal.note_client(store(2)) is not None
    told, repeated = session.resume()
    assert (told, [each["id"] for each in repeated]) == ([], [1, 2])


def test_a_request_that_ends_every_desk_is_answered_in_the_end() -> None:
    session = Session(search(1))
    rounds = [session.resume() for _ in range(MOST_ATTEMPTS)]
    assert [len(repeated) for _, repeated in rounds] == [1] * (MOST_ATTEMPTS - 1) + [0]
    assert [each["id"] for each in rounds[-1][0]] == [1]


def test_the_next_desk_gets_the_handshake_and_the_subscriptions_and_nobody_gets_its_answers() -> None:
    session = Session(line(OPEN))
    session.journal.note_desk(answer(0))
    session.send(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    for id, uri in ((1, "a"), (2, "b")):
        session.send(request(id, "resources/subscribe", uri=uri))
        session.journal.note_desk(answer(id))
    session.send(request(3, "resources/unsubscribe", uri="a"))
    session.journal.note_desk(answer(3))
    told, repeated = session.resume()
    assert [each["method"] for each in repeated] == ["initialize", "notifications/initialized", "resources/subscribe"]
    assert [each["params"]["uri"] for each in told] == ["b"], "it may have changed meanwhile"
    for each in repeated:
        if "id" in each:
            assert each["id"] not in (0, 1, 2, 3)
            assert session.journal.note_desk(answer(each["id"])) is None


def test_a_handshake_without_an_answer_is_repeated_as_it_was() -> None:
    _, repeated = Session(line(OPEN)).resume()
    assert repeated == [OPEN]


def test_questions_of_two_desks_under_one_id_are_two_to_the_client() -> None:
    session = Session(search(1))
    asked = line({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {}})
    assert session.journal.note_desk(asked) == asked
    told, _ = session.resume()
    assert [each["params"] for each in told] == [{"requestId": 0}]
    shown = json.loads(session.journal.note_desk(asked) or b"")["id"]
    assert shown != 0
    assert session.journal.note_client(answer(0)) is None, "an answer to a question of the desk that ended"
    parcel = session.journal.note_client(answer(shown, action="accept"))
    assert parcel is not None
    assert json.loads(parcel.line) == json.loads(answer(0, action="accept"))


def test_a_cancelled_request_is_forgotten() -> None:
    session = Session(search(1))
    session.send(line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
    assert session.resume() == ([], [])


def test_lines_of_the_desks_own_say_how_far_it_read() -> None:
    assert read_end(pack({"read": 3})) == 3
    assert read_end(answer(1)) is None


@pytest.mark.parametrize(
    "odd", [b"{\n", b"[]\n", b"3\n", b'{"id": {}, "method": "x"}\n', b'{"id": 1, "method": 2}\n', b"[" * 99999 + b"\n"]
)
def test_what_is_no_request_is_carried_and_not_remembered(odd: bytes) -> None:
    session = Session(odd)
    assert session.resume() == ([], [])


class Game:
    """A session and the desks that it meets, one after the other; each carries out every line that it reads."""

    def __init__(self, calls: Calls) -> None:
        self.session = Session()
        self.session.journal.calls = calls
        self.asked: list[int] = []
        self.answered: list[int] = []
        self.written: list[int] = []
        self._waiting: list[int] = []

    def ask(self, sent: bytes) -> None:
        self.asked.append(json.loads(sent)["id"])
        self.session.send(sent)
        self._carry_out(json.loads(sent))

    def answer(self) -> None:
        if self._waiting:
            shown = self.session.journal.note_desk(answer(self._waiting.pop(0)))
            self.answered += [json.loads(shown)["id"]] if shown else []

    def answer_all(self) -> None:
        while self._waiting:
            self.answer()

    def end(self, read: int | None) -> None:
        self._waiting.clear()
        told, repeated = self.session.resume(read)
        self.answered += [each["id"] for each in told]
        for each in repeated:
            self._carry_out(each)

    def _carry_out(self, message: Mapping[str, Any]) -> None:
        params = message["params"]
        if params["name"] == "store" and "clientToken" not in params["arguments"]:
            self.written.append(message["id"])
        self._waiting.append(message["id"])


def play(steps: list[str], calls: Calls) -> Game:
    game = Game(calls)
    for number, step in enumerate(steps):
        match step:
            case "search":
                game.ask(search(number))
            case "store":
                game.ask(store(number))
            case "keyed":
                game.ask(store(number, clientToken="t"))
            case "answer":
                game.answer()
            case "kill":
                game.end(None)
            case _:
                game.answer_all()
                game.end(1_000_000)
    game.answer_all()
    return game


@given(st.lists(st.sampled_from(["search", "store", "keyed", "answer", "kill", "leave"]), max_size=30))
def test_whenever_desks_end_every_request_is_answered_once_and_no_write_is_repeated(steps: list[str]) -> None:
    game = play(steps, CALLS)
    assert sorted(game.answered) == game.asked
    assert len(game.written) == len(set(game.written))


def test_the_game_catches_a_forwarder_that_repeats_writes() -> None:
    game = play(["store", "kill"], Calls(frozenset({"store"})))
    assert len(game.written) > len(set(game.written))


@pytest.mark.parametrize("params", ["text", [1], 5, None, True, {"requestId": {"a": 1}}])
@pytest.mark.parametrize("method", ["initialize", "tools/call", "notifications/cancelled", "resources/subscribe"])
@pytest.mark.parametrize("is_batch", [False, True])
def test_parameters_that_are_none_end_nothing(params: object, method: str, is_batch: bool) -> None:
    journal = Journal()
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    journal.note_client(line([message] if is_batch else message))
    journal.note_desk(answer(1))


@pytest.mark.parametrize("name", [["a"], {"a": 1}, None, 5, True])
def test_a_tool_whose_name_is_none_is_no_obstacle_to_going_on_with_another_desk(name: object) -> None:
    params: dict[str, object] = {"name": name, "arguments": "x", "_meta": 5}
    pending = Request(b"", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert not CALLS.is_repeatable(pending)
    assert json.loads(CALLS.say_unsure(pending))["id"] == 1
