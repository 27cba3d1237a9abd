"""The tutorial's commands make playbooks of the sample world's conversations that a support lead would sign."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.test_cli import refdesk

TUTORIAL = REPOSITORY / "docs" / "tutorial" / "first-steps.md"
PROBLEMS = (
    "charged twice for Plus",
    "white ring on my hub",
    "radiator valve noise at night",
    "new phone, devices gone",
)
VALVE = (
    "Ask which valve it is",
    "look at the target temperature at night",
    "set the schedule so that from 10 pm to 6 am",
    'turn on "Quiet at night"',
    'If it still whirrs tomorrow: have the customer run "Calibrate"',
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def run(home: Path, command: str) -> str:
    arguments = [str(REPOSITORY / each) if each.startswith("sample_world/") else each for each in shlex.split(command)]
    done = refdesk(home, arguments, REFDESK_EMBEDDER="local")
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_what_the_tutorial_says_makes_playbooks_worth_signing(home: Path) -> None:
    learn, search, show = re.findall(r"^\$ refdesk (skills .+)$", TUTORIAL.read_text(), re.MULTILINE)
    assert run(home, learn).count("learned") == 20
    found = json.loads(run(home, f"{search} --json --limit 1"))["matches"][0]["skill_id"]
    shown = run(home, show.replace("ID", found))
    places = [shown.find(step) for step in VALVE]
    assert -1 not in places
    assert places == sorted(places)
    assert "conversations, led on in" in shown
    skills = [json.loads(run(home, f"skills search --json --limit 1 '{problem}'")) for problem in PROBLEMS]
    assert len({each["matches"][0]["skill_id"] for each in skills}) == len(PROBLEMS)
    text = json.dumps(skills)
    assert not [personal for personal in ("lena.berg", "4242", "hana.sato", "Ekman") if personal in text]
