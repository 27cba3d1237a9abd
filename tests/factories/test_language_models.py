from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from refdesk import errors
from refdesk.factories.language_models import HostedModel, choose_language_model
from refdesk.language_models.rules import RulesModel
from refdesk.playbooks import Case, Turn
from refdesk.settings import Settings, compose
from tests.emulators.language_models import KEY, emulate

CASE = Case("c1", (Turn("customer", "The printer is stuck."), Turn("agent", "Open the lid.")))


@pytest.fixture(scope="module")
def services() -> Generator[str]:
    with emulate() as address:
        yield address


def make_settings(tmp_path: Path, **chosen: Any) -> Settings:  # noqa: ANN401 - any setting
    return compose()(home=tmp_path, **chosen)


def test_rules_learn_unless_another_model_is_chosen(tmp_path: Path) -> None:
    assert isinstance(choose_language_model(make_settings(tmp_path)), RulesModel)


@pytest.mark.skipif(find_spec("google") is None, reason="google-genai is not installed: install the extra gemini")
async def test_gemini_is_asked_at_the_address_of_the_settings(tmp_path: Path, services: str) -> None:
    settings = make_settings(
        tmp_path,
        language_model="gemini",
        gemini_language_model="fine",
        gemini_api_key=KEY,
        gemini_base_url=f"{services}/v1beta",
    )
    await check(choose_language_model(settings))


async def test_an_openai_compatible_service_is_asked_at_the_address_of_the_settings(
    tmp_path: Path, services: str
) -> None:
    settings = make_settings(
        tmp_path,
        language_model="openai",
        openai_language_model="fine",
        openai_api_key=KEY,
        openai_base_url=f"{services}/v1",
    )
    await check(choose_language_model(settings))


async def check(model: object) -> None:
    """The model answers twice, each time with a client of its own, and is called what its client calls itself."""
    assert isinstance(model, HostedModel)
    for _ in range(2):
        draft = await model.induce([CASE], None)
        assert [(step.do, step.induced) for step in draft.playbook.steps] == [
            ("Have the customer open the lid. Make sure.", "Have the customer open the lid.")
        ]
    assert (await model.preview([CASE])).playbook.steps[0].do == "Have the customer open the lid."
    assert (await model.group([CASE], None)).groups == ((0,),)
    async with model.open_model() as opened:
        assert opened.name == model.name


def test_gemini_without_a_key_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="REFDESK_GEMINI_API_KEY"):
        choose_language_model(make_settings(tmp_path, language_model="gemini"))
