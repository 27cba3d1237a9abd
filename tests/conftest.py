"""What every test may use: one event loop, and the real records where they are present."""

from __future__ import annotations

import logging
import os
import re
import signal
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sniffio import current_async_library_cvar

from refdesk.server import logs

REPOSITORY = Path(__file__).resolve().parent.parent

os.environ.setdefault("REFDESK_CONFIG", "none")  # whoever runs the tests may have a config file

# How fast an example is made or run says how busy the machine is. The rest of the profile that `CI` selects stays.
settings.register_profile("any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background so, and every process that a test starts would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail where a test of an engine lies outside of the folders in which `make test-engines` looks."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^ENGINE_TESTS := (.*)$", makefile, re.MULTILINE)
    folders = [REPOSITORY / name for name in found[1].split()] if found else []
    for item in items:
        if item.get_closest_marker("engines") and not any(item.path.is_relative_to(folder) for folder in folders):
            raise pytest.UsageError(f"{item.nodeid}: not run by `make test-engines`, see ENGINE_TESTS in the Makefile")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run long forms only when they are asked for."""
    if item.get_closest_marker("soak") and not os.environ.get("REFDESK_SOAK"):
        pytest.skip("the long form runs by `make soak`")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_loop_left_behind(request: pytest.FixtureRequest) -> None:
    """Let a plain test start a loop of its own though fixtures of the session keep one: they leave its name behind."""
    if not iscoroutinefunction(getattr(request.node, "obj", None)):
        current_async_library_cvar.set(None)


@pytest.fixture(autouse=True)
def no_logging_left_behind() -> None:
    """Put logging back: a command run inside a test or a fixture configures it for as long as the process lives."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler.formatter, logs.JsonLines)]
    for name in logs.QUIET:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def first_seed() -> int:
    """Where the seeds of a long form begin: `REFDESK_SEED`, so that another run can look elsewhere."""
    return int(os.environ.get("REFDESK_SEED", "10"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real records: `REFDESK_TEST_DATA`, else beside the repository. Required when `CI=true`."""
    folder = Path(os.environ.get("REFDESK_TEST_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        reason = "no folder of real records: set REFDESK_TEST_DATA to one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
