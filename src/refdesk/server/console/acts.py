"""What can be done in the console: for each operation, what its form says and asks for, and where it leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlencode

import anyio

from refdesk import errors
from refdesk.server.console import notes
from refdesk.server.console.notices import UNDOING

if TYPE_CHECKING:
    from refdesk.server.console.visits import Visit

Given: TypeAlias = Mapping[str, str]
Answer: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["line", "text", "words", "number", "choice", "check", "when", "hidden", "token"]
Lead: TypeAlias = Callable[[Given, Answer], tuple[str, "dict[str, str] | None"]]

WAIT_SECONDS = 1.5
"""How long a page waits for something slow, which then goes on without it."""

MOST_OFFERED = 200
MOST_GAPS = 100
WATCHES = "/console/watches"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form: an argument of the operation, or something that the act itself makes use of.

    Attributes:
        kind: `words` is a list, separated by commas; `token` is made for each form, so that the form counts once.
        words: Labels of the values that may be chosen, by value.
        offer: Returns what may be chosen, value and label, if the operation's schema does not say.
        rows: Height of a text.
        may_be_empty: Whether an empty field means an empty list, rather than what was there before.
    """

    name: str
    label: str
    kind: Kind = "line"
    hint: str = ""
    rows: int = 4
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    offer: Callable[[Visit, Given], Awaitable[list[tuple[str, str]]]] | None = None
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A form that came too late.

    Attributes:
        given: What to put into its fields so that it does what was meant after all.
        meanwhile: What somebody else did, for the page: `by` whom, when (`at`), and how it `compared` with before.
    """

    given: Given
    meanwhile: Answer


async def _run(visit: Visit, operation: str, arguments: Mapping[str, object]) -> Answer:
    return await visit.ask(operation, arguments)


@dataclass(frozen=True, slots=True)
class Act:
    """What a person can do.

    Attributes:
        title: Heading of the form.
        text: What it does, in a sentence or two.
        button: What sends the form.
        lead: Returns where doing it leads, and the arguments that undo it, if it can be undone.
        load: Returns what is in the fields before anybody fills them in, given the address.
        describe: Returns what it is done to, for people.
        run: Does it, and returns the answer.
        overtake: Returns how to go on if somebody else was quicker; `None` if that is not why it failed.
    """

    title: str
    text: str
    button: str
    fields: tuple[Field, ...]
    lead: Lead
    load: Callable[[Visit, Given], Awaitable[Given]] | None = None
    describe: Callable[[Visit, Given], Awaitable[str]] | None = None
    run: Callable[[Visit, str, Mapping[str, object]], Awaitable[Answer]] = _run
    overtake: Callable[[Visit, Given, errors.RefdeskError], Awaitable[Overtaken | None]] | None = None
    is_grave: bool = False


def _note(id: object) -> str:
    return f"/console/read/get_knowledge?{urlencode({'id': id})}"


def _skill(id: object) -> str:
    return f"/console/read/get_skill?{urlencode({'skill_id': id})}"


def _find_page(given: Given) -> str:
    return _skill(given["id"]) if given["toolset"] == "skills" else _note(given["id"])


async def _load_note(visit: Visit, given: Given) -> Given:
    note = await visit.ask("get_knowledge", {"id": given.get("id", "")})
    return {
        "title": note["title"],
        "body": note["body"],
        "tags": ", ".join(note["tags"]),
        "confidence": str(note["confidence"]),
        "expiresAt": note.get("expiresAt", ""),
    }


async def _overtake_edit(visit: Visit, given: Given, error: errors.RefdeskError) -> Overtaken | None:
    """Let a text based on an older version replace the one that holds now, once its writer knows about that."""
    head = (error.details or {}).get("headId") if isinstance(error, errors.ConflictError) else None
    if head is None:
        return None
    now = await visit.ask(notes.GET_KNOWLEDGE, {"id": head})
    meanwhile = {"by": now["author"], "at": now["createdAt"], "compared": await notes.compare(visit, now, given["id"])}
    return Overtaken({**given, "id": now["id"]}, meanwhile)


async def _edit(visit: Visit, operation: str, arguments: Mapping[str, object]) -> Answer:
    """Edit as the form says: without a date the entry does not expire, whatever the version before said."""
    return await visit.ask(operation, {"neverExpires": "expiresAt" not in arguments, **arguments})


def _lead_restored(given: Given, answer: Answer) -> tuple[str, dict[str, str] | None]:
    """Lead to the entry. Withdrawing it undoes this; if this undid an edit, restoring that edit undoes it."""
    edit = answer.get("withdrawnEdit")
    return _note(given["id"]), {"id": edit, UNDOING: "restore_knowledge"} if edit else {"id": given["id"]}


async def _name_note(visit: Visit, given: Given) -> str:
    """Return the title of the entry; empty if it cannot be read, for example because it was withdrawn."""
    id = given.get("id") or given.get("oldId") or ""
    try:
        return (await visit.ask("get_knowledge", {"id": id}))["title"] if visit.may("get_knowledge") else ""
    except errors.CallerError:
        return ""


async def _name_skill(visit: Visit, given: Given) -> str:
    try:
        return (await visit.ask("get_skill", {"skill_id": given.get("skill_id", "")}))["title"]
    except errors.CallerError:
        return ""


async def _name_impact(visit: Visit, given: Given) -> str:
    """Return both titles, of what may rely on an announcement and of that, since the form asks whether it does."""
    skill, note = {"skill_id": given.get("id", "")}, {"id": given.get("id", "")}
    name = await (_name_skill(visit, skill) if given.get("toolset") == "skills" else _name_note(visit, note))
    update = {"id": given.get("announcement", ""), "detail": "concise"}
    found = (await visit.ask("search_azure_updates", update))["results"] if visit.may("search_azure_updates") else ()
    return " – ".join(filter(None, (name, *(each["title"] for each in found))))


async def _name_case(visit: Visit, given: Given) -> str:
    names = [await _name_note(visit, {"id": given.get(field, "")}) for field in ("oneId", "otherId")]
    return " – ".join(filter(None, names))


async def _name_gap(visit: Visit, given: Given) -> str:
    """Return the question of a gap, whatever its state; empty if there is none with that id."""
    found = (await visit.ask("list_gaps", {"status": "all", "limit": MOST_GAPS}))["gaps"]
    return next((each["question"] for each in found if each["id"] == given.get("id")), "")


async def _offer_skills(visit: Visit, given: Given) -> list[tuple[str, str]]:
    """Return the skills that another one may be merged with."""
    found = (await visit.ask("list_skills", {"limit": MOST_OFFERED}))["skills"]
    return [(each["skill_id"], each["title"]) for each in found if each["skill_id"] != given.get("skill_id")]


async def _offer_syncs(visit: Visit, _: Given) -> list[tuple[str, str]]:
    return [(each["toolset"], each["toolset"]) for each in (await visit.ask("show_syncs"))["syncs"]]


async def _begin(visit: Visit, operation: str, arguments: Mapping[str, object]) -> Answer:
    """Begin something slow, and return when it is done or the page has waited long enough; it goes on either way."""
    group = visit.site.desk.questions
    if group is None:
        return await visit.ask(operation, arguments)
    done, failed = anyio.Event(), list[errors.RefdeskError]()

    async def work() -> None:
        try:
            await visit.ask(operation, arguments)
        except errors.RefdeskError as error:
            failed.append(error)
        finally:
            done.set()

    group.start_soon(work)
    with anyio.move_on_after(WAIT_SECONDS):
        await done.wait()
    if failed:
        raise failed[0]
    return {}


async def _name_watch(visit: Visit, given: Given) -> str:
    """Return what one of the person's watches is about; empty if there is none with that id."""
    found = (await visit.ask("list_watches", {"limit": MOST_OFFERED}))["watches"]
    return next((each.get("label") or each["subject"] for each in found if each["id"] == given.get("id")), "")


