from __future__ import annotations

import pytest

from refdesk.errors import ConfigurationError
from refdesk.stores.sqlite.driver import SQLITE_VERSION
from refdesk.stores.sqlite.versions import is_safe, require_safe


@pytest.mark.parametrize("version", ["3.51.3", "3.52.1", "3.53.0", "3.54.1", "4.0.0", "3.50.7", "3.50.8", "3.44.6"])
def test_a_mended_sqlite_may_hold_data(version: str) -> None:
    assert is_safe(version)
    require_safe(version)


@pytest.mark.parametrize(
    "version", ["3.40.1", "3.44.5", "3.45.9", "3.50.6", "3.51.0", "3.51.2", "3.52.0", "3.7.17", "2.8.17"]
)
def test_a_sqlite_that_loses_pages_is_refused_with_what_to_do(version: str) -> None:
    assert not is_safe(version)
    with pytest.raises(ConfigurationError, match=rf"(?s){version}.*pip install"):
        require_safe(version)


def test_the_installed_sqlite_may_hold_data() -> None:
    require_safe(SQLITE_VERSION)
