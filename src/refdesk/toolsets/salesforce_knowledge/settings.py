"""The settings of salesforce-knowledge, and how the org is reached according to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, Field, SecretStr, ValidationError

from refdesk.errors import ConfigurationError
from refdesk.kit.settings import Names, UserPath

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings


class SalesforceKnowledgeSettings(BaseModel):
    """Which Salesforce org, as whom, and how patiently."""

    salesforce_instance_url: str | None = Field(
        None, description="My Domain address of the Salesforce org whose articles are served; without it none are."
    )
    salesforce_orgs: UserPath | None = Field(
        None, description="A TOML file of further Salesforce orgs, a table for each by its name, asked with the first."
    )
    salesforce_client_id: str | None = Field(None, description="Consumer key of the app that signs in to Salesforce.")
    salesforce_client_secret: SecretStr | None = Field(None, description="Consumer secret of that app.")
    salesforce_username: str | None = Field(
        None, description="The Salesforce user that a signed assertion (JWT bearer) signs in as."
    )
    salesforce_private_key_file: UserPath | None = Field(
        None, description="The RSA key in PEM that signs the assertion; the app has its certificate."
    )
    salesforce_access_token: SecretStr | None = Field(
        None,
        description="A Salesforce session, used as it is until it expires; goes before the other ways.",
    )
    salesforce_body_fields: Names = Field(
        (), description="API names of the fields with an article's text, separated by commas. Default: found by itself."
    )
    salesforce_api_version: str | None = Field(
        None, description="Which version of the Salesforce API is spoken, such as v68.0. Default: the org's newest."
    )
    salesforce_language: str = Field(
        "en_US",
        description="Language of articles where a search names none, such as de; org: the org's own.",
    )
    salesforce_user_sessions: Literal["accepted", "required"] = Field(
        "accepted",
        description="Whether a request may or must carry the Salesforce session of its user (X-Salesforce-Token).",
    )
    salesforce_timeout_seconds: float = Field(
        15.0, gt=0, le=300, description="How long one question to Salesforce may take, in seconds."
    )


def to_salesforce(settings: SalesforceKnowledgeSettings) -> SalesforceSettings:
    """Return how the Salesforce org is reached.

    Raises:
        ConfigurationError: A setting is missing or malformed.
    """
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings

    secret, token = settings.salesforce_client_secret, settings.salesforce_access_token
    return SalesforceSettings(
        instance_url=settings.salesforce_instance_url or "",
        client_id=settings.salesforce_client_id,
        client_secret=secret.get_secret_value() if secret else None,
        username=settings.salesforce_username,
        private_key_file=settings.salesforce_private_key_file,
        access_token=token.get_secret_value() if token else None,
        body_fields=settings.salesforce_body_fields,
        api_version=settings.salesforce_api_version,
        language=settings.salesforce_language,
        needs_session=settings.salesforce_user_sessions == "required",
        timeout_seconds=settings.salesforce_timeout_seconds,
    )


def list_orgs(settings: SalesforceKnowledgeSettings) -> dict[str, SalesforceSettings]:
    """Return how each org is reached, by name: that of the variables, called `main`, then those of the file.

    A table of the file has `instance_url` and a way to sign in, by the names of the variables without their prefix.

    Raises:
        ConfigurationError: A setting is missing or malformed, or the file cannot be read.
    """
    orgs = {"main": to_salesforce(settings)} if settings.salesforce_instance_url is not None else {}
    if settings.salesforce_orgs is None:
        return orgs or {"main": to_salesforce(settings)}
    for name, table in _read_orgs(settings.salesforce_orgs).items():
        own = {f"salesforce_{key}": value for key, value in table.items()}
        try:
            read = SalesforceKnowledgeSettings.model_validate({**_share(settings), **own})
            orgs[name] = to_salesforce(read)
        except (ValidationError, ConfigurationError) as error:
            reason = error.message if isinstance(error, ConfigurationError) else "a value has the wrong form"
            raise ConfigurationError(f"Check the table {name} of REFDESK_SALESFORCE_ORGS: {reason}") from None
    return orgs


def _share(settings: SalesforceKnowledgeSettings) -> dict[str, object]:
    names = ("salesforce_timeout_seconds", "salesforce_user_sessions")
    return {name: getattr(settings, name) for name in names}


def _read_orgs(path: Path) -> dict[str, dict[str, object]]:
    import tomllib

    try:
        tables = cast("dict[str, object]", tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, ValueError):
        raise ConfigurationError("REFDESK_SALESFORCE_ORGS is no TOML file that can be read: check its path.") from None
    if not tables or not all(_NAME.fullmatch(name) and isinstance(table, dict) for name, table in tables.items()):
        raise ConfigurationError(
            "REFDESK_SALESFORCE_ORGS must hold a table for each org, named in small letters, digits and dashes: [emea]."
        )
    return cast("dict[str, dict[str, object]]", tables)


_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
