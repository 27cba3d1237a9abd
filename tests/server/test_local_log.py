"""The log of a desk that clients started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WRITES = """
import os, sys
from refdesk.server.local.log_file import open_log
for number in range(4):
    open_log(sys.argv[1], most_bytes=20)
    os.write(2, b"entry %d of the log\\n" % number)
    print("stray", flush=True)
"""


def test_a_full_log_gives_way_to_a_new_one_and_only_one_is_kept_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "desk.log"
    subprocess.run([sys.executable, "-c", WRITES, str(log)], check=True)
    assert sorted(os.listdir(tmp_path)) == ["desk.log", "desk.log.old"]
    assert log.read_text() == "entry 3 of the log\nstray\n"
    assert "entry 2" in (tmp_path / "desk.log.old").read_text()
    assert log.stat().st_mode & 0o777 == 0o600
