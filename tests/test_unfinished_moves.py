"""A move that was begun and is not through is named by doctor and `/health`, with how far it is and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from refdesk.app import open_desk
from refdesk.core.clock import FixedClock
from refdesk.core.keeping import moving
from refdesk.core.keeping.migrating import EVERYTHING, Part, Position, migrate
from refdesk.core.keeping.moves import Move, MovePhase, find_moves
from refdesk.core.keeping.moving import Mover, Phase
from refdesk.core.keeping.unfinished import find_unfinished
from refdesk.factories.toolsets import load_toolsets
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.stores.samples import NOW, make_document, put
from tests.test_cli import refdesk

TARGET = "postgresql://refdesk:secret@db:5432/refdesk"


async def look(home: Path, url: str) -> tuple[str, str]:
    """Return the status of a desk and its problems, as `/health` tells them."""
    settings = make_settings(home, store=url, embedder="hashing")
    async with open_desk(settings, load_toolsets(settings=settings), in_background=False) as desk:
        async with open_http(desk, None) as client:
            told = (await client.get("/health")).json()
        return told["status"], "\n".join(told["problems"])


def ask_doctor(home: Path, url: str) -> list[dict[str, str]]:
    told = json.loads(refdesk(home, ("doctor", "--json"), REFDESK_STORE=url).stdout.splitlines()[-1])
    return [check for check in told["checks"] if check["name"] == "store move"]


@pytest.mark.parametrize(
    ("phase", "said"), [("copying", "is copied"), ("comparing", "compared"), ("catching up", "caught up")]
)
def test_a_move_of_a_store_that_serves(tmp_path: Path, phase: MovePhase, said: str) -> None:
    file = tmp_path / "store.sqlite3"
    url = f"sqlite:///{file}"

    async def begin() -> None:
        async with open_store(file) as store:
            moves = find_moves(store)
            assert moves is not None
            await moves.begin(Move(TARGET, phase=phase))

    async def cancel() -> None:
        async with open_store(file) as store:
            await moving.cancel(store)

    anyio.run(begin)
    [check] = ask_doctor(tmp_path, url)
    status, problems = anyio.run(look, tmp_path, url)
    assert (check["status"], status) == ("warn", "degraded")
    for text in (check["found"] + check["advice"], problems):
        assert "postgresql://db:5432/refdesk" in text
        assert said in text
        assert "--serving" in text
        assert "--abort" in text
        assert "secret" not in text
    anyio.run(cancel)
    assert ask_doctor(tmp_path, url) == []
    assert "moved" not in anyio.run(look, tmp_path, url)[1]


@pytest.mark.parametrize("part", [EVERYTHING, Part(org="acme")])
def test_a_move_into_a_store_until_it_is_through(tmp_path: Path, part: Part) -> None:
    file = tmp_path / "store.sqlite3"
    url = f"sqlite:///{file}"

    async def go_on(source: Store) -> None:
        async with open_store(file, clock=FixedClock(NOW)) as target:
            await migrate(source, target, "old", part=part)

    async def stop_half_way() -> Store:
        source = MemoryStore(FixedClock(NOW))
        await put(source, make_document("a"))
        name = "old" + (f"/{part.name}" if part.name else "")
        async with open_store(file, clock=FixedClock(NOW)) as target, target.transaction() as transaction:
            await transaction.put_documents([make_document("a")])
            await transaction.put_metadata([Position(name, part.position_key, "links").to_record()])
        return source

    source = anyio.run(stop_half_way)
    [check] = ask_doctor(tmp_path, url)
    status, problems = anyio.run(look, tmp_path, url)
    assert (check["status"], status) == ("warn", "degraded")
    for text in (check["found"] + check["advice"], problems):
        assert "its links are copied" in text
        assert "the same refdesk migrate" in text
        assert ("of the org acme" in text) is (part.org is not None)
    anyio.run(go_on, source)
    assert ask_doctor(tmp_path, url) == []
    assert "not through" not in anyio.run(look, tmp_path, url)[1]


@pytest.mark.parametrize(("at", "said"), [("comparing", "is copied"), ("switching", "and compared.")])
async def test_whoever_moves_a_store_says_in_it_how_far_it_is(tmp_path: Path, at: Phase, said: str) -> None:
    def stop(phase: Phase) -> None:
        if phase == at:
            raise ZeroDivisionError

    async with open_store(tmp_path / "old.sqlite3") as old, open_store(tmp_path / "new.sqlite3") as new:
        await put(old, make_document("a"))
        with pytest.raises(ZeroDivisionError):
            await Mover(old, new, "old", TARGET, begin=stop).run()
        [move] = await find_unfinished(old)
        assert said in move.found