async def _offer_pauses(_visit: Visit, _given: Given) -> list[tuple[str, str]]:
    return [("true", "is paused"), ("false", "tells again")]


_TOKEN = Field("clientToken", "", "token")
_ENTRY = (
    Field("title", "Title", hint="In one line; it weighs most in search."),
    Field("body", "Text", "text", hint="Markdown.", rows=16),
    Field("tags", "Tags", "words", hint="Separated by commas.", may_be_empty=True),
    Field("confidence", "Confidence, in percent", "number"),
    Field("expiresAt", "Holds until", "when", hint="Such as 2027-03-31T12:00:00Z; empty where it does not expire."),
    _TOKEN,
)
_ID, _SKILL_ID = Field("id", "", "hidden"), Field("skill_id", "", "hidden")
_CONVERSATION = Field(
    "conversation",
    "Conversation",
    "text",
    hint="Lines that begin Customer: and Agent:. Personal data is masked.",
    rows=16,
)
_OUTCOMES = {
    "resolved": "It solved the problem",
    "likely_resolved": "It probably solved it",
    "likely_failed": "It probably did not",
    "failed": "It did not solve it",
}

_VERDICTS = {
    "confirm": "Yes, it has to be updated",
    "dismiss": "No, it does not rely on that",
    "reopen": "Leave it open",
}

