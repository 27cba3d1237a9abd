"""Every text of an error that a call can end with, read from the source, says what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.error_texts import REPOSITORY, read_texts, says_what_to_do

OF_CALLERS = (
    *("core/search", "core/writing", "core/fairness.py", "core/keeping/acts.py", "core/keeping/encoding.py"),
    *("core/keeping/erasing.py", "core/keeping/rows.py", "embedders/hosted", "embedders/local/installed/encoder.py"),
    *("kit/http.py", "language_models", "server/calls.py", "server/ceiling.py", "server/limits", "server/rest.py"),
    *("server/strict_json.py", "server/wording.py", "stores/memory", "stores/postgres/failures.py"),
    *("stores/sqlite/failures.py", "toolsets"),
)
"""Where the errors are made that a call can end with; of the others, who runs the server reads."""


def test_every_text_in_the_source_says_what_to_do() -> None:
    texts = [each for each in read_texts(REPOSITORY / "src" / "refdesk") if each.place.startswith(OF_CALLERS)]
    assert len(texts) > 120, "the reader of the source reads it"
    assert [each for each in texts if not says_what_to_do(each.text)] == []


@pytest.mark.parametrize(
    "bare", ["There is no entry 7.", "The file is empty.", "Internal error.", "It was withdrawn.", "Not found"]
)
def test_a_bare_text_is_found_out(bare: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f'BARE = "{bare}"\nraise errors.NotFoundError(BARE)\n', encoding="utf-8")
    [found] = read_texts(tmp_path)
    assert (found.place, found.text) == ("module.py:2", bare)
    assert not says_what_to_do(found.text)
