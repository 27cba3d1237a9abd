"""Three servers on one PostgreSQL store tell each thing once, also when one of them is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.test_watching import check_three_servers
from tests.engines.postgres import get_store_url

pytestmark = pytest.mark.engines


def test_three_servers_on_one_database_report_each_thing_once(tmp_path: Path) -> None:
    check_three_servers(tmp_path, REFDESK_STORE=get_store_url(tmp_path))
