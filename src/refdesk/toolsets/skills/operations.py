"""The skills toolset's operations: search, create, update, report an outcome.

What only some calls need is imported by them, not when the server starts.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from refdesk.core.context import Context
from refdesk.core.operations import READS, Effects, Operation, Route, Shortening, Unanswered
from refdesk.core.writing import idempotency
from refdesk.core.writing.idempotency import Once, Token
from refdesk.errors import Choice, NotFoundError, StoreError
from refdesk.kit.unanswered import tell_unanswered
from refdesk.toolsets.skills import TOOLSET_NAME, missing, models
from refdesk.toolsets.skills.models import (
    CreateInput,
    CreateOutput,
    GetInput,
    OutcomeInput,
    OutcomeOutput,
    SearchInput,
    SearchOutput,
    SkillDocument,
    UpdateInput,
    UpdateOutput,
    WithdrawOutcomeInput,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from pydantic import BaseModel

    from refdesk.core.search.matches import Match
    from refdesk.core.search.semantics import SemanticStatus
    from refdesk.model import CosineScale, JsonObject, JsonValue
    from refdesk.playbooks import Turn
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.queries import Creation, FoundSkill, SkillQueries
    from refdesk.toolsets.skills.records import Skill

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

READ_SCOPE = "skills:read"
WRITE_SCOPE = "skills:write"

UNCOUNTED = frozenset({"watch", "console"})
"""The transports of those who read a skill without following it: the server itself, and people who look."""

MOST_OFFERED = 5
"""Most skills that are offered to choose from."""

QUERY_CHARACTERS = 1000
"""How many characters of a conversation's beginning are searched for, to find what it is about."""


async def search_skills(context: Context, asked: SearchInput, random: Random | None = None) -> SearchOutput:
    """Find skills by hybrid search; for `random` see `SkillQueries`."""
    from refdesk.core.search import matching
    from refdesk.kit.cautions import get_cautions
    from refdesk.toolsets.skills import openings
    from refdesk.toolsets.skills.queries import get_queries

    started = perf_counter()
    semantics = context.knowledge_base.semantics
    embedder = await semantics.get_ready() if semantics is not None else None
    question = openings.leave_pleasantries(asked.query)
    vector, status = await context.knowledge_base.embed_query(question, context.principal.org)
    queries = replace(get_queries(context, embedder), random=random)
    embedding, trust = (vector.vector.tolist(), vector.trust) if vector is not None else ((), 1.0)
    found = await queries.hybrid_search(embedding, question, asked.top_k, asked.min_score, trust=trust)
    matches = _judge(found, question, vector.scale if vector is not None else None)
    cautions = await get_cautions(queries.store, queries.org, TOOLSET_NAME, [m["skill"].skill_id for m in found])
    shown = [
        models.to_match(match["skill"], match["score"], how, is_whole=asked.detail == "full" or place == 0)
        for place, (match, how) in enumerate(zip(found, matches, strict=True))
    ]
    return SearchOutput(
        matches=[match.model_copy(update={"caution": caution}) for match, caution in zip(shown, cautions, strict=True)],
        query=asked.query,
        notice=matching.get_notice(matches, tell_status(status, found)),
        search_time_ms=round((perf_counter() - started) * 1000, 3),
    )


def tell_status(status: SemanticStatus, found: Sequence[FoundSkill]) -> SemanticStatus:
    """Return whether vectors took part in what was found: none did if no skill has one yet."""
    has_none = found and all(match["cosine"] is None for match in found)
    return "missing" if status == "used" and has_none else status


def _judge(found: Sequence[FoundSkill], query: str, scale: CosineScale | None) -> list[Match]:
    from refdesk.core.search import matching
    from refdesk.core.search.analysis import parse_query

    text = parse_query(query)
    strengths = [
        matching.judge(text, match["skill"].title, match["skill"].body, match["cosine"], scale) for match in found
    ]
    return [matching.name(strength) for strength in strengths]


async def get_skill(context: Context, asked: GetInput) -> SkillDocument:
    """Read one skill whole; this counts as a use, unless the server itself or a person looks at it."""
    from refdesk.kit.cautions import get_cautions
    from refdesk.toolsets.skills.queries import get_queries

    queries = get_queries(context)
    skill = await queries.get_skill(asked.skill_id)
    if skill is not None and context.principal.transport not in UNCOUNTED:
        skill = await _count_use(queries, skill)
    if skill is None:
        raise await missing.explain(queries.store, queries.org, asked.skill_id)
    [caution] = await get_cautions(queries.store, queries.org, TOOLSET_NAME, [skill.skill_id])
    return models.to_skill_document(skill).model_copy(update={"caution": caution})


