"""Forms that do something: each runs an operation of the table `ACTS` as the person who sends the form.

A form is shown at an address (`GET`) and does nothing until it is sent (`POST`) from a page of this server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urlsplit
from uuid import NAMESPACE_OID, uuid4, uuid5

from starlette.responses import RedirectResponse

from refdesk import errors
from refdesk.server import calls, json_types
from refdesk.server.console.acts import ACTS, Act, Field
from refdesk.server.console.notices import write_notice
from refdesk.server.replies import status_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from refdesk.core.operations import Operation
    from refdesk.server.console.visits import Visit

SENDER = "sender"
"""The field of every form that says who opened it: another tab may have signed somebody else in since."""

MOST_FIELDS = 40
MOST_FIELD_BYTES = 8 * 1024 * 1024
"""Most bytes of one field; the gate lets no larger request through anyway."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A field with what is in it.

    Attributes:
        value: As text, the way a form has it.
        schema: That of the operation's argument.
        options: What may be chosen, with labels.
    """

    field: Field
    value: str
    schema: Mapping[str, Any]
    is_required: bool
    options: list[tuple[str, str]]


async def show_or_do(visit: Visit) -> Response:
    """Show a form, or do what was sent with it."""
    act, operation = _find_act(visit)
    if visit.request.method == "GET":
        visit.caller.require_operation(operation)
        known = await act.load(visit, visit.query) if act.load is not None else dict[str, str]()
        given = {field.name: value for field in act.fields if (value := visit.query.get(field.name)) is not None}
        return await _show_form(visit, act, operation, {**known, **given})
    require_own_page(visit)
    given, opened_by = await _read_sent(visit, act)
    if opened_by and opened_by != _name_sender(visit):
        return await _show_form(visit, act, operation, given, opened_by=opened_by)
    try:
        visit.caller.require_operation(operation)
        answer = await act.run(visit, operation.name, _read_form(act, operation, given))
    except errors.RefdeskError as error:
        overtaken = await act.overtake(visit, given, error) if act.overtake is not None else None
        if overtaken is not None:
            return await _show_form(visit, act, operation, overtaken.given, meanwhile=overtaken.meanwhile)
        return await _show_form(visit, act, operation, given, error)
    address, undo = act.lead(given, answer)
    return RedirectResponse(_add(address, write_notice(operation.name, undo)), 303)


async def keep(visit: Visit) -> Response:
    """Show a form as filled in by somebody who is no longer signed in, to be sent once more; do nothing else."""
    act, operation = _find_act(visit)
    require_own_page(visit)
    given, opened_by = await _read_sent(visit, act)
    return await _show_form(visit, act, operation, given, opened_by=opened_by, is_signed_out=True)


def _find_act(visit: Visit) -> tuple[Act, Operation]:
    name = visit.request.path_params["operation"]
    act, operation = ACTS.get(name), visit.site.find_operation(name)
    if act is None or operation is None:
        raise errors.NotFoundError("This server has no such form.")
    return act, operation


async def _read_sent(visit: Visit, act: Act) -> tuple[dict[str, str], str]:
    """Return what a form was filled in with, and who opened it; empty if it does not say."""
    sent = await visit.request.form(max_fields=MOST_FIELDS, max_files=0, max_part_size=MOST_FIELD_BYTES)
    given = {field.name: str(sent.get(field.name, "")).replace("\r\n", "\n") for field in act.fields}
    return given, str(sent.get(SENDER, ""))


def _name_sender(visit: Visit) -> str:
    principal = visit.caller.principal
    return f"{principal.agent} of {principal.org}"


def require_own_page(visit: Visit) -> None:
    """Check that a form was sent from a page of this server.

    Browsers say where a form comes from, and no page can make them say otherwise.

    Raises:
        PermissionDeniedError: It was sent from elsewhere, or its origin is not stated.
    """
    headers = visit.request.headers
    origin = headers.get("origin")
    own = origin is not None and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    if not own and headers.get("sec-fetch-site") != "same-origin":
        raise errors.PermissionDeniedError("Forms are taken from this server's own pages alone.")


async def _show_form(
    visit: Visit,
    act: Act,
    operation: Operation,
    given: Mapping[str, str],
    error: errors.RefdeskError | None = None,
    meanwhile: Mapping[str, Any] | None = None,
    *,
    opened_by: str = "",
    is_signed_out: bool = False,
) -> Response:
    """Return the page of a form that is filled in.

    Args:
        visit: Whose it is.
        act: What it does.
        operation: The operation that does it.
        given: What is in the fields.
        error: Why it was not done.
        meanwhile: What somebody else did, if it was not done because of that.
        opened_by: Who opened it, if it was not done because of that.
        is_signed_out: Whether it was not done because nobody is signed in; then no operation can be asked.
    """
    subject = await act.describe(visit, given) if act.describe is not None and not is_signed_out else ""
    values = {
        "act": act,
        "name": operation.name,
        "fields": [await _fill(visit, operation, field, given, asks=not is_signed_out) for field in act.fields],
        "subject": subject,
        "error": error,
        "meanwhile": meanwhile,
        "is_signed_out": is_signed_out,
        "opened_by": opened_by,
        "sender": opened_by if is_signed_out else _name_sender(visit),
        "back": _find_back(visit),
    }
    is_overtaken = meanwhile is not None or (opened_by and not is_signed_out)
    status = status_of(error) if error is not None else 409 if is_overtaken else 200
    return visit.show("form.html", values, status)


async def _fill(visit: Visit, operation: Operation, field: Field, given: Mapping[str, str], *, asks: bool) -> Filled:
    schema = _get_schema(operation)
    own = schema["properties"].get(field.name, {})
    value = given.get(field.name, "")
    if field.kind == "token" and not value:
        value = str(uuid4())
    elif not value and field.name not in given and own.get("default") is not None:
        value = _write(own["default"])
    options = [(str(each), field.words.get(str(each), str(each))) for each in own.get("enum", ())]
    if field.offer is not None:
        options = await field.offer(visit, given) if asks else [(value, value)]
    return Filled(field, value, own, field.name in schema.get("required", ()), options)


def _get_schema(operation: Operation) -> Mapping[str, Any]:
    return calls.get_schema(operation.input)


def _write(default: object) -> str:
    if isinstance(default, list):
        return ", ".join(str(each) for each in cast("list[object]", default))
    return "" if default is False else str(default)


def _read_form(act: Act, operation: Operation, given: Mapping[str, str]) -> dict[str, object]:
    """Return the arguments that a form was filled in with; empty fields are left out, unless they may be empty."""
    properties = _get_schema(operation)["properties"]
    arguments: dict[str, object] = {}
    for field in act.fields:
        text = given.get(field.name, "").strip() if field.kind != "text" else given.get(field.name, "")
        if field.kind == "words":
            words = [word.strip() for word in text.split(",") if word.strip()]
            if words or field.may_be_empty:
                arguments[field.name] = words
        elif field.kind == "token" and text:
            arguments[field.name] = _make_token(given)
        elif field.kind == "check":
            arguments[field.name] = bool(text)
        elif text:
            arguments[field.name] = json_types.read_text(text, properties.get(field.name, {}))
    return arguments


def _make_token(given: Mapping[str, str]) -> str:
    """Return the idempotency token of a form: the same for the same form filled in alike, another once it is changed.

    Whoever goes back to a form that was sent finds it with its old token, and may write something else into it.
    """
    return str(uuid5(NAMESPACE_OID, json.dumps(given, sort_keys=True)))


def _find_back(visit: Visit) -> str:
    """Return where the person came from if that is a page of the console; else its start page."""
    referrer = urlsplit(visit.request.headers.get("referer", ""))
    is_own = referrer.netloc.lower() == visit.request.headers.get("host", "").lower()
    path = referrer.path.removeprefix(visit.site.prefix)
    is_page = path.startswith("/console/") and not path.startswith("/console/do/")
    return f"{path}?{referrer.query}" if is_own and is_page else "/"


def _add(address: str, query: str) -> str:
    base, hash, anchor = address.partition("#")
    return f"{base}{'&' if '?' in base else '?'}{query}{hash}{anchor}"


def link(act: str, **arguments: str) -> str:
    """Return the address of a form, with what is known for its fields."""
    return f"/console/do/{act}?{urlencode(arguments)}"
