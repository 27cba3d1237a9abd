"""Structured output of hosted models: the JSON Schema that is requested and the validation of the answer."""

from __future__ import annotations

from typing import Any

import regex
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refdesk.playbooks import Playbook, Refinement, Removal, SkillDraft, Step

MAX_ITEMS = 200
MAX_TEXT = 8000

_FENCE = regex.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", regex.DOTALL)


class UnusableAnswerError(ValueError):
    """The answer violates the schema; the message says how and may be shown to the model."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", str_max_length=MAX_TEXT)


class _Step(_Answer):
    do: str = Field(min_length=1)
    check: str
    say: str


class Extraction(_Answer):
    """A skill, as a model answers it."""

    title: str = Field(min_length=1)
    problem: str = Field(min_length=1)
    conditions: list[str] = Field(max_length=MAX_ITEMS)
    keywords: list[str] = Field(max_length=MAX_ITEMS)
    goal: str
    prerequisites: list[str] = Field(max_length=MAX_ITEMS)
    steps: list[_Step] = Field(min_length=1, max_length=MAX_ITEMS)
    edge_cases: list[str] = Field(max_length=MAX_ITEMS)
    escalation: str
    product_area: str
    issue_type: str

    def to_draft(self) -> SkillDraft:
        """Return the skill."""
        return SkillDraft(
            title=self.title,
            problem=self.problem,
            playbook=Playbook(
                goal=self.goal,
                prerequisites=tuple(self.prerequisites),
                steps=tuple(Step(step.do, step.check, step.say) for step in self.steps),
                edge_cases=tuple(self.edge_cases),
                escalation=self.escalation,
            ),
            conditions=tuple(self.conditions),
            keywords=tuple(self.keywords),
            product_area=self.product_area,
            issue_type=self.issue_type,
        )


class _Removal(_Answer):
    item: str
    quote: str


class RefinementAnswer(Extraction):
    """A refined skill, as a model answers it."""

    changes: list[str] = Field(max_length=MAX_ITEMS)
    removals: list[_Removal] = Field(max_length=MAX_ITEMS)

    def to_refinement(self) -> Refinement:
        """Return the refinement."""
        removals = tuple(Removal(removal.item, removal.quote) for removal in self.removals)
        return Refinement(self.to_draft(), tuple(self.changes), removals)


def parse(text: str, form: type[Extraction]) -> Extraction:
    """Return a model's answer, with or without a code fence around it.

    Raises:
        UnusableAnswerError: It is not JSON, or not of that form.
    """
    fenced = _FENCE.match(text)
    try:
        return form.model_validate_json(fenced[1] if fenced else text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UnusableAnswerError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def get_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a form in the subset that every service takes: all required, no refs, no limits."""
    schema = form.model_json_schema()
    return _simplify(schema, schema.get("$defs", {}))


def _simplify(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _simplify(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if schema["type"] == "object":
        properties = {name: _simplify(value, definitions) for name, value in schema["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    if schema["type"] == "array":
        return {"type": "array", "items": _simplify(schema["items"], definitions)}
    return {"type": schema["type"]}