async def _count_use(queries: SkillQueries, skill: Skill) -> Skill | None:
    try:
        return await queries.count_use(skill.skill_id)
    except StoreError as error:
        # Answering matters more than counting.
        logger.warning("use not counted", extra={"reason": error.message})
        return skill


async def _offer_skills(context: Context, asked: UpdateInput, error: NotFoundError) -> NotFoundError:
    """Return the error with the skills that the id or the conversation may be about, for somebody to choose from."""
    if READ_SCOPE not in context.principal.scopes:
        return error
    from refdesk.kit import masking
    from refdesk.toolsets.skills.queries import get_queries

    queries = get_queries(context)
    for text in (asked.skill_id, asked.conversation[:QUERY_CHARACTERS]):
        found = await queries.hybrid_search((), masking.mask(text), MOST_OFFERED, 0.0)
        options = [(match["skill"].skill_id, match["skill"].title) for match in found]
        if options:
            question = f"There is no skill {asked.skill_id!r}. Which one shall learn from this conversation?"
            choice = Choice(("skill_id",), question, options, asked.skill_id)
            return NotFoundError(error.message, details=error.details, choice=choice, unknown=error.unknown)
    return error


async def report_outcome(context: Context, report: OutcomeInput) -> OutcomeOutput:
    """Move a skill's confidence by how it went."""
    from refdesk.kit import masking
    from refdesk.toolsets.skills import reports
    from refdesk.toolsets.skills.queries import get_queries

    evidence, id = masking.mask(report.evidence), context.knowledge_base.identifiers.new()
    made = reports.Report(id, context.principal.agent, report.outcome, report.version, evidence)
    payload = {**report.model_dump(mode="json", exclude={"client_token"}), "evidence": evidence}

    async def act(once: Once[Skill]) -> Skill:
        return await reports.record(get_queries(context), report.skill_id, made, once)

    answer = await _act_once(
        context, "s.report", report.client_token, payload, lambda skill: _to_outcome(skill, id), act
    )
    return OutcomeOutput.model_validate(answer)


async def withdraw_outcome(context: Context, asked: WithdrawOutcomeInput) -> OutcomeOutput:
    """Take back a report of the caller's own."""
    from refdesk.toolsets.skills import reports
    from refdesk.toolsets.skills.queries import get_queries

    queries = get_queries(context)
    skill = await reports.withdraw(queries, asked.skill_id, asked.report_id, context.principal.agent)
    return _to_outcome(skill, asked.report_id)


def _to_outcome(skill: Skill, report_id: str) -> OutcomeOutput:
    return OutcomeOutput(
        skill_id=skill.skill_id,
        version=skill.version,
        confidence=skill.confidence,
        times_used=skill.times_used,
        times_confirmed=skill.times_confirmed,
        report_id=report_id,
    )


async def _act_once(
    context: Context,
    operation: str,
    client_token: str | None,
    payload: JsonObject,
    write: Callable[[Result], BaseModel],
    act: Callable[[Once[Result]], Awaitable[Result]],
) -> JsonObject:
    """Return the answer to a call that may be a repetition; `write` makes the answer from what was done."""
    base, principal = context.knowledge_base, context.principal
    token = Token(principal.org, principal.agent, operation, client_token, payload) if client_token else None

    def dump(done: Result) -> JsonObject:
        return write(done).model_dump(mode="json", exclude_none=True)

    once = Once(token, base.clock, dump, context.asked_at)
    return await idempotency.act_once(base.scratchpad, once, act)


LEARN_SECONDS = 120.0
"""How long learning may take at least: a hosted model reads the whole conversation and writes a playbook."""

MOST_BYTES = 2 * 1024 * 1024
"""Most bytes of a request to learn: the longest conversation, with room for the escapes of JSON."""

