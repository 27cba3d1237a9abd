"""What schemathesis is told of refdesk beyond the OpenAPI document; it loads this module into its own process.

Valid data may be refused only for a reason that JSON Schema has no words for, and each of those is listed here.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.failures import Failure

REASONS = {
    "what engines disagree about": r"holds a NUL character|holds half a surrogate pair|is a date beyond",
    "two fields that contradict each other": r"is after dateTo|is after until|^Give expiresAt or neverExpires",
    "what was handed out before": r"The cursor is none|The end to expect is NUMBER:DIGEST",
    "what narrows a search alone": r"^toolsets and tags narrow",
    "what this server has": r"No toolset .* has a (store of its own|source to be synced)|There is no version \d+ yet",
    "what can be watched here": r"^No toolset of that name",
    "where webhooks may be": r"^A webhook ",
    "what was done before": r"was not merged into another one|^Nothing would change",
    "what only the clock knows": r"must be in the future",
    "what is normalised first": r"holds a tag (that is not made of words|longer than)|different tags",
    "a size in characters of JSON": r"is too long: at most \d+ characters as JSON",
    "a file in a format of its own": r"^(The file|Line|line \d+|The first line)",
    "a text that says nothing": r"The conversation teaches nothing|conversation holds no words",
    "blanks, of which Unicode has more": r"is blank: it needs",
    "days, of which calendars have fewer": r"is (neither a day nor an|no) instant|is no day|in no calendar|the years",
    "what Salesforce can search for": r"needs at least two letters or digits|is no language as|no Salesforce id",
}
REFUSED = re.compile("|".join(REASONS.values()))
KNOWN: dict[str, dict[str, dict[str, Any]]] = json.loads(os.environ.get("REFDESK_KNOWN", "{}"))
"""By operation, what valid calls name in the address and the body: things that there are."""


class RefusedWithoutReason(Failure):
    """Data that the document allows was refused."""

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(operation=operation, title="Valid data refused without a listed reason", message=message)


@schemathesis.check
def valid_data_is_refused_for_listed_reasons(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    text = read_message(response)
    if not REFUSED.search(text):
        raise RefusedWithoutReason(case.operation.label, text)


def read_message(response: Response) -> str:
    answer = response.json()
    error = answer["error"]
    return str(answer["detail"] if isinstance(error, str) else error["message"])


@schemathesis.hook  # pyright: ignore[reportUnknownMemberType] - it takes any function
def before_call(ctx: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    known = KNOWN.get(str(case.operation.definition.raw.get("operationId")))
    if known is None or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "path" in known:
        case.path_parameters = {**(case.path_parameters or {}), **known["path"]}
    if "instead" in known:
        case.body = known["instead"]
    elif "body" in known and isinstance(case.body, dict):
        case.body = {**case.body, **known["body"]}
