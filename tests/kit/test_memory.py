from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from refdesk.kit import memory
from refdesk.stores.sqlite.index.files import Content, map_content, write_content


def measure_resident(path: Path) -> int:
    """Return how many kB of a file this process has in its memory."""
    part = Path("/proc/self/smaps").read_text().partition(str(path))[2]
    found = re.search(r"^Rss:\s+(\d+) kB", part, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(not memory.ROLLUP.exists(), reason="the system does not say what is in memory")
def test_pages_of_mapped_files_are_given_back_and_still_there_when_they_are_read(tmp_path: Path) -> None:
    numbers = np.arange(1_000_000)
    write_content(tmp_path / "part", Content({"numbers": numbers}, {}))
    mapped = map_content(tmp_path / "part").arrays["numbers"]
    assert measure_resident(tmp_path / "part") < 1000
    assert (mapped == numbers).all()
    assert measure_resident(tmp_path / "part") > 7000
    memory.give_back()
    assert measure_resident(tmp_path / "part") < 1000
    assert (mapped == numbers).all()
    measured = memory.measure()
    assert measured is not None
    assert measured > 10_000_000
    resident = memory.measure_resident()
    assert resident is not None
    assert resident > measured / 2  # what is shared counts once for all in the one, once for each in the other


@pytest.mark.skipif(not memory.ROLLUP.exists(), reason="the system does not say what is in memory")
@pytest.mark.parametrize("is_cached", [True, False])
def test_whoever_reads_little_of_a_file_has_little_of_it_in_memory(tmp_path: Path, is_cached: bool) -> None:
    path = tmp_path / "part"
    write_content(path, Content({"numbers": np.arange(12_000_000)}, {}))
    if not is_cached:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    mapped = map_content(path).arrays["numbers"]
    assert [int(mapped[place]) for place in range(0, 12_000_000, 750_000)] == list(range(0, 12_000_000, 750_000))
    assert measure_resident(path) < 4_000  # of 93,750: at sixteen places and the header's