_INVALID = "An argument is missing, malformed, blank or out of range."
_UNKNOWN = "No skill has this id, as far as the caller may know."
_TOKEN_USED = (
    "The clientToken was used for another request less than 60 seconds ago, or the first request with it is still "
    "being done."
)
_MODELS_FAIL = {
    "LANGUAGE_MODEL_UNAVAILABLE": "The language model failed, refused or answered nonsense twice; nothing was changed.",
    "EMBEDDER_UNAVAILABLE": "The embedding model failed; nothing was changed.",
}
_CONVERSATION = (
    "Customer: My invoice shows the wrong company name.\n"
    "Agent: Could you tell me your order number, please?\n"
    "Customer: It is 4471.\n"
    "Agent: I have changed the name under Billing and sent a corrected invoice.\n"
    "Customer: Got it, thanks!"
)
_ID = "01930000-0000-7000-8000-000000000001"


def make_listed(get_learner: Callable[[], Learner], random: Random | None = None) -> tuple[Operation, ...]:
    """Return the operations that MCP lists unasked; for `random` see `SkillQueries`."""

    async def search(context: Context, asked: SearchInput) -> SearchOutput:
        return await search_skills(context, asked, random)

    return replace(SEARCH, handler=search), GET, _make_create(get_learner), _make_update(get_learner), REPORT, WITHDRAW


def _keep(asked: CreateInput | UpdateInput) -> dict[str, JsonValue]:
    """Return the arguments with personal data masked, as learning does before anything else.

    Raises:
        InvalidInputError: The conversation holds no word.
    """
    from refdesk.kit import masking
    from refdesk.toolsets.skills.learning import prepare

    masked = masking.mask_value(asked.model_dump(mode="json", exclude={"conversation", "client_token"}))
    assert isinstance(masked, dict)
    if isinstance(asked, UpdateInput):
        masked["feedback"] = masking.mask(asked.feedback)
    token = {"clientToken": asked.client_token} if asked.client_token is not None else {}
    turns = prepare(asked.conversation)
    return {**masked, **token, "conversation": "\n".join(map(_write_line, turns))}


def _identify(asked: CreateInput | UpdateInput) -> JsonObject:
    """Return what must be equal for two calls with the same token to be the same call; empty without a token."""
    return _keep(asked) if asked.client_token is not None else {}


def _to_created(creation: Creation) -> CreateOutput:
    return CreateOutput(
        skill_id=creation.skill.skill_id,
        title=creation.skill.title,
        skill=models.to_skill_document(creation.skill),
        created=creation.similarity is None,
        similarity=creation.similarity,
    )


def _to_updated(skill: Skill) -> UpdateOutput:
    return UpdateOutput(skill_id=skill.skill_id, title=skill.title, changes=list(skill.changes), version=skill.version)


def _write_line(turn: Turn) -> str:
    """Return a turn as a line of a transcript, in the form that is read back."""
    return f"{turn.speaker.capitalize()}: {turn.call} {turn.text}".replace(":  ", ": ")


def _make_create(get_learner: Callable[[], Learner]) -> Operation:
    async def create_skill(context: Context, asked: CreateInput) -> CreateOutput:
        async def act(once: Once[Creation]) -> Creation:
            return await get_learner().create(
                context, asked.conversation, asked.resolution_confirmed, asked.metadata, once
            )

        answer = await _act_once(context, "s.create", asked.client_token, _identify(asked), _to_created, act)
        return CreateOutput.model_validate(answer)

    return Operation(
        name="create_skill",
        title="Create skill",
        description=(
            "Learn a playbook from a support conversation that went well. `created` false: known before; update_skill "
            "if this adds to it."
        ),
        input=CreateInput,
        output=CreateOutput,
        handler=create_skill,
        scopes=frozenset({WRITE_SCOPE}),
        effects=Effects(read_only=False, idempotent=True),
        route=Route("POST", "/create"),
        least_seconds=LEARN_SECONDS,
        most_bytes=MOST_BYTES,
        errors={
            "INVALID_INPUT": f"{_INVALID} Or the conversation teaches nothing.",
            "CONFLICT": _TOKEN_USED,
            "QUOTA_EXCEEDED": "The org or the agent may create no more skills; details say how much is used.",
            **_MODELS_FAIL,
        },
        examples=(
            {"conversation": _CONVERSATION, "resolution_confirmed": True, "metadata": {"product_area": "billing"}},
        ),
        keep=_keep,
        lane="learning",
    )


