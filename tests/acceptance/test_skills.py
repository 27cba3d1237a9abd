"""Skills over REST as their contract has it: its paths, models, codes and error body, from a server of its own."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.processes import ENVELOPE, run, shake_hands, start
from tests.acceptance.test_http import SERVE
from tests.emulators.language_models import KEY, emulate

TRANSCRIPT = """\
Customer: My espresso machine shows error 12 and does not heat up.
Agent: Please switch it off and empty the water tank.
Customer: Done.
Agent: Now hold the steam button for ten seconds, that resets the heating.
Customer: It heats up again, thank you!
"""
UNKNOWN = "01930000-0000-7000-8000-00000000dead"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    home = tmp_path_factory.mktemp("home")
    with start([*SERVE, "--toolset", "skills"], home, REFDESK_EMBEDDER="hashing") as server:
        yield server.read_log("listening")["url"]


@pytest.fixture(scope="module")
def created(url: str) -> dict[str, Any]:
    body = {"conversation": TRANSCRIPT, "resolution_confirmed": True, "metadata": {"product_area": "coffee"}}
    answer = httpx2.post(f"{url}/create", json=body)
    assert answer.status_code == 200
    return answer.json()


def test_a_created_skill_has_the_fields_of_the_contract(created: dict[str, Any]) -> None:
    assert created.keys() == {"skill_id", "title", "skill", "created"}
    assert created["created"] is True
    skill = created["skill"]
    assert (skill["skill_id"], skill["title"]) == (created["skill_id"], created["title"])
    assert (skill["version"], skill["times_confirmed"], skill["product_area"]) == (1, 1, "coffee")
    assert "hold the steam button" in skill["resolution"]
    assert not any("embedding" in key or "vector" in key for key in skill)


def test_a_search_finds_it_in_the_customers_words(url: str, created: dict[str, Any]) -> None:
    query = "error 12 on my espresso machine"
    answer = httpx2.post(f"{url}/search", json={"query": query, "top_k": 3, "min_score": 0.1}).json()
    assert answer.keys() == {"matches", "query", "search_time_ms"}
    assert answer["query"] == query
    assert answer["search_time_ms"] > 0
    [match] = answer["matches"]
    # The contract's fields; what there is beside them is how well it matches, who began it and when.
    assert match.keys() >= {"skill_id", "title", "score", "resolution", "conditions", "version"}
    assert match["skill_id"] == created["skill_id"]
    assert 0.1 <= match["score"] <= 1


@pytest.mark.usefixtures("created")
def test_nothing_found_is_no_error(url: str) -> None:
    answer = httpx2.post(f"{url}/search", json={"query": "zxqv", "min_score": 0.99})
    assert (answer.status_code, answer.json()["matches"]) == (200, [])


def test_the_same_conversation_makes_no_second_skill(url: str, created: dict[str, Any]) -> None:
    again = httpx2.post(f"{url}/create", json={"conversation": TRANSCRIPT}).json()
    assert (again["created"], again["skill_id"], again["similarity"]) == (False, created["skill_id"], 1.0)


def test_an_update_counts_the_version_up_and_lists_what_changed(url: str, created: dict[str, Any]) -> None:
    more = TRANSCRIPT + "Agent: If it stays cold, replace the fuse behind the left panel.\nCustomer: Good to know.\n"
    body = {"skill_id": created["skill_id"], "conversation": more, "feedback": "Mention the fuse."}
    answer = httpx2.post(f"{url}/update", json=body).json()
    assert answer.keys() == {"skill_id", "title", "changes", "version"}
    assert (answer["skill_id"], answer["version"]) == (created["skill_id"], 2)
    assert any("fuse" in change for change in answer["changes"])


def test_an_outcome_moves_the_confidence(url: str, created: dict[str, Any]) -> None:
    before = created["skill"]["confidence"]
    answer = httpx2.post(f"{url}/outcome", json={"skill_id": created["skill_id"], "outcome": "failed"}).json()
    assert answer["confidence"] == pytest.approx(before - 0.10)


def test_health_answers(url: str) -> None:
    assert httpx2.get(f"{url}/health").status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {}),
        ("/search", {"query": ""}),
        ("/search", {"query": "  "}),
        ("/search", {"query": 7}),
        ("/search", {"query": "x", "top_k": 0}),
        ("/search", {"query": "x", "top_k": "many"}),
        ("/search", {"query": "x", "min_score": 1.5}),
        ("/search", {"query": "x", "color": "red"}),
        ("/create", {}),
        ("/create", {"conversation": "   "}),
        ("/create", {"conversation": "..."}),
        ("/create", {"conversation": TRANSCRIPT, "metadata": []}),
        ("/update", {"conversation": TRANSCRIPT}),
        ("/update", {"skill_id": "", "conversation": TRANSCRIPT}),
        ("/outcome", {"skill_id": UNKNOWN, "outcome": "perhaps"}),
        ("/search", []),
    ],
)
def test_whatever_is_wrong_in_a_body_is_a_400_that_says_what(url: str, path: str, body: object) -> None:
    answer = httpx2.post(url + path, json=body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"error", "detail"}
    assert answer.json()["error"] == "INVALID_INPUT"
    assert answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b'{"query": NaN}', b'{"query": "\\ud800"}'])
def test_what_is_no_json_is_a_400_too(url: str, body: bytes) -> None:
    answer = httpx2.post(f"{url}/search", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_INPUT")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/update", {"skill_id": UNKNOWN, "conversation": TRANSCRIPT}),
        ("/outcome", {"skill_id": UNKNOWN, "outcome": "resolved"}),
    ],
)
def test_an_unknown_skill_is_a_404(url: str, path: str, body: object) -> None:
    answer = httpx2.post(url + path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (404, "NOT_FOUND")
    assert UNKNOWN in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/nowhere", "/skills/a/b", "/searches"])
def test_an_unknown_path_is_a_404_in_the_contracts_form(url: str, path: str) -> None:
    answer = httpx2.get(url + path)
    assert answer.status_code == 404
    assert answer.json().keys() == {"error", "detail"}
    assert answer.json()["error"] == "NOT_FOUND"


def test_a_transcript_of_a_megabyte_is_learned_whatever_its_escapes(url: str) -> None:
    line = 'Agent: Turn the "left" valve.\nCustomer: "Done", it says "ok".\n'
    transcript = "Customer: The boiler in the cellar drips.\n" + line * (1_000_000 // len(line))
    body = json.dumps({"conversation": transcript}).encode()
    assert 1_048_576 < len(body) < 2_097_152
    answer = httpx2.post(f"{url}/create", content=body, headers={"content-type": "application/json"}, timeout=60)
    assert answer.status_code == 200
    assert "boiler" in answer.json()["skill"]["problem"]


def test_more_than_that_is_refused_in_the_same_form(url: str) -> None:
    for path, size in (("/create", 2_200_000), ("/search", 1_100_000)):
        answer = httpx2.post(url + path, json={"conversation": "x" * size})
        assert (answer.status_code, answer.json()["error"]) == (413, "TOO_LARGE")


def test_a_hosted_model_that_fails_is_a_500_that_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with emulate() as service:
        variables = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_LANGUAGE_MODEL": "openai",
            "REFDESK_OPENAI_API_KEY": KEY,
            "REFDESK_OPENAI_BASE_URL": f"{service}/v1",
        }
        for model, status in (("fine", 200), ("invents", 200), ("refused", 500)):
            home = tmp_path_factory.mktemp("home")
            options = {**variables, "REFDESK_OPENAI_LANGUAGE_MODEL": model}
            with start([*SERVE, "--toolset", "skills"], home, **options) as server:
                url = server.read_log("listening")["url"]
                answer = httpx2.post(f"{url}/create", json={"conversation": TRANSCRIPT}, timeout=120)
                if status == 200:
                    check_wording(url, model, answer.json()["skill"])
            assert answer.status_code == status
            if status != 200:
                assert answer.json().keys() == {"error", "detail"}
                assert answer.json()["error"] == "LANGUAGE_MODEL_UNAVAILABLE"


def check_wording(url: str, model: str, skill: dict[str, Any]) -> None:
    """A model's words are in the playbook where it kept to the steps, else those of rules, which the changes say."""
    assert skill["made_by"] == f"openai-{model}"
    assert ("Make sure." in skill["resolution"]) == (model == "fine")
    assert "voucher" not in skill["resolution"]
    refined = {"skill_id": skill["skill_id"], "conversation": f"{TRANSCRIPT}\nCustomer: Splendid."}
    changes = httpx2.post(f"{url}/update", json=refined, timeout=120).json()["changes"]
    assert any("wording was not used" in change for change in changes) == (model == "invents")


