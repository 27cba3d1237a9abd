"""Who may read what several toolsets keep."""

from __future__ import annotations

import pytest

from refdesk.core.reading_scopes import ReadingScopes, find_reading_scopes, require_scopes
from refdesk.errors import PermissionDeniedError
from refdesk.factories.toolsets import load_toolsets

SCOPES = ReadingScopes({"notes": frozenset({"notes:read"}), "both": frozenset({"notes:read", "more:read"})})


def test_what_is_read_takes_all_scopes_of_its_toolset_and_nobody_reads_what_is_not_served() -> None:
    assert SCOPES.every == {"notes:read", "more:read"}
    assert SCOPES.list_readable({"notes:read", "admin"}) == ["notes"]
    assert SCOPES.list_readable(SCOPES.every) == ["notes", "both"]
    assert not SCOPES.may_read({"notes:read", "admin"}, "gone")


def test_what_is_missing_is_named() -> None:
    require_scopes({"notes:read"}, ["notes:read"])
    with pytest.raises(PermissionDeniedError, match="needs the scope a") as refused:
        require_scopes({"notes:read"}, ["b", "a"])
    assert refused.value.details == {"missingScopes": ["a", "b"]}


def test_what_is_asked_live_is_left_out_where_only_what_is_kept_counts() -> None:
    toolsets = load_toolsets(("knowledge", "salesforce-knowledge"))
    assert sorted(find_reading_scopes(toolsets).by_toolset) == ["knowledge", "salesforce-knowledge"]
    assert sorted(find_reading_scopes(toolsets, live=False).by_toolset) == ["knowledge"]
