"""`refdesk migrate` with skills in a store of their own: each toolset comes to where the settings say it lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from refdesk.core.keeping.moves import Move, find_moves
from refdesk.stores.sqlite import open_store
from tests.test_cli import refdesk

TALK = "Customer: My {} feeds two labels.\nAgent: Clean the gap sensor with a cloth.\nCustomer: Thanks, solved!\n"
PRINTERS = ("label printer", "receipt printer", "photo printer")
Address = Callable[[str], str]


def in_folder(folder: Path) -> Address:
    return lambda name: f"sqlite:///{folder / f'{name}.sqlite3'}"


class Desk:
    """The command, with stores of one's choice."""

    def __init__(self, home: Path, store: str, skills: str | None = None) -> None:
        self._home = home
        self._variables = {"REFDESK_STORE": store, **({"REFDESK_SKILLS_STORE": skills} if skills else {})}

    def ask(self, *arguments: str) -> dict[str, Any]:
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, *arguments: str) -> Any:  # noqa: ANN401 - click's own
        return refdesk(self._home, arguments, **self._variables)

    def fill(self) -> None:
        self.ask("knowledge", "store", "--title", "Refund limit", "--body", "500 EUR", "--client-token", TOKEN)
        self.ask("keys", "create", "--agent", "bot", "--scope", "knowledge:read")
        for printer in PRINTERS:
            talk = self._home / "talk.txt"
            talk.write_text(TALK.format(printer))
            assert self.run("skills", "learn", str(talk)).exit_code == 0

    def sees(self) -> tuple[int, int, int]:
        """Return how many notes, skills and keys it knows."""
        notes = self.ask("search", "--toolset", "knowledge", "refund")["results"]
        skills = self.ask("search", "--toolset", "skills", "feeds labels")["matches"]
        return len(notes), len(skills), len(self.ask("keys", "list")["keys"])


TOKEN = "0d3b2f6e-8a4e-4c0e-9d0f-5b1f3f0c9a11"
ALL = (1, 3, 1)


def hold_the_readmes_recipe(home: Path, at: Address) -> None:
    """From a file with everything to a store for all but skills and one for those."""
    old, main, graph = in_folder(home)("old"), at("main"), at("graph")
    Desk(home, old).fill()
    new = Desk(home, main, graph)
    moved = new.ask("migrate", "--from", old, "--to", main)
    assert (moved["documents"], moved["apart"]["skills"]["documents"]) == (1, 3)
    assert new.ask("migrate", "--from", old, "--to", main) == moved, "once more finds nothing to do"
    assert new.sees() == ALL
    assert new.run("audit", "verify").exit_code == 0
    # What was learned is known there: the same conversation teaches nothing new.
    talk = home / "talk.txt"
    talk.write_text(TALK.format(PRINTERS[0]))
    assert new.run("skills", "learn", str(talk)).exit_code == 0
    assert new.sees() == ALL
    # And back into one.
    together = in_folder(home)("together")
    refused = Desk(home, together).run("migrate", "--from", graph, "--to", main)
    assert (refused.exit_code, "not empty" in refused.output or "another source" in refused.output) == (2, True)


@pytest.fixture
def at(tmp_path: Path) -> Address:
    return in_folder(tmp_path)


def test_the_readmes_recipe_moves_each_toolset_to_its_store(tmp_path: Path, at: Address) -> None:
    hold_the_readmes_recipe(tmp_path, at)


def test_without_skills_apart_everything_goes_to_one(tmp_path: Path, at: Address) -> None:
    Desk(tmp_path, at("old")).fill()
    for name, skills in (("one", None), ("same", at("same"))):
        settings = Desk(tmp_path, at(name), skills)
        moved = settings.ask("migrate", "--from", at("old"), "--to", at(name))
        assert (moved["documents"], "apart" in moved) == (4, False)
        assert settings.sees() == ALL


