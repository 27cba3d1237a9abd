"""Asks a person for a choice if an answer needs one and the client can ask, in both protocol eras.

A call that needs a choice ends, without effect, before anybody is asked: it holds no resources meanwhile, and is
repeated with what was chosen. So no state is kept between the two rounds, and any replica may serve the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from refdesk.errors import Choice

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]

ANSWER_SECONDS = 600.0
"""How long a person may take to choose."""

IN_ONE_BODY = "refdesk.in_one_body"
"""The key in a request's scope that says whether it is answered in one body, where no question can precede the
answer."""

FIELD = "choice"
_FIRST_MODERN = "2026-07-28"
_FIRST_TITLED = "2025-11-25"
"""First revision in which options carry their titles; earlier ones list the names in `enumNames`."""


def can_ask(context: RequestContext) -> bool:
    """Return whether the client has declared that it can show people forms."""
    known = context.session.client_capabilities
    asked = known.elicitation if known is not None else None
    return asked is not None and (asked.form is not None or asked.url is None)


async def ask(
    context: RequestContext, params: types.CallToolRequestParams, choice: Choice
) -> str | types.InputRequiredResult | None:
    """Return what was chosen, `None` if nobody chose, or the question that the client is to ask.

    In the later era the client calls again with what was chosen.
    """
    request = _write(choice, context.protocol_version)
    if context.protocol_version < _FIRST_MODERN:
        return _read(choice, await _ask_now(context, request))
    key = "-".join((*choice.path, FIELD))
    answers = params.input_responses or {}
    if key not in answers:
        return types.InputRequiredResult(input_requests={key: types.ElicitRequest(params=request)})
    answer = answers[key]
    return _read(choice, answer if isinstance(answer, types.ElicitResult) else None)


async def _ask_now(context: RequestContext, request: types.ElicitRequestFormParams) -> types.ElicitResult | None:
    scope: object = getattr(context.request, "scope", None)
    if isinstance(scope, dict) and cast("dict[str, object]", scope).get(IN_ONE_BODY):
        return None
    try:
        with anyio.move_on_after(ANSWER_SECONDS):
            return await context.session.elicit_form(request.message, request.requested_schema, context.request_id)
    except (MCPError, ValidationError):
        # The client cannot ask after all, or answers otherwise than it should: the call ends as if nobody had chosen.
        return None
    return None


def _write(choice: Choice, version: str) -> types.ElicitRequestFormParams:
    values, words = [value for value, _ in choice.options], [words for _, words in choice.options]
    options: dict[str, Any] = {"enum": values, "enumNames": words}
    if version >= _FIRST_TITLED:
        options = {"oneOf": [{"const": value, "title": title} for value, title in choice.options]}
    field = {"type": "string", "title": choice.path[-1], **options}
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    return types.ElicitRequestFormParams(message=choice.question, requested_schema=schema)


def _read(choice: Choice, answer: types.ElicitResult | None) -> str | None:
    if answer is None or answer.action != "accept":
        return None
    chosen = (answer.content or {}).get(FIELD)
    return chosen if isinstance(chosen, str) and chosen in dict(choice.options) else None
