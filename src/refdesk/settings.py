"""The settings: one frozen tree, and the only reader of the environment.

Every setting is an environment variable that starts with `REFDESK_`; without any of them everything works, locally.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import quote

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from refdesk import errors

PREFIX = "REFDESK_"

EmbedderName: TypeAlias = Literal["local", "hashing", "gemini", "openai"]
LanguageModelName: TypeAlias = Literal["rules", "gemini", "openai"]
StdioEra: TypeAlias = Literal["auto", "legacy", "modern"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
Names: TypeAlias = Annotated[tuple[str, ...], NoDecode]

Quota: TypeAlias = Annotated[int, Field(ge=0)] | None

_URL = r"^https?://[^\s/]+"
_NAME = r"^[a-z0-9-]{1,64}$"


def _user_data_folder() -> Path:
    return platformdirs.user_data_path("refdesk", appauthor=False)


class Settings(BaseSettings):
    """What whoever runs refdesk can choose. Descriptions name the unit; secrets never show in logs or errors."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    home: Path = Field(
        default_factory=_user_data_folder,
        description="The data folder; made when it is first written to. Default: the platform's user data folder.",
    )
    store: SecretStr | None = Field(
        None,
        description="Where everything is kept, as a URL: `sqlite:///file`, `postgresql://…`, `neo4j://…` or "
        "`memory://`. Default: a file in the home.",
    )
    skills_store: SecretStr | None = Field(
        None, description="Where skills are kept if not with everything else, as a URL like the store's."
    )
    redis: SecretStr | None = Field(
        None, description="Redis, as a URL: hands embedding to workers, and shares tokens and limits between servers."
    )
    org: str = Field("local", pattern=_NAME, description="The org that callers without a key belong to.")
    agent: str | None = Field(
        None, pattern=r"^[^\x00-\x1f]{1,64}$", description="The agent that callers over stdio are; default: their name."
    )

    knowledge_org_quota: Quota = Field(
        1_000_000, description="How many entries an org may store; with 0 nobody can store any, `none` sets no limit."
    )
    knowledge_agent_quota: Quota = Field(
        100_000, description="How many entries one agent may store; with 0 nobody can store any, `none` sets no limit."
    )

    embedder: EmbedderName = Field("local", description="Which embedding model makes vectors.")
    embedder_model_path: Path | None = Field(
        None,
        description="The file of the local embedding model, where it is not the one that comes with refdesk: the same "
        "file, from wherever you keep it.",
    )
    gemini_api_key: SecretStr | None = Field(None, description="Key for Google's Gemini API.")
    gemini_base_url: str = Field(
        "https://generativelanguage.googleapis.com/v1beta",
        pattern=_URL,
        description="Where the Gemini API is, as a URL.",
    )
    gemini_embedding_model: str = Field("gemini-embedding-001", description="Which Gemini model makes vectors.")
    gemini_embedding_dimensions: int = Field(768, ge=1, le=4096, description="Width of Gemini vectors, in numbers.")
    openai_api_key: SecretStr | None = Field(
        None, description="Key for the OpenAI-compatible service, if it needs one."
    )
    openai_base_url: str = Field(
        "https://api.openai.com/v1", pattern=_URL, description="Where the OpenAI-compatible service is, as a URL."
    )
    openai_embedding_model: str = Field("text-embedding-3-small", description="Which of its models makes vectors.")
    openai_embedding_dimensions: int = Field(1536, ge=1, le=4096, description="Width of its vectors, in numbers.")
    openai_embedding_is_cut: bool = Field(
        False, description="Whether the service is asked to cut its vectors to that width; not every model can."
    )

    language_model: LanguageModelName = Field(
        "rules", description="Which language model learns skills from conversations; `rules` needs none."
    )
    gemini_language_model: str = Field("gemini-pro-latest", description="Which Gemini model learns skills.")
    openai_language_model: str = Field(
        "gpt-5-mini", description="Which model of the OpenAI-compatible service learns skills."
    )

    azure_updates_url: str = Field(
        "https://www.microsoft.com/releasecommunications/api/v2/azure",
        pattern=_URL,
        description="Where the Azure release communications API is, as a URL.",
    )
    azure_updates_stale_hours: float = Field(
        6.0, gt=0, le=8760, description="After how many hours the updates are stale and a server start syncs them."
    )
    azure_updates_full_hours: float = Field(
        24.0, gt=0, le=8760, description="After how many hours a sync compares everything, not only what changed."
    )

    salesforce_instance_url: str | None = Field(
        None, description="My Domain address of the Salesforce org whose articles are served; without it none are."
    )
    salesforce_client_id: str | None = Field(None, description="Consumer key of the app that signs in to Salesforce.")
    salesforce_client_secret: SecretStr | None = Field(None, description="Consumer secret of that app.")
    salesforce_username: str | None = Field(
        None, description="The Salesforce user that a signed assertion (JWT bearer) signs in as."
    )
    salesforce_private_key_file: Path | None = Field(
        None, description="The RSA key in PEM that signs the assertion; the app has its certificate."
    )
    salesforce_access_token: SecretStr | None = Field(
        None,
        description="A Salesforce session, used as it is until it expires; goes before the other ways.",
    )
    salesforce_body_fields: Names = Field(
        (), description="API names of the fields with an article's text, separated by commas. Default: found by itself."
    )
    salesforce_api_version: str = Field("v68.0", description="Which version of the Salesforce API is spoken.")
    salesforce_timeout_seconds: float = Field(
        15.0, gt=0, le=300, description="How long one question to Salesforce may take, in seconds."
    )

    stdio_era: StdioEra = Field(
        "auto", description="Which protocol era stdio serves: 2025-11-25 (`legacy`), 2026-07-28 (`modern`) or both."
    )
    allowed_hosts: Names = Field(
        (), description="Host names, beside loopback, that HTTP requests may name; separated by commas."
    )
    allowed_origins: Names = Field(
        (), description="Web origins, beside the server's own, whose pages may call it; separated by commas."
    )
    public_url: str | None = Field(
        None,
        pattern=_URL,
        description="Where clients reach the server, as a URL without `/mcp`; for signing in where no audience is one.",
    )
    oauth_issuer: str | None = Field(
        None,
        pattern=_URL,
        description="Who makes the access tokens that callers may send over HTTP, as a URL; without it, keys only.",
    )
    oauth_audience: Names = Field(
        (),
        description="What tokens must be made out to, normally the public URL of `/mcp`; several separated by commas.",
    )
    oauth_jwks_url: str | None = Field(
        None, pattern=_URL, description="Where the issuer's keys are, as a URL. Default: the issuer is asked."
    )
    oauth_org: str | None = Field(
        None, pattern=_NAME, description="The org of everybody who signs in; without it the token says it."
    )
    oauth_org_claim: str = Field("org_id", min_length=1, description="The claim of a token that names the org.")
    oauth_orgs: Names = Field(
        (),
        description="Which orgs the claim's values mean, as `VALUE=ORG` separated by commas; others are refused then.",
    )
    oauth_agent_claim: str = Field(
        "sub", min_length=1, description="The claim of a token that names the agent; must be unique at the issuer."
    )
    oauth_agent_prefix: str | None = Field(
        None,
        pattern=r"^[!-~]{1,32}$",
        description="What stands before it, so that it is no key's agent; `none` for nothing. Default: by the issuer.",
    )
    oauth_scope_claims: Names = Field(
        ("scope", "scp"), min_length=1, description="The claims of a token that list scopes, separated by commas."
    )
    oauth_scope_prefix: str = Field(
        "", pattern=r"^[!#-\[\]-~]*$", description="What stands before refdesk's scope names in tokens."
    )
    oauth_asked_scope_prefix: str | None = Field(
        None,
        pattern=r"^[!#-\[\]-~]*$",
        description="What stands before them where clients ask for scopes. Default: the same as in tokens.",
    )
    request_timeout_seconds: float = Field(
        30.0, gt=0, le=3600, description="How long one request may take, in seconds."
    )
    max_connections: int = Field(
        1000,
        ge=8,
        le=1_000_000,
        description="How many HTTP connections may be open at once; an org may hold half of them, one agent a quarter.",
    )
    max_address_connections: int = Field(
        100, ge=1, description="How many of them one address may hold before it has shown a valid key."
    )
    header_timeout_seconds: float = Field(
        10.0, gt=0, le=3600, description="How long a client may take to send a request's headers, in seconds."
    )
    body_timeout_seconds: float = Field(
        30.0, gt=0, le=3600, description="How long it may then take to send the body, in seconds."
    )
    write_timeout_seconds: float = Field(
        30.0, gt=0, le=3600, description="How long a client may read nothing of an answer, in seconds."
    )
    log_level: LogLevel = Field("info", description="The least grave entries that are logged.")

    @field_validator(
        *("allowed_hosts", "allowed_origins", "salesforce_body_fields"),
        *("oauth_audience", "oauth_orgs", "oauth_scope_claims"),
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("knowledge_org_quota", "knowledge_agent_quota", mode="before")
    @classmethod
    def _read_none(cls, value: object) -> object:
        return None if isinstance(value, str) and value.strip().lower() == "none" else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @property
    def store_url(self) -> str:
        """The URL of the store, the default resolved."""
        if self.store is not None:
            return self.store.get_secret_value()
        return f"sqlite:///{quote(str(self.home / 'refdesk.sqlite3'))}"

    @property
    def skills_store_url(self) -> str | None:
        """The URL of the skills' own store, or `None` when they are kept with everything else."""
        url = self.skills_store.get_secret_value() if self.skills_store is not None else None
        return url if url != self.store_url else None


def load_settings(*, org: str | None = None, agent: str | None = None) -> Settings:
    """Return the settings of the environment; `org` and `agent` stand above it.

    Raises:
        ConfigurationError: A variable is malformed; the message names it and never shows its value.
    """
    chosen: dict[str, Any] = {name: value for name, value in (("org", org), ("agent", agent)) if value is not None}
    try:
        return Settings(**chosen)
    except ValidationError as error:
        raise errors.ConfigurationError(_explain(error)) from None


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "string_pattern_mismatch":
        problem = "has the wrong form"
    else:
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    return f"{variable(name)} {problem}. It says: {Settings.model_fields[name].description}"
