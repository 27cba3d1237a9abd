"""The connection check of `refdesk doctor`: each step of connecting an org, in order, until one fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core.descriptors import Check
from refdesk.toolsets.salesforce_knowledge import rows, statements
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.failures import (
    KnowledgeDisabledError,
    RefusedError,
    UnreachableError,
    to_error,
)
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.objects import ObjectDescription

MOST_SHOWN = 8
CHECK_SECONDS = 30.0
"""The time limit for all steps together."""


_ADVICE = {
    "salesforce": "Check REFDESK_SALESFORCE_INSTANCE_URL: it is the My Domain address of the org. Check the network.",
    "sf sign-in": "Check the External Client App: id, secret or certificate, the flow enabled, the user approved.",
    "sf knowledge": "Let an administrator enable Knowledge, and give refdesk's user the right to view articles.",
    "sf articles": "Give refdesk's user read access to the article object and its fields.",
    "sf published": "Give refdesk's user the right to view published articles.",
}


async def check_connection(settings: SalesforceSettings) -> list[Check]:
    """Return the checks from the address to the first article; the first one that fails is the last.

    It costs five or six of the org's API requests, reads no article's text and changes nothing.
    """
    checks: list[Check] = []
    async with SalesforceSource(settings) as source:
        try:
            with anyio.fail_after(CHECK_SECONDS):
                await _look(source, checks.append)
        except TimeoutError:
            found = f"no answer within {CHECK_SECONDS:g} seconds"
            checks.append(Check(_STEPS[len(checks)], "fail", found, _ADVICE["salesforce"]))
        except (RefusedError, UnreachableError, errors.RefdeskError) as failure:
            error = failure if isinstance(failure, errors.RefdeskError) else to_error(failure)
            name = _STEPS[len(checks)]
            checks.append(Check(name, "fail", error.message, _ADVICE[name]))
    return checks


_STEPS = tuple(_ADVICE)


async def _look(source: SalesforceSource, note: Callable[[Check], None]) -> None:
    """Note one check for each of `_STEPS`, then those that only warn."""
    settings = source.client.settings
    if not await source.is_version_offered():
        raise RefusedError(404)
    await source.client.list_versions()
    version = await source.client.get_version()
    note(Check("salesforce", "ok", f"{settings.origin} answers and offers API {version}"))
    await source.client.sessions.get()
    note(Check("sf sign-in", "ok", f"signed in by {_name_grant(settings)}"))
    note(await _check_knowledge(source))
    described = await source.describe_articles()
    note(Check("sf articles", "ok", f"{described.name} can be read, {len(described.fields)} fields"))
    note(await _check_published(source))
    note(_check_body(settings, described))
    note(_check_usage(source))


def _name_grant(settings: SalesforceSettings) -> str:
    if settings.access_token:
        return "the given access token, which is not renewed when it expires"
    return "a signed assertion (JWT bearer)" if settings.has_key else "client id and secret"


async def _check_knowledge(source: SalesforceSource) -> Check:
    reply = await source.client.ask(Request("GET", "knowledgeManagement/settings"))
    if rows.get_field(reply.data, "knowledgeEnabled") is not True:
        raise KnowledgeDisabledError("Salesforce Knowledge is not enabled in this org.")
    listed = rows.get_items(rows.get_field(reply.data, "languages"))
    active = [rows.get_field(each, "name") for each in listed if rows.get_field(each, "active") is not False]
    names = ", ".join(sorted(name for name in active if isinstance(name, str))[:MOST_SHOWN])
    return Check("sf knowledge", "ok", f"Knowledge is enabled; languages: {names or 'not told'}")


async def _check_published(source: SalesforceSource) -> Check:
    reply = await source.client.ask(Request("GET", "query", query={"q": statements.build_sample_query()}))
    if rows.read_queried(reply.data):
        return Check("sf published", "ok", "published articles can be read")
    advice = "Publish an article, or give refdesk's user the right to see those there are."
    return Check("sf published", "warn", "no published article is visible to refdesk's user", advice)


def _check_body(settings: SalesforceSettings, described: ObjectDescription) -> Check:
    names = [field.name for field in described.choose_body_fields(settings.body_fields)]
    missing = [name for name in settings.body_fields if name not in described.fields]
    shown = ", ".join(names[:MOST_SHOWN]) + (", …" if len(names) > MOST_SHOWN else "")
    if missing:
        advice = "Correct REFDESK_SALESFORCE_BODY_FIELDS, or give refdesk's user the right to read these fields."
        found = f"body fields {shown or 'none'}; not visible: {', '.join(missing[:MOST_SHOWN])}"
        return Check("sf body", "warn", found, advice)
    if not names:
        advice = "Articles will be empty: give refdesk's user the right to read the fields that hold their text."
        return Check("sf body", "warn", "no field that holds an article's text is visible", advice)
    return Check("sf body", "ok", f"the text of articles is in {shown}")


def _check_usage(source: SalesforceSource) -> Check:
    usage = source.client.usage
    if usage is None:
        return Check("sf allowance", "ok", "Salesforce does not say how many API requests are left")
    found = f"{usage.used} of {usage.limit} API requests used in 24 hours"
    advice = "Ask an administrator for more, or find out what else uses them." if usage.is_high else ""
    return Check("sf allowance", "warn" if usage.is_high else "ok", found, advice)