def _make_update(get_learner: Callable[[], Learner]) -> Operation:
    async def update_skill(context: Context, asked: UpdateInput) -> UpdateOutput:
        async def act(once: Once[Skill]) -> Skill:
            return await get_learner().update(context, asked.skill_id, asked.conversation, asked.feedback, once)

        try:
            answer = await _act_once(context, "s.update", asked.client_token, _identify(asked), _to_updated, act)
        except NotFoundError as error:
            raise await _offer_skills(context, asked, error) from None
        return UpdateOutput.model_validate(answer)

    return Operation(
        name="update_skill",
        title="Update skill",
        description=(
            "Refine a skill with a conversation that used it. What it holds stays unless contradicted; `changes` "
            "lists everything."
        ),
        input=UpdateInput,
        output=UpdateOutput,
        handler=missing.NAMING.offering(update_skill),
        scopes=frozenset({WRITE_SCOPE}),
        effects=Effects(read_only=False, idempotent=False),
        route=Route("POST", "/update"),
        least_seconds=LEARN_SECONDS,
        most_bytes=MOST_BYTES,
        errors={
            "INVALID_INPUT": _INVALID,
            "NOT_FOUND": _UNKNOWN,
            "CONFLICT": f"Others kept changing the skill meanwhile. Or: {_TOKEN_USED}",
            "QUOTA_EXCEEDED": "The org may keep no more; details say how many bytes it keeps.",
            **_MODELS_FAIL,
        },
        examples=({"skill_id": _ID, "conversation": _CONVERSATION, "feedback": "Step 2 was not needed."},),
        may_offer=lambda _: True,
        keep=_keep,
        lane="refining",
    )


def _find_unanswered(asked: SearchInput, answer: SearchOutput) -> Unanswered | None:
    if asked.min_score:
        return None
    return tell_unanswered(asked.query, [TOOLSET_NAME], ((TOOLSET_NAME, each.match) for each in answer.matches))


SEARCH = Operation(
    name="search_skills",
    title="Search skills",
    description=(
        "Find how such customers were helped before: what to ask, do and say. Not for facts or policies. Follow what "
        "fits, then report_outcome; if nothing does, create_skill once it is solved."
    ),
    input=SearchInput,
    output=SearchOutput,
    handler=search_skills,
    find_unanswered=_find_unanswered,
    scopes=frozenset({READ_SCOPE}),
    effects=READS,
    route=Route("POST", "/search"),
    errors={"INVALID_INPUT": _INVALID},
    shortening=Shortening("matches", ("resolution",), "get_skill reads a playbook whole."),
    examples=(
        {"query": "my invoice shows the wrong company name"},
        {"query": "locked out", "top_k": 1, "min_score": 0.3},
    ),
)

GET = Operation(
    name="get_skill",
    title="Get skill",
    description="Read one skill whole.",
    input=GetInput,
    output=SkillDocument,
    handler=missing.NAMING.offering(get_skill),
    scopes=frozenset({READ_SCOPE}),
    effects=READS,
    route=Route("GET", "/skills/{skill_id}"),
    errors={"INVALID_INPUT": _INVALID, "NOT_FOUND": _UNKNOWN},
    shortening=Shortening("", ("resolution",), "The resource skill://{skill_id} has it whole."),
    examples=({"skill_id": _ID},),
)

REPORT = Operation(
    name="report_outcome",
    title="Report outcome",
    description=("Say how following a playbook went, which moves the skill's confidence: what works comes first."),
    input=OutcomeInput,
    output=OutcomeOutput,
    handler=missing.NAMING.offering(report_outcome),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=False),
    route=Route("POST", "/outcome"),
    errors={
        "INVALID_INPUT": f"{_INVALID} Or there is no such version yet.",
        "NOT_FOUND": _UNKNOWN,
        "CONFLICT": _TOKEN_USED,
    },
    examples=({"skill_id": _ID, "outcome": "resolved", "evidence": "The customer wrote: it works now."},),
)

WITHDRAW = Operation(
    name="withdraw_outcome",
    title="Withdraw outcome",
    description="Take back an outcome that you reported by mistake.",
    input=WithdrawOutcomeInput,
    output=OutcomeOutput,
    handler=missing.NAMING.offering(withdraw_outcome),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=True),
    route=Route("POST", "/outcome/withdraw"),
    errors={
        "INVALID_INPUT": _INVALID,
        "NOT_FOUND": "No skill has this id, or no such report, as far as the caller may know.",
        "PERMISSION_DENIED": "Another agent made the report.",
    },
    examples=({"skill_id": _ID, "report_id": "01930000-0000-7000-8000-000000000002"},),
)