def test_stores_that_are_apart_move_one_by_one(tmp_path: Path, at: Address) -> None:
    Desk(tmp_path, at("old"), at("old-skills")).fill()
    # While the settings still name the old ones.
    old = Desk(tmp_path, at("old"), at("old-skills"))
    assert old.ask("migrate", "--from", at("old"), "--to", at("new"))["documents"] == 1
    assert old.ask("migrate", "--from", at("old-skills"), "--to", at("new-skills"))["documents"] == 3
    assert Desk(tmp_path, at("new"), at("new-skills")).sees() == ALL
    assert Desk(tmp_path, at("new"), at("new-skills")).run("audit", "verify").exit_code == 0
    # And once they name the new ones.
    new = Desk(tmp_path, at("newer"), at("newer-skills"))
    assert new.ask("migrate", "--from", at("new"), "--to", at("newer"))["documents"] == 1
    assert (
        new.ask("migrate", "--from", at("new-skills"), "--to", at("newer-skills"))["apart"]["skills"]["documents"] == 3
    )
    assert new.sees() == ALL


def test_skills_alone_move_out_of_a_store_that_stays(tmp_path: Path, at: Address) -> None:
    Desk(tmp_path, at("main")).fill()
    settled = Desk(tmp_path, at("main"), at("skills"))
    assert settled.sees() == (1, 0, 1)
    health = settled.run("doctor")
    assert "3 of its documents are in another store" in health.output
    moved = settled.ask("migrate", "--from", at("main"), "--to", at("skills"))
    assert (moved["apart"]["skills"]["documents"], moved.get("documents")) == (3, None)
    assert settled.sees() == ALL
    assert "in another store" not in settled.run("doctor").output


def test_a_store_for_skills_that_holds_others_is_left_alone(tmp_path: Path, at: Address) -> None:
    Desk(tmp_path, at("old")).fill()
    Desk(tmp_path, at("elsewhere"), at("skills")).fill()
    refused = Desk(tmp_path, at("new"), at("skills")).run("migrate", "--from", at("old"), "--to", at("new"))
    assert (refused.exit_code, "REFDESK_SKILLS_STORE: The target is not empty" in refused.output) == (2, True)
    nowhere = Desk(tmp_path, at("new"), "oracle://x").run("migrate", "--from", at("old"), "--to", at("new"))
    assert (nowhere.exit_code, "REFDESK_SKILLS_STORE" in nowhere.output) == (1, True)


def test_an_org_whose_skills_go_elsewhere_moves_whole_or_not_at_all(tmp_path: Path, at: Address) -> None:
    source, taken = Desk(tmp_path, at("old")), Desk(tmp_path, at("taken"))
    source.fill()
    taken.fill()
    whole = ("migrate", "--from", at("old"), "--to", at("new"), "--org", "local", "--remove")
    refused = Desk(tmp_path, at("new"), at("taken")).run(*whole)
    assert (refused.exit_code, "REFDESK_SKILLS_STORE" in refused.output) == (2, True), refused.output
    assert (source.sees(), Desk(tmp_path, at("new")).sees()) == (ALL, (0, 0, 0))

    copy = tmp_path / "backup"
    source.ask("backup", str(copy))
    settled = Desk(tmp_path, at("new"), at("skills"))
    assert settled.ask(*whole)["apart"]["skills"]["documents"] == 3
    assert (source.sees(), settled.sees()) == ((0, 0, 0), ALL)
    assert source.run("restore", str(copy)).exit_code == 0
    assert source.sees() == (0, 0, 0), "an older backup brings nothing of it back, not even its keys"


def test_an_org_without_skills_moves_where_others_have_some(tmp_path: Path, at: Address) -> None:
    source, settled = Desk(tmp_path, at("old")), Desk(tmp_path, at("new"), at("skills"))
    source.fill()
    note = ("--title", "Refund limit", "--body", "500 EUR")
    source.ask("knowledge", "store", *note, "--org", "acme")
    moved = settled.ask("migrate", "--from", at("old"), "--to", at("new"), "--org", "acme", "--remove")
    assert (moved["documents"], "apart" in moved) == (1, False)
    assert source.sees() == ALL
    nobody = settled.run("migrate", "--from", at("old"), "--to", at("new"), "--org", "nobody")
    assert (nobody.exit_code, "nothing of the org nobody" in nobody.output) == (2, True), nobody.output


@pytest.mark.parametrize("how", [(), ("--serving",)])
def test_a_target_that_has_a_key_is_refused_before_anything_is_copied(
    tmp_path: Path, at: Address, how: tuple[str, ...]
) -> None:
    desk, other = Desk(tmp_path, at("old")), Desk(tmp_path, at("other"))
    desk.fill()
    other.ask("keys", "create", "--agent", "z", "--scope", "knowledge:read")
    refused = desk.run("migrate", "--from", at("old"), "--to", at("other"), *how)
    assert (refused.exit_code, "it has keys" in refused.output) == (2, True), refused.output
    assert other.sees() == (0, 0, 1)
    assert desk.sees() == ALL


