"""Takes the pictures of the console that the docs show: python -m tests.acceptance.console_pictures [FOLDER]."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import npm
from tests.acceptance.browser import find_browser
from tests.acceptance.console_world import World, open_world
from tests.conftest import REPOSITORY

SOURCE = Path(__file__).parent / "console_node"
PICTURES = REPOSITORY / "docs" / "pictures"
TOOLS = REPOSITORY / ".pytest_cache" / "d" / "tools" / "console-node"
"""Where the tests keep the browser's driver."""

WIDE, HIGH = 1100, 760


def list_pages(world: World) -> dict[str, str]:
    """Return the pages that are pictured, by the name of the picture."""
    return {
        "console-entry": f"/console/read/get_knowledge?id={world.note}",
    }


def take(folder: Path) -> None:
    """Write the pictures into a folder."""
    npm.install(SOURCE, TOOLS, "the browser's driver")
    npm.put(SOURCE / "visit.mjs", TOOLS)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, open_world(Path(home)) as world:
        pages = list_pages(world)
        plan = {
            "pages": [world.url + path for path in pages.values()],
            "names": list(pages),
            "looks": [["light", WIDE]],
            "height": HIGH,
            "key": world.key,
            "shots": str(folder.resolve()),
        }
        node = ["node", "visit.mjs", find_browser()]
        subprocess.run(node, cwd=TOOLS, input=json.dumps(plan), text=True, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
