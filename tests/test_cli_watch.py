from __future__ import annotations

import json
from pathlib import Path

from tests.test_cli import refdesk


def test_watches_are_made_followed_and_deleted_without_a_server(tmp_path: Path) -> None:
    assert refdesk(tmp_path, ["watches"]).stdout.startswith("You watch nothing")
    made = json.loads(
        refdesk(tmp_path, ["watches", "create", "search", "gate code", "--label", "gates", "--json"]).stdout
    )
    assert refdesk(tmp_path, ["watches", "create", "search", "gate code"]).stdout.startswith("You watch that already")
    refdesk(tmp_path, ["knowledge", "store", "--title", "Gate code of May", "--body", "It is 12."])
    lines = refdesk(tmp_path, ["watch", "--once", "--json"]).stdout.splitlines()
    [told] = [json.loads(line) for line in lines]
    assert (told["what"], told["title"], told["watch"]) == ("new", "Gate code of May", made["id"])
    shown = refdesk(tmp_path, ["watch", "--once", "--since", "2026-01-01"]).stdout
    assert "Gate code of May: new" in shown
    assert shown.rstrip().endswith("[gates]")
    assert f"{made['id']}  search: gate code" in refdesk(tmp_path, ["watches"]).stdout
    assert refdesk(tmp_path, ["watches", "delete", made["id"]]).exit_code == 0
    assert refdesk(tmp_path, ["watches", "delete", made["id"]]).exit_code == 2