def test_whoever_chose_no_model_is_told_once_what_learns(tmp_path_factory: pytest.TempPathFactory) -> None:
    for variables, times in (({}, 1), ({"REFDESK_LANGUAGE_MODEL": "rules"}, 0)):
        home = tmp_path_factory.mktemp("home")
        arguments = ["-m", "refdesk", "serve", "--stdio", "--isolated"]
        with start(arguments, home, REFDESK_EMBEDDER="hashing", **variables) as server:
            server.ask(1, "server/discover", ENVELOPE)
            status, _, log = server.close()
        assert (status, log.count("skills are learned by rules")) == (0, times)


def test_a_model_that_lacks_its_key_is_said_in_one_sentence(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    done = run(["serve", "--no-auth", "--port", "0"], home, REFDESK_LANGUAGE_MODEL="gemini")
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "Error: REFDESK_LANGUAGE_MODEL is gemini, which needs a key: set REFDESK_GEMINI_API_KEY."
    )


def make_megabyte() -> str:
    turn = "Customer: The scanner smears every page.\nAgent: Please wipe the glass strip with a dry cloth.\n"
    return turn * (1_000_000 // len(turn))


async def test_a_megabyte_is_learned_from_over_http_mcp_too(url: str) -> None:
    async with Client(streamable_http_client(f"{url}/mcp"), mode="legacy") as client:
        answer = await client.call_tool("create_skill", {"conversation": make_megabyte()})
    assert answer.structured_content is not None
    assert "wipe the glass strip" in answer.structured_content["skill"]["resolution"]


def test_a_megabyte_is_learned_from_over_stdio_too(tmp_path: Path) -> None:
    with start(["-m", "refdesk.toolsets.skills", "--isolated"], tmp_path, REFDESK_EMBEDDER="hashing") as server:
        shake_hands(server)
        call = {"name": "create_skill", "arguments": {"conversation": make_megabyte()}}
        answer = server.ask(2, "tools/call", call)["result"]
    assert "wipe the glass strip" in answer["structuredContent"]["skill"]["resolution"]
