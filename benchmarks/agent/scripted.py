"""An agent without a model: it follows the recipes of the server's instructions to the letter, and knows nothing else.

What it understands, any reader would: a recipe names tools in turn, a bracket says how to call one, another recipe's
name stands for its steps. Arguments get their values by their names: from what the person said, or from the answer that
had such an id. When a tool's description says which tool is next where an answer has a field, that is called; when an
answer or an error says what to send instead, that is sent. So a task fails when the server does not say how it is done.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from refdesk.server.answers import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import Tool

    from benchmarks.agent.session import Answer
    from benchmarks.agent.tasks import Task

_LINE = re.compile(r"^- ([a-z-]+): (.*)$", re.MULTILINE)
_RECIPE = re.compile(r"([A-Z][a-z ]+): ([^.]+)\.")
_STEP = re.compile(r"([\w ]+?)(?:\((.*)\))?")
_INSTEAD = re.compile(r"`(\w+)`[^.]*?such as (-?\d+(?:\.\d+)?)")
_NEXT = "`read`"
LISTS = ("results", "matches", "articles")
"""Where answers have what was found, best first."""

UNSAID = frozenset({"query", "chain", "links"})
"""What is no part of an answer to a person: the question, and what else an entry has to do with."""


class UnknownRecipeError(LookupError):
    """The instructions have no recipe for what is to be done, or it names a tool that is not offered."""


class Desk(Protocol):
    """What the agent meets: what it is told, and what it may call."""

    @property
    def instructions(self) -> str:
        """What the server says of itself."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Those that are offered, by name."""
        ...

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool and return what the agent reads."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A call that a recipe names, with the arguments that it names; those without a value are taken as they come."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


def read_recipes(instructions: str) -> dict[str, str]:
    """Return the recipes of instructions, by toolset and name."""
    return {
        f"{line[1]}: {recipe[1]}": recipe[2]
        for line in _LINE.finditer(instructions)
        for recipe in _RECIPE.finditer(line[2])
    }


def read_steps(recipes: dict[str, str], name: str) -> list[Step]:
    """Return the steps of a recipe.

    Raises:
        UnknownRecipeError: There is none of this name.
    """
    if name not in recipes:
        raise UnknownRecipeError(f"The instructions have no recipe {name!r}.")
    steps: list[Step] = []
    toolset = name.partition(":")[0]
    for part in recipes[name].split(" → "):
        found = _STEP.fullmatch(part.strip())
        if _NEXT in part:
            steps.append(Step(_NEXT))
        elif found is not None and f"{toolset}: {found[1]}" in recipes:
            steps += read_steps(recipes, f"{toolset}: {found[1]}")
        elif found is not None:
            steps.append(Step(found[1], _read_arguments(found[2] or "")))
    return steps


def _read_arguments(text: str) -> dict[str, Any]:
    pairs = (part.partition(":") for part in text.split(",") if part.strip())
    return {name.strip(): _read_value(value.strip()) for name, _, value in pairs}


def _read_value(text: str) -> object:
    """Return what a recipe writes behind an argument's name; what has only a name is to be set."""
    return json.loads(text) if text.isdecimal() else text or True


@dataclass(slots=True)
class ScriptedAgent:
    """One that does a task after the other."""

    session: Desk
    _known: dict[str, Any] = field(default_factory=dict[str, Any])
    _read: dict[str, Any] = field(default_factory=dict[str, Any])

    async def solve(self, task: Task) -> str:
        """Do a task and return the reply: the best that was found on the way, and what the desk answered last.

        Raises:
            UnknownRecipeError: The instructions do not say how.
        """
        recipes, self._known, self._read = read_recipes(self.session.instructions), dict(task.facts), {}
        steps, told = [step for name in task.recipes for step in read_steps(recipes, name)], list[str]()
        for place, step in enumerate(steps):
            answer = await self._take(step)
            told.append(_say(answer, whole=place == len(steps) - 1))
            if answer.is_error:
                break
        return "\n".join(told)

    async def _take(self, step: Step) -> Answer:
        if step.tool == _NEXT:
            step = Step(self._read["tool"], self._read["arguments"])
        if step.tool not in self.session.tools:
            raise UnknownRecipeError(f"A recipe names {step.tool!r}, which is not offered.")
        arguments = self._fill(step)
        answer = await self.session.call(step.tool, arguments)
        better = _mend(arguments, answer)
        if better is not None:
            answer = await self.session.call(step.tool, better)
        self._remember(answer)
        return await self._heed(step, answer)

    def _fill(self, step: Step) -> dict[str, Any]:
        """Return the arguments of a call: what the recipe says, what is known by their names, what is needed."""
        schema = self.session.tools[step.tool].input_schema
        fields = schema["properties"]
        if step.arguments.get("id") is True:
            return {"id": self._known["id"]}
        given = {name: value for name, value in step.arguments.items() if name in fields}
        wanted = [name for name in fields if name in self._known and name not in {"id", *given}]
        needed = [name for name in schema.get("required", ()) if name not in {*given, *wanted}]
        token = {"clientToken": str(uuid4())} if "clientToken" in fields else {}
        return {**given, **{name: self._known[name] for name in [*wanted, *needed]}, **token}

    def _remember(self, answer: Answer) -> None:
        """Keep what later calls need: the ids of the best that was found, or of what was made."""
        best, is_found = _get_best(answer), any(name in answer.value for name in LISTS)
        for name, into in (("id", "id"), ("skill_id", "skill_id"), ("report_id", "report_id"), ("version", "version")):
            if name in best:
                self._known[into] = best[name]
        if is_found and "id" in best:
            self._known |= {"oldId": best["id"], "article_id": best["id"]}
        elif "id" in best:
            self._known["newId"] = best["id"]
        self._read = best.get("read", {})

    async def _heed(self, step: Step, answer: Answer) -> Answer:
        """Call what the tool's description names where the answer has the field of the same sentence."""
        for sentence in re.split(r"(?<=[.;]) ", self.session.tools[step.tool].description or ""):
            for name in re.findall(r"`(\w+)`", sentence):
                following = next((tool for tool in self.session.tools if re.search(rf"\b{tool}\b", sentence)), None)
                if following is not None and answer.value.get(name):
                    return await self._take(Step(following))
        return answer


def _get_best(answer: Answer) -> dict[str, Any]:
    """Return the best of what was found; of an answer that lists nothing, the whole."""
    value = answer.value
    found = next((value[name] for name in LISTS if name in value), [value])
    return found[0] if found else {}


def _say(answer: Answer, *, whole: bool) -> str:
    """Return what of an answer is passed on: of what was found the best, or all of it; not what it was before."""
    value = answer.value if whole else _get_best(answer)
    return answer.text if answer.is_error else to_text({k: v for k, v in value.items() if k not in UNSAID})


def _mend(arguments: dict[str, Any], answer: Answer) -> dict[str, Any] | None:
    """Return what an answer says to send instead, or `None` where it says nothing of the kind."""
    if answer.is_error:
        found = _INSTEAD.search(answer.text)
        return {**arguments, found[1]: json.loads(found[2])} if found and found[1] in arguments else None
    unknown = [each for each in answer.value.get("unknownFilterValues", []) if each["didYouMean"]]
    if not unknown:
        return None
    text = json.dumps(arguments)
    for each in unknown:
        text = text.replace(json.dumps(each["value"]), json.dumps(each["didYouMean"][0]))
    return json.loads(text)
