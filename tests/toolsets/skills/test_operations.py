"""What a caller of the skills toolset sees."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.core.writing.quotas import Quota
from refdesk.errors import EmbedderError, InvalidInputError, LanguageModelError, NotFoundError, QuotaExceededError
from refdesk.language_models.rules import RulesModel
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.toolsets.skills.queries import QUOTA_NAME
from refdesk.toolsets.skills.replaying import CHANGES
from tests.core.fakes import ScriptedEmbedder
from tests.toolsets.skills.conftest import INVOICE, Desk, ScriptedModel, describe

UNKNOWN = "01930000-0000-7000-8000-000000000009"


def find_vectors(answer: object) -> list[str]:
    """Return every list of more than ten numbers in an answer."""
    return re.findall(r"\[(?:-?\d[\d.e-]*, ){10,}", json.dumps(answer))


async def test_a_skill_is_learned_from_a_conversation_and_found_by_its_problem(desk: Desk) -> None:
    call = desk.serve()
    created = await call("create_skill", conversation=INVOICE)
    assert created["created"] is True
    assert "similarity" not in created
    found = await call("search_skills", query="wrong company name on the invoice")
    assert [match["skill_id"] for match in found["matches"]] == [created["skill_id"]]
    assert found["query"] == "wrong company name on the invoice"
    assert found["search_time_ms"] > 0
    seed = {"skill_id", "title", "score", "resolution", "conditions"}
    assert set(found["matches"][0]) == seed | {"version", "match", "confidence", "author", "updated_at"}
    assert found["matches"][0]["match"] == "strong"
    assert "notice" not in found
    other = await call("search_skills", query="When does the eclipse of the moon begin?")
    assert {match["match"] for match in other["matches"]} <= {"weak"}
    assert bool(other["matches"]) == ("notice" in other)


async def test_a_playbook_has_its_sections_and_says_how_it_stands(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=INVOICE, metadata={"product_area": "billing"})
    resolution = created["skill"]["resolution"]
    places = [resolution.index(f"## {name}") for name in ("Goal", "Prerequisites", "Steps", "Edge cases", "Escalation")]
    assert places == sorted(places)
    assert "1. **Do:** Ask for the customer's order number.\n   **Check:** " in resolution
    assert "**Say:** I have changed the name under Billing" in resolution
    assert "Version 1 · confidence 0.50 (0 uses, 0 confirmed) · product area: billing" in resolution
    assert "made by rules-8" in resolution


async def test_no_answer_carries_a_vector(desk: Desk) -> None:
    call = desk.serve()
    created = await call("create_skill", conversation=INVOICE)
    answers = [
        created,
        await call("create_skill", conversation=INVOICE),
        await call("search_skills", query="invoice"),
        await call("update_skill", skill_id=created["skill_id"], conversation=INVOICE),
        await call("report_outcome", skill_id=created["skill_id"], outcome="resolved"),
    ]
    assert find_vectors([0.5] * 384)
    assert find_vectors(answers) == []
    assert "embedding" not in json.dumps(answers)
    schemas = json.dumps([operation.output.model_json_schema() for operation in describe(RulesModel()).operations])
    assert "embedding" not in schemas


async def test_two_hundred_parallel_creates_of_one_conversation_make_one_skill(desk: Desk) -> None:
    model, answers = ScriptedModel(), list[dict[str, Any]]()
    call = desk.serve(model)

    async def create() -> None:
        answers.append(await call("create_skill", conversation=INVOICE))

    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(create)
    assert sum(answer["created"] for answer in answers) == 1
    assert len({answer["skill_id"] for answer in answers}) == 1
    assert len(await desk.queries().list_skills()) == 1
    assert len(model.shown) == 1


def with_quota(desk: Desk, per_org: int | None = None, per_agent: int | None = None) -> Desk:
    return replace(desk, base=replace(desk.base, quotas={QUOTA_NAME: Quota(QUOTA_NAME, per_org, per_agent)}))


def write_talk(number: int) -> tuple[ScriptedModel, str]:
    """A model and a conversation that teach something of their own."""
    words = ("heating", "printer", "invoice", "parcel", "password", "scanner", "bicycle", "garden")
    draft = SkillDraft(
        f"Broken {words[number]}", f"The {words[number]} fails.", Playbook("", steps=(Step("Mend it."),))
    )
    return ScriptedModel(draft), f"Customer: My {words[number]} fails.\nAgent: Please mend it."


async def test_a_quota_of_skills_holds_however_many_are_created_at_once(desk: Desk) -> None:
    limited, refused = with_quota(desk, per_org=3, per_agent=2), list[dict[str, Any] | None]()

    async def create(number: int, agent: str) -> None:
        model, talk = write_talk(number)
        try:
            await limited.serve(model, agent=agent)("create_skill", conversation=talk)
        except QuotaExceededError as error:
            refused.append(error.details)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(create, number, "ann" if number % 2 else "bob")
    assert len(await limited.queries().list_skills()) == 3
    assert len(refused) == 5
    assert {str(details and details["quota"]) for details in refused} == {QUOTA_NAME}


async def test_a_full_quota_costs_no_model_and_lets_what_is_known_be_asked_for(desk: Desk) -> None:
    limited, (model, talk) = with_quota(desk, per_agent=1), write_talk(0)
    first = await limited.serve(model)("create_skill", conversation=talk)
    again = await limited.serve(model)("create_skill", conversation=talk)
    assert (again["created"], again["skill_id"]) == (False, first["skill_id"])
    unpaid, other = write_talk(1)
    with pytest.raises(QuotaExceededError, match="1 of 1"):
        await limited.serve(unpaid)("create_skill", conversation=other)
    assert unpaid.shown == []
    assert (await limited.serve(unpaid, agent="bob")("create_skill", conversation=other))["created"]


async def test_parallel_creates_of_near_conversations_by_several_servers_make_one_skill(desk: Desk) -> None:
    # Each has its own locks, as if it were a process of its own; only the store can keep them apart.
    answers = list[dict[str, Any]]()

    async def create(number: int) -> None:
        answers.append(await desk.serve(ScriptedModel())("create_skill", conversation=f"{INVOICE}Agent: Bye {number}."))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(create, number)
    assert sum(answer["created"] for answer in answers) == 1
    assert {answer["similarity"] for answer in answers if not answer["created"]} == {1.0}
    assert len(await desk.queries().list_skills()) == 1


async def test_one_conversation_makes_one_skill_however_differently_two_servers_word_it(desk: Desk) -> None:
    slow = ScriptedModel(draft=SkillDraft("Wet cellar", "Water comes in.", Playbook("Dry.", steps=(Step("Pump."),))))
    first: list[dict[str, Any]] = []

    async def overtake() -> None:
        first.append(await desk.serve(ScriptedModel())("create_skill", conversation=INVOICE))

    slow.before_inducing = overtake
    second = await desk.serve(slow)("create_skill", conversation=INVOICE)
    assert first[0]["created"] is True
    assert second["created"] is False
    assert second["skill"] == first[0]["skill"]
    assert len(await desk.queries().list_skills()) == 1


async def test_a_near_skill_is_returned_with_its_similarity_instead_of_a_second_one(desk: Desk) -> None:
    model = ScriptedModel()
    call = desk.serve(model)
    first = await call("create_skill", conversation=INVOICE)
    model.draft = replace(model.draft, problem="The heating stays cold!")
    second = await call("create_skill", conversation="Customer: It is cold.\nAgent: Open the valve.")
    assert second["created"] is False
    assert second["skill_id"] == first["skill_id"]
    assert 0.95 < second["similarity"] <= 1.0


async def test_a_different_problem_makes_a_second_skill(desk: Desk) -> None:
    call = desk.serve()
    await call("create_skill", conversation=INVOICE)
    other = await call("create_skill", conversation="Customer: The printer is jammed.\nAgent: Please open the tray.")
    assert other["created"] is True
    assert len(await desk.queries().list_skills()) == 2


async def test_a_confirmed_resolution_starts_confirmed_and_with_more_confidence(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=INVOICE, resolution_confirmed=True)
    assert created["skill"]["times_confirmed"] == 1
    assert created["skill"]["confidence"] == pytest.approx(0.6)


async def test_a_known_skill_is_confirmed_by_another_conversation_but_once_by_each(desk: Desk) -> None:
    model = ScriptedModel()
    call = desk.serve(model)
    await call("create_skill", conversation=INVOICE)
    other = "Customer: It is cold.\nAgent: Open the valve."
    known = [await call("create_skill", conversation=other, resolution_confirmed=True) for _ in range(3)]
    assert [answer["created"] for answer in known] == [False] * 3
    assert [answer["skill"]["times_confirmed"] for answer in known] == [1] * 3
    assert known[-1]["skill"]["confidence"] == pytest.approx(0.6)


async def test_metadata_wins_over_what_is_inferred_now_and_later_and_is_kept(desk: Desk) -> None:
    model = ScriptedModel()
    model.draft = replace(model.draft, product_area="guessed", issue_type="guessed")
    call = desk.serve(model)
    metadata = {
        "product_area": "heating",
        "segment": {"tier": "gold"},
        "contact": "a.b@example.com",
        "ticket": "4471982",
    }
    created = await call("create_skill", conversation=INVOICE, metadata=metadata)
    assert created["skill"]["product_area"] == "heating"
    assert created["skill"]["issue_type"] == "guessed"
    assert created["skill"]["metadata"] == {**metadata, "contact": "[e-mail]"}
    model.draft = replace(model.draft, product_area="guessed again", issue_type="better")
    await call("update_skill", skill_id=created["skill_id"], conversation=INVOICE)
    skill = await desk.queries().get_skill(created["skill_id"])
    assert skill is not None
    assert (skill.product_area, skill.issue_type) == ("heating", "better")


async def test_an_update_counts_the_version_up_keeps_the_old_one_and_says_what_changed(desk: Desk) -> None:
    call = desk.serve()
    created = await call("create_skill", conversation=INVOICE)
    desk.clock.advance(timedelta(hours=1))
    more = "Customer: My bill has the wrong company, I pay by PayPal\nAgent: Please open the Billing page first."
    updated = await call("update_skill", skill_id=created["skill_id"], conversation=more)
    assert updated["version"] == 2
    assert updated["title"] == created["title"]
    assert "Added keyword “paypal”." in updated["changes"]
    first, second = await desk.queries().get_history(created["skill_id"])
    assert (first.version, second.version) == (1, 2)
    assert "paypal" not in first.keywords
    assert "paypal" in second.keywords
    assert second.updated_at - second.created_at == timedelta(hours=1)
    found = await call("search_skills", query="paypal")
    assert [match["skill_id"] for match in found["matches"]] == [created["skill_id"]]


async def test_what_a_skill_has_no_room_for_is_said(desk: Desk) -> None:
    steps = tuple(Step(f"Turn valve {number}.") for number in range(70))
    model = ScriptedModel()
    model.draft = replace(model.draft, playbook=Playbook("Warm.", steps=steps))
    call = desk.serve(model)
    created = await call("create_skill", conversation=INVOICE)
    [first] = await desk.queries().get_history(created["skill_id"])
    assert first.changes == ("Created.", "Left out 10 new of kind step: the skill holds 60 at most.")
    model.draft = replace(model.draft, playbook=Playbook("Warm.", steps=(*steps[30:], *steps[:30])))
    updated = await call("update_skill", skill_id=created["skill_id"], conversation=INVOICE)
    assert [change for change in updated["changes"] if change.startswith("Left out 10 ")]


async def test_parallel_updates_lose_nothing_even_from_several_servers(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=INVOICE)
    colours = ["red", "green", "blue", "yellow", "purple", "orange"]

    async def update(colour: str) -> None:
        talk = f"Customer: My {colour} invoice is wrong\nAgent: I have replaced the {colour} one."
        await desk.serve()("update_skill", skill_id=created["skill_id"], conversation=talk)

    async with anyio.create_task_group() as group:
        for colour in colours:
            group.start_soon(update, colour)
    skill = await desk.queries().get_skill(created["skill_id"])
    assert skill is not None
    assert skill.version == 1 + len(colours)
    assert set(colours) <= set(skill.keywords)


async def test_an_update_that_was_overtaken_is_made_again_from_the_newer_version(desk: Desk) -> None:
    model = ScriptedModel()
    call = desk.serve(model)
    created = await call("create_skill", conversation=INVOICE)

    async def overtake() -> None:
        model.before_inducing = None
        await desk.serve(ScriptedModel())("update_skill", skill_id=created["skill_id"], conversation=write_talk(1)[1])

    model.before_inducing = overtake
    updated = await call("update_skill", skill_id=created["skill_id"], conversation=write_talk(2)[1])
    assert updated["version"] == 3
    # What it was made from in the end has the other's conversation.
    firsts = [[case.turns[0].text for case in cases] for cases in model.shown[1:]]
    mine, others = "My invoice fails.", "My printer fails."
    assert [(mine in said, others in said) for said in firsts] == [(True, False), (True, True)]


@pytest.mark.parametrize(("outcome", "confidence"), [(name, 0.5 + change) for name, change in CHANGES.items()])
async def test_an_outcome_moves_confidence(desk: Desk, outcome: str, confidence: float) -> None:
    call = desk.serve()
    created = await call("create_skill", conversation=INVOICE)
    stands = await call(
        "report_outcome", skill_id=created["skill_id"], outcome=outcome, evidence="It works, a@b.example"
    )
    assert stands["confidence"] == pytest.approx(confidence)
    assert stands["times_confirmed"] == (outcome == "resolved")
    [report] = await desk.base.store.list_metadata("skill_outcome", org="acme")
    assert report.value["evidence"] == "It works, [e-mail]"
    assert report.value["version"] == 1


async def test_confidence_stays_between_nothing_and_one(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    up = [(await call("report_outcome", skill_id=id, outcome="resolved"))["confidence"] for _ in range(7)]
    down = [(await call("report_outcome", skill_id=id, outcome="failed"))["confidence"] for _ in range(12)]
    assert (up[-1], down[-1]) == (1.0, 0.0)


async def test_parallel_outcomes_all_count(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]

    async def report() -> None:
        await call("report_outcome", skill_id=id, outcome="likely_resolved")

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(report)
    assert len(await desk.base.store.list_metadata("skill_outcome", org="acme")) == 10
    skill = await desk.queries().get_skill(id)
    assert skill is not None
    assert skill.confidence == pytest.approx(0.8)


async def test_an_outcome_of_a_version_to_come_is_refused(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    with pytest.raises(InvalidInputError, match="version 2"):
        await call("report_outcome", skill_id=id, outcome="resolved", version=2)


@pytest.mark.parametrize("id", [UNKNOWN, "sk_123"])
async def test_an_unknown_skill_is_not_found(desk: Desk, id: str) -> None:
    call = desk.serve()
    with pytest.raises(NotFoundError):
        await call("update_skill", skill_id=id, conversation=INVOICE)
    with pytest.raises(NotFoundError):
        await call("report_outcome", skill_id=id, outcome="resolved")


async def test_another_org_neither_finds_nor_changes_nor_matches_a_skill(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=INVOICE)
    other = desk.serve(org="globex")
    assert (await other("search_skills", query="invoice"))["matches"] == []
    with pytest.raises(NotFoundError):
        await other("update_skill", skill_id=created["skill_id"], conversation=INVOICE)
    assert (await other("create_skill", conversation=INVOICE))["created"] is True


async def test_nothing_found_is_an_empty_list(desk: Desk) -> None:
    call = desk.serve()
    assert (await call("search_skills", query="anything"))["matches"] == []
    await call("create_skill", conversation=INVOICE)
    assert (await call("search_skills", query="anything", min_score=0.9))["matches"] == []


@pytest.mark.parametrize("query", ['AND OR "', "name:* ~2", "' ; DROP", "()", "?", "the", "%_\\", "請求書", "a" * 8000])
async def test_a_question_is_data_whatever_signs_it_holds(desk: Desk, query: str) -> None:
    call = desk.serve()
    await call("create_skill", conversation=INVOICE)
    answer = await call("search_skills", query=query)
    assert answer["query"] == query


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_skills", {}),
        ("search_skills", {"query": " \n"}),
        ("search_skills", {"query": "x", "top_k": 0}),
        ("search_skills", {"query": "x", "top_k": 51}),
        ("search_skills", {"query": "x", "min_score": 1.1}),
        ("search_skills", {"query": "x", "limit": 5}),
        ("create_skill", {"conversation": ""}),
        ("create_skill", {"conversation": "x", "metadata": {"long": "x" * 20_000}}),
        ("update_skill", {"skill_id": UNKNOWN, "conversation": "  "}),
        ("report_outcome", {"skill_id": UNKNOWN, "outcome": "great"}),
    ],
)
async def test_a_wrong_argument_is_refused_by_the_input_model(desk: Desk, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        await desk.serve()(name, **arguments)


@pytest.mark.parametrize("conversation", ["?!…", "Agent: Hello, how can I help?", "Customer: Hi!\nAgent: Hello."])
async def test_a_conversation_that_teaches_nothing_is_refused_with_advice(desk: Desk, conversation: str) -> None:
    with pytest.raises(InvalidInputError, match=r"[Ss]end"):
        await desk.serve()("create_skill", conversation=conversation)
    assert await desk.queries().list_skills() == []


async def test_a_model_that_answers_nothing_usable_changes_nothing(desk: Desk) -> None:
    model = ScriptedModel(draft=SkillDraft(" ", "x", Playbook("x", steps=(Step(" "),))))
    with pytest.raises(LanguageModelError):
        await desk.serve(model)("create_skill", conversation=INVOICE)
    assert await desk.queries().list_skills() == []


async def test_without_an_embedding_model_skills_are_learned_and_found_by_words(desk: Desk) -> None:
    plain = Desk(replace(desk.base, semantics=None), desk.clock)
    call = plain.serve()
    created = await call("create_skill", conversation=INVOICE)
    assert (await call("create_skill", conversation=INVOICE))["skill_id"] == created["skill_id"]
    found = await call("search_skills", query="company name")
    assert [match["skill_id"] for match in found["matches"]] == [created["skill_id"]]


async def test_what_works_comes_before_what_fails_where_both_match_alike(desk: Desk) -> None:
    model = ScriptedModel()
    call = desk.serve(model)
    ids: list[str] = []
    for word in ("upstairs", "downstairs"):
        model.draft = replace(model.draft, problem=f"The heating stays cold {word} and nobody knows why it is so.")
        ids.append((await call("create_skill", conversation=f"Customer: cold {word}\nAgent: ok"))["skill_id"])
    ranked = [match["skill_id"] for match in (await call("search_skills", query="heating stays cold"))["matches"]]
    assert sorted(ranked) == sorted(ids)
    for _ in range(5):
        await call("report_outcome", skill_id=ranked[0], outcome="failed")
        await call("report_outcome", skill_id=ranked[1], outcome="resolved")
    again = (await call("search_skills", query="heating stays cold"))["matches"]
    assert [match["skill_id"] for match in again] == ranked[::-1]
    assert again[0]["score"] >= again[1]["score"]


async def test_confidence_never_lifts_what_matches_worse(desk: Desk) -> None:
    call = desk.serve()
    right = (await call("create_skill", conversation=INVOICE))["skill_id"]
    wrong = (
        await call("create_skill", conversation="Customer: The company car has a flat tyre.\nAgent: Call the garage.")
    )["skill_id"]
    for _ in range(5):
        await call("report_outcome", skill_id=right, outcome="failed")
        await call("report_outcome", skill_id=wrong, outcome="resolved")
    found = (await call("search_skills", query="invoice with wrong company name"))["matches"]
    assert found[0]["skill_id"] == right


async def test_a_failing_embedder_is_said_and_changes_nothing(desk: Desk) -> None:
    semantics = desk.base.semantics
    assert semantics is not None
    semantics.wanted = ScriptedEmbedder(is_down=True)
    with pytest.raises(EmbedderError):
        await desk.serve()("create_skill", conversation=INVOICE)
    assert await desk.queries().list_skills() == []
    answer = await desk.serve()("search_skills", query="invoice")
    assert (answer["matches"], answer["notice"]) == ([], MISSING_MEANING["unavailable"])


async def test_a_concise_search_has_one_playbook_and_what_the_others_are_for(desk: Desk) -> None:
    for number in range(4):
        model, talk = write_talk(number)
        await desk.serve(model)("create_skill", conversation=talk)
    call, query = desk.serve(), "my heating, printer, invoice or parcel fails"
    whole = (await call("search_skills", query=query))["matches"]
    concise = (await call("search_skills", query=query, detail="concise"))["matches"]
    assert concise[0] == whole[0]
    assert [{**match, "resolution": ""} for match in concise] == [{**match, "resolution": ""} for match in whole]
    assert all("(1 step: get_skill reads all of it.)" in match["resolution"] for match in concise[1:])
    assert all("## Steps" not in match["resolution"] for match in concise[1:])
    assert len(concise) == 4
    assert (await call("search_skills", query=query, detail="full"))["matches"] == whole
