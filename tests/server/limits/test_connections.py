"""Which connection goes when there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from refdesk.errors import LimitExceededError
from refdesk.server.limits.connections import Connections, Holder


@dataclass(eq=False)
class Wire:
    """A connection that is nothing else."""

    address: str = "192.0.2.1"
    is_answering: bool = False
    holder: Holder | None = None
    drops: list[int] = field(default_factory=list[int])

    def drop(self) -> None:
        self.drops.append(1)


def claim(connections: Connections, wire: Wire, org: str, agent: str = "ann") -> None:
    def take() -> None:
        wire.holder = (org, agent)

    connections.hand_over(wire, take, (org, agent))


def add(connections: Connections, number: int, **facts: object) -> list[Wire]:
    wires = [Wire(**facts) for _ in range(number)]  # pyright: ignore[reportArgumentType]
    assert all(connections.add(wire) for wire in wires)
    return wires


def test_of_strangers_at_one_address_the_longest_silent_goes() -> None:
    connections = Connections(100, 3)
    first, second, third = add(connections, 3)
    connections.touch(first)
    [other] = add(connections, 1, address="192.0.2.2")
    add(connections, 1)
    assert [len(wire.drops) for wire in (first, second, third, other)] == [0, 1, 0, 0]
    assert len(connections) == 4


def test_who_has_shown_a_key_counts_for_no_address() -> None:
    connections = Connections(100, 1)
    for agent in range(9):
        [wire] = add(connections, 1)
        claim(connections, wire, "acme", f"agent-{agent}")
    assert len(connections) == 9


def test_a_newcomer_is_not_let_in_where_all_wait_for_an_answer() -> None:
    connections = Connections(100, 2)
    add(connections, 2, is_answering=True)
    assert not connections.add(Wire())
    assert connections.add(Wire("192.0.2.2"))


def test_an_exempt_address_holds_any_number() -> None:
    connections = Connections(100, 2, lambda address: address == "192.0.2.1")
    add(connections, 9)
    assert len(connections) == 9


def test_when_all_are_too_many_strangers_go_first_and_then_the_largest_orgs() -> None:
    connections = Connections(10, 100)
    acme = add(connections, 5)
    for number, wire in enumerate(acme):
        claim(connections, wire, "acme", f"agent-{number}")
    other = add(connections, 3)
    for number, wire in enumerate(other):
        claim(connections, wire, "other", f"agent-{number}")
    strangers = add(connections, 2)
    newcomers = add(connections, 3)
    assert [len(wire.drops) for wire in strangers] == [1, 1]
    assert [len(wire.drops) for wire in newcomers] == [1, 0, 0]
    for number, wire in enumerate(newcomers[1:]):
        claim(connections, wire, f"third-{number}")
    add(connections, 1)
    assert [len(wire.drops) for wire in (*acme, *other)] == [1, 0, 0, 0, 0, 0, 0, 0]


def test_an_agent_and_an_org_hold_their_share_and_lose_only_their_own() -> None:
    connections = Connections(8, 8)
    [other] = add(connections, 1)
    claim(connections, other, "other")
    mine = add(connections, 3)
    for wire in mine:
        claim(connections, wire, "acme")
    assert [len(wire.drops) for wire in mine] == [1, 0, 0]
    more = add(connections, 3)
    for number, wire in enumerate(more):
        claim(connections, wire, "acme", f"agent-{number}")
    assert [len(wire.drops) for wire in (other, *mine, *more)] == [0, 1, 1, 0, 0, 0, 0]


def test_who_waits_for_an_answer_on_all_of_its_share_is_told_to_close_some() -> None:
    connections = Connections(8, 8)
    busy = add(connections, 3, is_answering=True)
    for wire in busy[:2]:
        claim(connections, wire, "acme")
    with pytest.raises(LimitExceededError, match="close some"):
        claim(connections, busy[2], "acme")
    assert busy[2].holder is None


def test_what_is_forgotten_counts_no_more() -> None:
    connections = Connections(8, 1)
    [wire] = add(connections, 1)
    connections.remove(wire)
    connections.remove(wire)
    connections.touch(wire)
    [again] = add(connections, 1)
    assert again.drops == []
    assert len(connections) == 1
