"""A real browser, without a window: opens a page and returns what its scripts made of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.processes import WAIT_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    # Time in the page stands still while anything is being fetched, so this measures no machine.
    *("--virtual-time-budget=20000", "--dump-dom"),
)


def find_browser() -> str:
    """Return the browser's path; skips the test where there is none, unless `CI=true`."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium on this machine"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def open_page(url: str, profile: Path) -> str:
    """Return a page's document as HTML, once it has nothing more to fetch.

    Args:
        url: Of the page.
        profile: An empty folder for what the browser keeps.
    """
    done = subprocess.run(
        [find_browser(), *OPTIONS, f"--user-data-dir={profile}", url],
        capture_output=True,
        text=True,
        timeout=3 * WAIT_SECONDS,
        check=True,
    )
    return done.stdout