_WATCHED = {
    "search": "New matches of a question",
    "product": "Announcements about a product",
    "entry": "Changes to an entry",
    "skill": "Changes to a skill",
}

_LEAST = {"strong": "Strongly", "partial": "At least partly"}

_CASE_VERDICTS = {
    "both_hold": "Both hold, each for others",
    "dismiss": "They do not contradict",
    "reopen": "Leave it open",
}

_GAP_VERDICTS = {
    "dismiss": "Nobody needs an answer",
    "answer": "Something answers it",
    "reopen": "Leave it open",
}

ACTS: Mapping[str, Act] = {
    "store_knowledge": Act(
        "New entry",
        "Agents and people of your org find it at once.",
        "Store",
        _ENTRY,
        lambda _, answer: (_note(answer["id"]), {"id": answer["id"]}),
    ),
    "edit_knowledge": Act(
        "Edit",
        "Your text becomes a new version, which holds from now on. The present one is kept in its history.",
        "Store the new version",
        (_ID, *_ENTRY),
        lambda given, answer: (_note(answer["id"]), {"id": given["id"]}),
        load=_load_note,
        run=_edit,
        overtake=_overtake_edit,
    ),
    "supersede_knowledge": Act(
        "Replace by another entry",
        "The other entry holds instead. Searches in the words of this one find the other.",
        "Replace",
        (Field("oldId", "", "hidden"), Field("newId", "Id of the entry that holds instead")),
        lambda given, answer: (_note(answer["newId"]), {"id": given["oldId"]}),
        describe=_name_note,
    ),
    "withdraw_knowledge": Act(
        "Withdraw this entry?",
        "No search finds it any more. It is kept, and can be restored.",
        "Withdraw",
        (_ID,),
        lambda given, _: ("/console/browse/knowledge", {"id": given["id"]}),
        describe=_name_note,
        is_grave=True,
    ),
    "restore_knowledge": Act(
        "Restore this entry?",
        "It holds again, whether it was withdrawn or superseded. A later version that an edit made is withdrawn.",
        "Restore",
        (_ID,),
        _lead_restored,
        describe=_name_note,
    ),
    "create_skill": Act(
        "Learn from a conversation",
        "A support conversation becomes a playbook, or joins the one that it is about.",
        "Learn",
        (_CONVERSATION, Field("resolution_confirmed", "The customer confirmed the resolution", "check"), _TOKEN),
        lambda _, answer: (_skill(answer["skill_id"]), None),
    ),
    "update_skill": Act(
        "Refine this skill",
        "It learns from one more conversation about the same problem.",
        "Refine",
        (_SKILL_ID, _CONVERSATION, Field("feedback", "What was right or wrong about the skill", "text"), _TOKEN),
        lambda given, _: (_skill(given["skill_id"]), None),
        describe=_name_skill,
    ),
    "report_outcome": Act(
        "How did it go?",
        "Your report moves the confidence of the skill; steps that fail give way to those that work.",
        "Report",
        (
            _SKILL_ID,
            Field("outcome", "Outcome", "choice", words=_OUTCOMES),
            Field("evidence", "What shows it", "text", hint="Such as the customer's words. Personal data is masked."),
            _TOKEN,
        ),
        lambda given, answer: (
            _skill(given["skill_id"]),
            {"skill_id": given["skill_id"], "report_id": answer["report_id"]},
        ),
        describe=_name_skill,
    ),
    "withdraw_outcome": Act(
        "Take your report back?",
        "What it did to the skill is undone.",
        "Take back",
        (_SKILL_ID, Field("report_id", "", "hidden")),
        lambda given, _: (_skill(given["skill_id"]), None),
        describe=_name_skill,
    ),
    "merge_skills": Act(
        "Merge with another skill",
        "This skill learns from the conversations of the other one, which is withdrawn.",
        "Merge",
        (_SKILL_ID, Field("other_id", "The other skill", "choice", offer=_offer_skills)),
        lambda given, _: (_skill(given["skill_id"]), {"skill_id": given["other_id"]}),
        describe=_name_skill,
        is_grave=True,
    ),
    "unmerge_skills": Act(
        "Undo this merge?",
        "The skill that was merged is one of its own again, with its conversations.",
        "Undo the merge",
        (_SKILL_ID,),
        lambda given, _: (_skill(given["skill_id"]), None),
    ),
    "judge_impact": Act(
        "Does it rely on what changes?",
        "Your org's judgements are remembered, and make later findings more accurate.",
        "Judge",
        (
            Field("announcement", "", "hidden"),
            Field("toolset", "", "hidden"),
            _ID,
            Field("verdict", "Judgement", "choice", words=_VERDICTS),
            Field("reason", "Why", hint="For others; may be empty."),
        ),
        lambda given, _: (_find_page(given), None),
        describe=_name_impact,
    ),
    "settle_case": Act(
        "Do they contradict each other?",
        "Both may hold, each for others: say for whom. Where one does not hold any more, replace it instead.",
        "Settle",
        (
            Field("oneId", "", "hidden"),
            Field("otherId", "", "hidden"),
            Field("verdict", "Judgement", "choice", words=_CASE_VERDICTS),
            Field("reason", "Why", hint="For whom which holds, or why they do not contradict; may be empty."),
        ),
        lambda given, _: (_note(given["oneId"]), None),
        describe=_name_case,
    ),
    "judge_gap": Act(
        "What should happen with this gap?",
        "Dismissed, nobody is asked for an answer. To name one, give what keeps it and its id.",
        "Judge",
        (
            _ID,
            Field("verdict", "Judgement", "choice", words=_GAP_VERDICTS),
            Field("toolset", "Answered by what this toolset keeps", hint="Only with an answer, such as knowledge."),
            Field("answerId", "Its id", hint="Only with an answer."),
            Field("reason", "Why", hint="For others; may be empty."),
        ),
        lambda _given, _answer: ("/console/gaps", None),
        describe=_name_gap,
    ),
    "create_watch": Act(
        "New watch",
        "Whatever is new is reported once, on the page Watches and by list_news.",
        "Watch",
        (
            Field("kind", "What", "choice", words=_WATCHED),
            Field("subject", "Which", hint="The question, the product's name, or the id of the entry or skill."),
            Field("label", "Your name for it", hint="May be empty."),
            Field("toolsets", "Only in", "words", hint="Of a question or product: toolsets, separated by commas."),
            Field("tags", "Only with all of these tags", "words", hint="Of a question or product."),
            Field("match", "How well an entry must match the question", "choice", words=_LEAST),
        ),
        lambda _, answer: (WATCHES, {"id": answer["id"]} if answer["created"] else None),
    ),
    "pause_watch": Act(
        "Pause or resume this watch?",
        "A paused watch reports nothing, and what happens meanwhile is not reported later.",
        "Do it",
        (_ID, Field("paused", "Then it", "choice", offer=_offer_pauses)),
        lambda given, answer: (WATCHES, {"id": given["id"], "paused": str(not answer["paused"]).lower()}),
        describe=_name_watch,
    ),
    "delete_watch": Act(
        "Remove this watch?",
        "It reports nothing any more. What it has reported stays.",
        "Remove",
        (_ID,),
        lambda _given, _answer: (WATCHES, None),
        describe=_name_watch,
        is_grave=True,
    ),
    "retry_embeddings": Act(
        "Retry embeddings?",
        "Everything that could not be embedded is tried again at once.",
        "Retry",
        (),
        lambda _given, _answer: ("/console/desk", None),
    ),
    "sync_toolset": Act(
        "Sync now",
        "The source is asked for what is new, or for everything.",
        "Sync",
        (Field("toolset", "Toolset", "choice", offer=_offer_syncs), Field("full", "Compare everything", "check")),
        lambda _given, _answer: ("/console/desk", None),
        run=_begin,
    ),
}
"""The acts, by operation."""