def test_a_store_moves_while_it_serves_and_whoever_names_the_old_one_is_led_on(tmp_path: Path, at: Address) -> None:
    desk = Desk(tmp_path, at("old"))
    desk.fill()
    moved = desk.ask("migrate", "--from", at("old"), "--to", at("new"), "--serving")
    assert (moved["documents"], 0 <= moved["standstillSeconds"] < 2) == (4, True)
    assert (desk.sees(), Desk(tmp_path, at("new")).sees()) == (ALL, ALL)
    desk.ask("knowledge", "store", "--title", "Later", "--body", "Refund later.")
    assert (desk.sees(), Desk(tmp_path, at("new")).sees()) == ((2, 3, 1), (2, 3, 1))
    assert desk.run("audit", "verify").exit_code == 0
    assert desk.ask("migrate", "--from", at("old"), "--to", at("new"), "--serving")["documents"] == 5
    # There is one truth only.
    for arguments in (("--to", at("third")), ("--to", at("third"), "--serving"), ("--to", at("new"), "--abort")):
        refused = desk.run("migrate", "--from", at("old"), *arguments)
        assert (refused.exit_code, "moved" in refused.output or "switched" in refused.output) == (2, True), arguments


@pytest.mark.parametrize("how", [(), ("--serving",)])
def test_erasing_says_that_the_store_that_everything_was_moved_from_may_hold_it_still(
    tmp_path: Path, at: Address, how: tuple[str, ...]
) -> None:
    desk, new = Desk(tmp_path, at("old")), Desk(tmp_path, at("new"))
    desk.fill()
    desk.ask("migrate", "--from", at("old"), "--to", at("new"), *how)
    asked = ("erase", "--org", "local", "--yes")
    if not how:
        assert "moved" not in desk.run(*asked).output
    told = new.run(*asked)
    assert (told.exit_code, "It was moved here from another store" in told.output) == (0, True), told.output


def test_a_move_that_was_begun_can_be_given_up_and_begun_again(tmp_path: Path, at: Address) -> None:
    desk = Desk(tmp_path, at("old"))
    desk.fill()

    async def begin() -> None:
        async with open_store(tmp_path / "old.sqlite3") as store:
            moves = find_moves(store)
            assert moves is not None
            await moves.begin(Move(at("new")))

    anyio.run(begin)
    elsewhere = desk.run("migrate", "--from", at("old"), "--to", at("other"), "--serving")
    assert (elsewhere.exit_code, "being moved there" in elsewhere.output) == (2, True)
    assert desk.ask("migrate", "--from", at("old"), "--to", at("new"), "--abort") == {"aborted": True}
    nothing = desk.run("migrate", "--from", at("old"), "--to", at("new"), "--abort")
    assert (nothing.exit_code, "is not being moved" in nothing.output) == (2, True)
    desk.ask("knowledge", "store", "--title", "Later", "--body", "Refund later.")
    assert desk.ask("migrate", "--from", at("old"), "--to", at("other"), "--serving")["documents"] == 5
    assert desk.sees() == (2, 3, 1)


def test_what_cannot_move_while_it_serves_is_refused_and_stays_as_it_is(tmp_path: Path, at: Address) -> None:
    desk = Desk(tmp_path, at("old"), at("skills"))
    Desk(tmp_path, at("old")).fill()
    Desk(tmp_path, at("full")).fill()
    for arguments, said in (
        (("--to", at("new"), "--serving"), "store of their own"),
        (("--to", at("new"), "--serving", "--org", "acme"), "no --org"),
        (("--to", at("new"), "--serving", "--abort"), "one of them"),
    ):
        refused = desk.run("migrate", "--from", at("old"), *arguments)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output
    full = Desk(tmp_path, at("old")).run("migrate", "--from", at("old"), "--to", at("full"), "--serving")
    assert (full.exit_code, "not empty" in full.output) == (2, True)
    nothing = Desk(tmp_path, at("old")).run("migrate", "--from", at("old"), "--to", at("full"), "--abort")
    assert "is not being moved" in nothing.output
    assert Desk(tmp_path, at("old")).sees() == ALL
