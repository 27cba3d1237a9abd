"""Damaged files are never served as if they were whole, and each error says what to do, which works.

The long form (`make soak`) damages 200 files.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import anyio
import pytest

from refdesk.errors import StoreError
from refdesk.stores.sqlite import open_store
from tests.reliability import damage
from tests.reliability.counting import count
from tests.reliability.damage import DAMAGES, DAMAGES_OF_LOG, NAME, Damage, Originals
from tests.stores.samples import make_document, put

pytestmark = pytest.mark.timeout(3600)

IS_LONG = os.environ.get("REFDESK_SOAK") == "1"
FILES = 200 if IS_LONG else 16


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Originals:
    return anyio.run(damage.make_originals, tmp_path_factory.mktemp("originals"))


async def try_damage(originals: Originals, folder: Path, number: int, harm: Damage) -> tuple[str, list[str]]:
    """Return what became of a damaged file (`refused`, `harmless`), and what was wrong with that."""
    source = originals.cut_off if harm in DAMAGES_OF_LOG or number % 3 == 0 else originals.closed
    damage.copy_all(source, folder)
    harm(folder, Random(number), originals.other)
    served = await damage.serve(folder)
    faults = damage.find_faults(served, originals.truths[source])
    if not served.errors:
        return "harmless", faults
    await damage.mend(folder, originals.backup)
    mended, wanted = await damage.serve(folder), originals.truths[originals.closed]
    # The log goes on: it may hold more than the backup's.
    told = {
        name: "differs" for name, answer in mended.answers.items() if answer != wanted.answers[name] and name != "log"
    }
    faults += [f"restored, and still {name}: {what}" for name, what in {**told, **mended.errors}.items()]
    return "refused", faults


@pytest.mark.parametrize("files", [pytest.param(FILES, marks=pytest.mark.soak if IS_LONG else ())])
def test_no_damaged_file_is_served_as_if_it_were_whole(originals: Originals, tmp_path: Path, files: int) -> None:
    kinds, outcomes, faults = (*DAMAGES, *DAMAGES_OF_LOG), Counter[str](), list[str]()
    for number in range(files):
        harm = kinds[number % len(kinds)]
        outcome, found = anyio.run(try_damage, originals, tmp_path / "damaged", number, harm)
        outcomes[outcome] += 1
        faults += [f"{number} ({harm.__name__}): {each}" for each in found]
    sys.stdout.write(f"{files} damaged files: {dict(outcomes)}\n")
    assert faults == []
    assert outcomes["refused"] > files / 2
    count("damaged files", files)


@pytest.mark.parametrize("harm", [damage.forge, damage.withhold])
def test_the_harness_catches_what_no_check_can(originals: Originals, tmp_path: Path, harm: Damage) -> None:
    _, faults = anyio.run(try_damage, originals, tmp_path / "damaged", 1, harm)
    assert any("served otherwise" in fault for fault in faults)


def rename_over(path: Path, other: Path) -> None:
    (other / NAME).replace(path)


def unlink(path: Path, other: Path) -> None:
    path.unlink()


def unlink_log(path: Path, other: Path) -> None:
    Path(f"{path}-wal").unlink()


@pytest.mark.parametrize("meddle", [rename_over, unlink, unlink_log])
async def test_a_file_that_is_replaced_while_it_serves_is_noticed_and_restored(
    originals: Originals, tmp_path: Path, meddle: Callable[[Path, Path], None]
) -> None:
    folder, other = tmp_path / "serving", tmp_path / "other"
    damage.copy_all(originals.closed, folder)
    damage.copy_all(originals.closed, other)
    async with open_store(folder / NAME) as store:
        await put(store, make_document("first", "kept"))
        meddle(folder / NAME, other)
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            await put(store, make_document("second", "not acknowledged"))
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            await store.check()
    await damage.mend(folder, originals.backup)
    mended = await damage.serve(folder)
    assert mended.errors == {}
    assert mended.answers["digests"] == originals.truths[originals.closed].answers["digests"]
