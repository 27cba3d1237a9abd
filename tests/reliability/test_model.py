"""The knowledge base lives as the reference says, through restarts and clock jumps; and planted faults are seen."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.analysis import analyse
from refdesk.stores.sqlite import open_store
from tests.core.fakes import NOW
from tests.reliability.faults import FAULTS, Fault
from tests.reliability.inline import open_inline
from tests.reliability.machine import SECOND, TOKENS, WORDS, Machine, Subject
from tests.toolsets.knowledge.conftest import Desk

STEPS_OF_A_LIFE = 60


async def make_template(path: Path) -> None:
    async with open_store(path):
        pass


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "template.sqlite3"
    anyio.run(make_template, path)
    return path


def live(subject: Subject, lives: int, *, is_random: bool = False) -> None:
    """Let a subject live so many lives; raises what the first one that disagrees raises."""
    run_state_machine_as_test(
        partial(Machine, subject),  # pyright: ignore[reportArgumentType] - a function will do, says its docstring
        settings=settings(
            max_examples=lives,
            stateful_step_count=STEPS_OF_A_LIFE,
            derandomize=not is_random,
            database=None,
            deadline=None,
            print_blob=True,
            phases=[Phase.generate, Phase.shrink] if is_random else [Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )


def test_the_words_of_the_model_need_no_analysis() -> None:
    assert [analyse(word) for word in WORDS] == [[word] for word in WORDS]
    assert not [(one, other) for one in WORDS for other in WORDS if one in other and one != other]


def test_every_answer_is_the_references(template: Path) -> None:
    subject = Subject(template.parent)
    live(subject, 100)
    assert subject.steps >= 5_000, subject.steps


@pytest.mark.soak
def test_every_answer_is_the_references_in_the_long_run(template: Path) -> None:
    subject = Subject(template.parent)
    live(subject, 4_000, is_random=True)
    assert subject.steps >= 200_000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(template: Path, fault: Fault) -> None:
    subject = Subject(template.parent, fault.wrap_store, fault.wrap_search)
    with pytest.raises((AssertionError, LookupError)):
        live(subject, 200)


async def test_a_repeated_call_is_answered_after_the_expiry_it_asked_for(template: Path) -> None:
    clock = FixedClock(NOW)
    async with open_inline(Path(shutil.copy(template, template.parent / "repeated.sqlite3")), clock) as store:
        desk = Desk(KnowledgeBase(store, None, clock), clock)
        again = {"expiresAt": (NOW + 30 * SECOND).isoformat(), "clientToken": TOKENS[0]}
        first = await desk.store("A note for half a minute", **again)
        clock.advance(40 * SECOND)
        assert await desk.store("A note for half a minute", **again) == first.model_copy(update={"replayed": True})
