from __future__ import annotations

import json
from pathlib import Path

import anyio

from refdesk.stores.sqlite import open_store
from refdesk.toolsets.azure_updates.records import to_document
from tests.test_cli import refdesk
from tests.toolsets.impact.test_operations import NOTE, RECORD


async def fill(path: Path) -> None:
    async with open_store(path) as store, store.transaction() as transaction:
        await transaction.put_documents([to_document(RECORD)])


def test_impacts_are_listed_and_judged_without_a_server(tmp_path: Path) -> None:
    refdesk(tmp_path, ["knowledge", "store", "--title", NOTE["title"], "--body", NOTE["body"]])
    [path] = tmp_path.rglob("*.sqlite3")
    anyio.run(fill, path)
    shown = refdesk(tmp_path, ["impact"]).stdout
    assert "2027-05-31  Crawlers" in shown
    assert "announced: On May 31, 2027 we retire" in shown
    assert "written:   Owner is Dana. The crawlers run on twelve Standard_D4s_v3." in shown
    [impact] = json.loads(refdesk(tmp_path, ["impact", "--json"]).stdout)["impacts"]
    done = refdesk(tmp_path, ["impact", "judge", "dismiss", "499", impact["id"], "--reason", "A lab."])
    assert done.stdout.strip().endswith("is dismissed.")
    assert refdesk(tmp_path, ["impact"]).stdout.startswith("Nothing relies")
    assert refdesk(tmp_path, ["impact", "judge", "confirm", "498", impact["id"]]).exit_code == 2
