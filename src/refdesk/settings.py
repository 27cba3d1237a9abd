"""The settings: one frozen tree, and the only reader of the environment and the config file.

The settings here concern all of refdesk; each toolset declares its own, and `compose` puts them together. Every setting
is an environment variable that starts with `REFDESK_`, or a key of the same name in the config file, which the
environment overrides. Without any of them everything works, locally.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args
from urllib.parse import quote

import platformdirs
from pydantic import Field, SecretStr, ValidationError, create_model, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from refdesk import errors
from refdesk.discovery import find_descriptors
from refdesk.forwarder import config_file
from refdesk.kit.settings import NOT_BLANK, HostNames, MostKept, Names, Networks, Origins, Url, UserPath
from refdesk.model import AGENT_NAME, ORG_NAME

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

PREFIX = "REFDESK_"

EmbedderName: TypeAlias = Literal["local", "hashing", "gemini", "openai"]
LanguageModelName: TypeAlias = Literal["rules", "gemini", "openai"]
Origin: TypeAlias = Literal["environment", "file", "default"]
StdioEra: TypeAlias = Literal["auto", "legacy", "modern"]
DeskSocket: TypeAlias = Literal["unix", "loopback"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

_OF_TESTS = f"{PREFIX}TEST_"
_NEAR = 0.85
"""How similar two names of variables must be, from 0 to 1, for one to be taken for a misspelling of the other. The
variables that a cluster sets for a service called refdesk are less similar."""

_OTEL_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT" for part in ("", "TRACES_", "METRICS_"))
_OTEL = (
    *_OTEL_ENDPOINTS,
    *("OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_METRIC_EXPORT_INTERVAL"),
    *("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"),
)
"""Standard variables that decide whether and what is sent; OpenTelemetry itself reads the others."""

_NAME = rf"^{ORG_NAME}$"


def _user_data_folder() -> Path:
    return platformdirs.user_data_path("refdesk", appauthor=False)


class Settings(BaseSettings):
    """What an operator can configure. Descriptions name the unit; secrets never show in logs or errors."""

    # Only the model that `compose` makes of this is ever used to validate, so this one need not be built.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True, defer_build=True
    )

    config: UserPath | None = Field(
        None,
        description="The config file, whose keys are settings in lower case, as TOML; `none` for none. Default: "
        "`config.toml` in the platform's user config folder.",
    )
    home: UserPath = Field(
        default_factory=_user_data_folder,
        description="The data folder, made when it is first written to; `~` is the user's own, here and in every path. "
        "Default: the platform's user data folder.",
    )
    store: SecretStr | None = Field(
        None,
        description="Where everything is kept, as a URL: `sqlite:///file`, `postgresql://…`, `neo4j://…` or "
        "`memory://`. Default: a file in the home.",
    )
    store_read: SecretStr | None = Field(
        None,
        description="Replicas of a store on PostgreSQL, as URLs separated by blanks: searches are asked of them where "
        "they have all that was written.",
    )
    redis: SecretStr | None = Field(
        None, description="Redis, as a URL: hands embedding to workers, and shares tokens and limits between servers."
    )
    org: str = Field("local", pattern=_NAME, description="The org that callers without a key belong to.")
    agent: str | None = Field(
        None, pattern=rf"^{AGENT_NAME}$", description="The agent that callers over stdio are; default: their name."
    )

    embedder: EmbedderName = Field("local", description="Which embedding model makes vectors.")
    embedder_model_path: UserPath | None = Field(
        None,
        description="The file of the local embedding model, where it is not the one that comes with refdesk: the same "
        "file, from wherever you keep it.",
    )
    gemini_api_key: SecretStr | None = Field(None, description="Key for Google's Gemini API.")
    gemini_base_url: Url = Field(
        "https://generativelanguage.googleapis.com/v1beta", description="Where the Gemini API is, as a URL."
    )
    gemini_embedding_model: str = Field("gemini-embedding-001", description="Which Gemini model makes vectors.")
    gemini_embedding_dimensions: int = Field(768, ge=1, le=4096, description="Width of Gemini vectors, in numbers.")
    openai_api_key: SecretStr | None = Field(
        None, description="Key for the OpenAI-compatible service, if it needs one."
    )
    openai_base_url: Url = Field(
        "https://api.openai.com/v1", description="Where the OpenAI-compatible service is, as a URL."
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

    stdio_era: StdioEra = Field(
        "auto", description="Which protocol era stdio serves: 2025-11-25 (`legacy`), 2026-07-28 (`modern`) or both."
    )
    tools: Names = Field(
        (),
        description="Which tools MCP offers, by name and separated by commas; `default` stands for those that are "
        "offered unasked, `all` for every one. Default: `default`.",
    )
    allowed_hosts: HostNames = Field(
        (),
        description="Host names, beside loopback, that HTTP requests may name, such as `desk.example.com`, without "
        "scheme or port; separated by commas.",
    )
    allowed_origins: Origins = Field(
        (),
        description="Web origins, beside the server's own, whose pages may call it, such as "
        "`https://pages.example.com`, without a path; separated by commas.",
    )
    public_url: Url | None = Field(
        None,
        description="Where clients reach the server, as a URL without `/mcp`, such as `https://desk.example.com`; a "
        "path in it is the one under which a proxy shows the server. Also for signing in where no audience is a URL.",
    )
    oauth_issuer: Url | None = Field(
        None,
        description="Who makes the access tokens that callers may send over HTTP, as a URL; without it, keys only.",
    )
    oauth_audience: Names = Field(
        (),
        description="What tokens must be made out to, normally the public URL of `/mcp`; several separated by commas.",
    )
    oauth_jwks_url: Url | None = Field(
        None, description="Where the issuer's keys are, as a URL. Default: the issuer is asked."
    )
    oauth_org: str | None = Field(
        None, pattern=_NAME, description="The org of everybody who signs in; without it the token says it."
    )
    oauth_org_claim: str = Field("org_id", pattern=NOT_BLANK, description="The claim of a token that names the org.")
    oauth_orgs: Names = Field(
        (),
        description="Which orgs the claim's values mean, as `VALUE=ORG` separated by commas; others are refused then.",
    )
    oauth_agent_claim: str = Field(
        "sub", pattern=NOT_BLANK, description="The claim of a token that names the agent; must be unique at the issuer."
    )
    oauth_agent_prefix: str | None = Field(
        None,
        pattern=r"^[!-~]{1,32}$",
        description="Its prefix, so that it is no key's agent; `none` for nothing. Default: by the issuer.",
    )
    oauth_scope_claims: Names = Field(
        ("scope", "scp"), min_length=1, description="The claims of a token that list scopes, separated by commas."
    )
    oauth_scope_prefix: str = Field(
        "", pattern=r"^[!#-\[\]-~]*$", description="The prefix of refdesk's scope names in tokens."
    )
    oauth_asked_scope_prefix: str | None = Field(
        None,
        pattern=r"^[!#-\[\]-~]*$",
        description="Their prefix where clients request scopes. Default: the same as in tokens.",
    )
    oauth_more_scopes: Names = Field(
        (),
        description="Scopes of the issuer's own that clients should request beside refdesk's, such as "
        "`organization`; separated by commas.",
    )
    oauth_server_scopes: bool = Field(
        False,
        description="Whether tokens may carry the scopes that see all orgs, `admin` and `metrics:read`; without it "
        "only keys do.",
    )
    oauth_console_client_id: str | None = Field(
        None,
        pattern=r"^[ -~]{1,256}$",
        description="The client that the issuer knows the console as; without it, people sign in there with keys.",
    )
    oauth_console_client_secret: SecretStr | None = Field(None, description="The secret of that client, if it has one.")
    oauth_console_more_scopes: Names = Field(
        (),
        description="Scopes that only the console requests, such as `offline_access` where the issuer gives refresh "
        "tokens for it alone; separated by commas.",
    )
    audit_reads: bool = Field(
        False, description="Whether the audit log holds reads too; writes and refusals it always holds."
    )
    request_timeout_seconds: float = Field(
        30.0, gt=0, le=3600, description="How long one request may take, in seconds."
    )
    read_only: bool = Field(
        False, description="Whether callers may only read: nothing that writes is offered, whatever their scopes."
    )
    max_org_bytes: MostKept = Field(
        None,
        description="How many bytes an org may keep: titles, bodies and records of every version, in UTF-8; `none` "
        "sets no limit. The same for every process on the store.",
    )
    max_connections: int = Field(
        1000,
        ge=8,
        le=1_000_000,
        description="How many HTTP connections may be open at once; an org may hold half of them, one agent a quarter.",
    )
    max_sessions: int = Field(
        1000,
        ge=4,
        description="How many MCP sessions may be open at once; an org may have half of them, one agent a quarter.",
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
    key_check_seconds: float = Field(
        5.0,
        gt=0,
        le=3600,
        description="How often the keys and tokens of open streams and sessions are checked again, in seconds: those "
        "of one that was revoked, or has expired, end within that time.",
    )
    keys_file: UserPath | None = Field(
        None,
        description="A file with further API keys, each a line that `refdesk keys make` wrote; read again when it "
        "changes.",
    )
    trusted_proxies: Networks = Field(
        (),
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` (or `Forwarded`) names the "
        "client; separated by commas.",
    )
    agent_rate: int = Field(
        12_000, ge=1, description="How many requests a minute one agent may make over HTTP with its key or token."
    )
    org_rate: int = Field(24_000, ge=1, description="How many requests a minute all agents of an org may make.")
    concurrent_requests: int = Field(
        16,
        ge=1,
        le=10_000,
        description="How many requests one process works on at once; an eighth of it while several callers share it.",
    )
    desk_idle: float = Field(
        300.0,
        gt=0,
        le=1_000_000,
        description="How long the desk that stdio clients share stays without one, in seconds; it never ends while it "
        "syncs or embeds.",
    )
    desk_socket: DeskSocket | None = Field(
        None,
        description="What clients reach it through: `unix`, or `loopback` with a secret in the home. Default: what the "
        "system has.",
    )
    backup_every: str | None = Field(
        None,
        pattern=r"^[1-9]\d{0,3}[mhdw]$",
        description="How often a server or worker backs up the store's file: a number of minutes, hours, days or "
        "weeks, such as `24h`. Default: never.",
    )
    backup_keep: int = Field(7, ge=1, le=10_000, description="How many of these backups are kept; older ones go.")
    backup_to: UserPath | None = Field(
        None, description="The folder that they go to; better on another disk. Default: `backups` in the home."
    )
    log_level: LogLevel = Field("info", description="The least grave entries that are logged.")
    otlp_endpoint: Url | Literal["none"] | None = Field(
        None,
        description="Where OpenTelemetry traces and metrics go, by OTLP over HTTP, as a URL without `/v1/traces`; "
        "`none` for nowhere. Default: as `OTEL_EXPORTER_OTLP_ENDPOINT` says.",
    )

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
    def store_read_urls(self) -> tuple[str, ...]:
        """The URLs of the store's replicas."""
        return tuple(self.store_read.get_secret_value().split()) if self.store_read is not None else ()


@cache
def compose() -> type[Settings]:
    """Return the model of all settings: those of refdesk, then each toolset's."""
    models = [descriptor.load_settings() for descriptor in find_descriptors() if descriptor.load_settings is not None]
    # The fields of the last base class come first.
    return cast("type[Settings]", create_model("Settings", __base__=(*reversed(models), Settings)))


def load_settings(*, org: str | None = None, agent: str | None = None, tools: str | None = None) -> Settings:
    """Return the settings of the environment and the config file; the arguments override them.

    Raises:
        ConfigurationError: A variable is malformed or misspelt; the message names it and never shows its value.
    """
    check_names(os.environ)
    filed = _read_file()
    given = {"org": org, "agent": agent, "tools": tools}
    chosen: dict[str, Any] = filed | {name: value for name, value in given.items() if value is not None}
    try:
        return compose()(**chosen)
    except ValidationError as error:
        raise errors.ConfigurationError(explain(error, filed)) from None


def _read_file() -> dict[str, str]:
    """Return the settings of the config file that the environment does not set.

    Raises:
        ConfigurationError: The file cannot be used, or has a key that is not a setting.
    """
    try:
        filed = config_file.read(os.environ)
    except config_file.UnreadableError as error:
        raise errors.ConfigurationError(str(error)) from None
    known = compose().model_fields.keys() - {"config"}
    for name in sorted(filed.keys() - known):
        meant = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {meant[0]}?" if meant else " The reference of settings lists them all."
        raise errors.ConfigurationError(f"There is no setting {name}, which {_name_file()} sets.{hint}")
    said = {name.upper() for name, value in os.environ.items() if value}
    return {name: value for name, value in filed.items() if value and variable(name) not in said}


def _name_file() -> str:
    return f"the config file {config_file.find_path(os.environ)}"


def find_config_file() -> tuple[str | None, bool]:
    """Return where the config file is or would be (`None` if none is wanted), and whether it exists."""
    path = config_file.find_path(os.environ)
    return path, path is not None and os.path.isfile(path)


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting as it is in effect.

    Attributes:
        value: Its value; a secret's must not be shown, only whether it is set.
        source: Where the value comes from.
    """

    name: str
    variable: str
    value: object
    source: Origin
    is_secret: bool


def list_effective() -> list[Effective]:
    """Return every setting as it is in effect, in the order of the reference; errors as in `load_settings`."""
    settings, filed = load_settings(), _read_file()
    return [
        Effective(name, variable(name), getattr(settings, name), _find_source(settings, name, filed), _hides(field))
        for name, field in compose().model_fields.items()
    ]


def _find_source(settings: Settings, name: str, filed: Mapping[str, str]) -> Origin:
    if name in filed:
        return "file"
    return "environment" if name in settings.model_fields_set else "default"


def _hides(field: FieldInfo) -> bool:
    return SecretStr in (field.annotation, *get_args(field.annotation))


def check_names(environment: Mapping[str, str]) -> None:
    """Check that no variable looks like a misspelt setting. Variables that resemble none may belong to other programs.

    Raises:
        ConfigurationError: One does; the message names it and the nearest setting.
    """
    known = {variable(name) for name in compose().model_fields}
    for name in sorted(name for name, value in environment.items() if value and name.upper().startswith(PREFIX)):
        meant = difflib.get_close_matches(name.upper(), known, n=1, cutoff=_NEAR)
        if meant and name.upper() not in known and not name.upper().startswith(_OF_TESTS):
            raise errors.ConfigurationError(f"There is no setting {name}. Did you mean {meant[0]}?")


def list_given() -> tuple[dict[str, str], list[str]]:
    """Return the settings in the environment, by variable and as written, and the variables of secret ones.

    Raises:
        ConfigurationError: See `load_settings`.
    """
    settings = load_settings()
    given = {name: os.environ.get(variable(name), "") for name in settings.model_fields_set}
    secret = {name for name in given if isinstance(getattr(settings, name), SecretStr)}
    plain = {variable(name): text for name, text in sorted(given.items()) if text and name not in secret}
    return plain, [variable(name) for name in sorted(secret) if given[name]]


def read_variable(name: str) -> str | None:
    """Return an environment variable that is not a setting, such as a client's key; `None` if it is empty."""
    return os.environ.get(name) or None


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where traces and metrics go.

    Attributes:
        variable: The variable that says so.
        endpoint: Its base URL; `None` if OpenTelemetry reads the standard variables itself.
        sends: Which of `traces` and `metrics` go there.
        interval_seconds: How often metrics are sent.
    """

    variable: str
    endpoint: str | None
    sends: frozenset[str]
    interval_seconds: float = 60.0


def find_receiver(settings: Settings) -> Receiver | None:
    """Return where traces and metrics go, according to the settings and OpenTelemetry's standard variables, or `None`.

    Raises:
        ConfigurationError: The variables ask for a protocol that is not supported, or are malformed.
    """
    own, said = settings.otlp_endpoint, {name: os.environ.get(name, "").strip() for name in _OTEL}
    standard = next((name for name in _OTEL_ENDPOINTS if said[name]), None)
    if own == "none" or (own is None and standard is None) or said["OTEL_SDK_DISABLED"].lower() == "true":
        return None
    protocol, interval = said["OTEL_EXPORTER_OTLP_PROTOCOL"], said["OTEL_METRIC_EXPORT_INTERVAL"] or "60000"
    if own is None and protocol not in ("", "http/protobuf"):
        raise errors.ConfigurationError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf, which is what refdesk speaks. Name a receiver of it in "
            f"{variable('otlp_endpoint')}, or say none there."
        )
    if not interval.isdecimal() or int(interval) == 0:
        raise errors.ConfigurationError("OTEL_METRIC_EXPORT_INTERVAL must be a number of milliseconds.")
    off = {kind for kind in ("traces", "metrics") if said[f"OTEL_{kind.upper()}_EXPORTER"] == "none"}
    by = variable("otlp_endpoint") if own is not None else str(standard)
    return Receiver(by, own, frozenset({"traces", "metrics"} - off), int(interval) / 1000)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def explain(error: ValidationError, filed: Collection[str] = ()) -> str:
    """Return what is wrong with each setting, by its variable or its key in the config file, without its value."""
    problems = dict[str, str]()
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        shape = "has the wrong form" if one["type"] == "string_pattern_mismatch" else one["msg"]
        problem = shape.removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
        problems.setdefault(str(one["loc"][0]), problem)
    told = {name: f"{name} in {_name_file()}" if name in filed else variable(name) for name in problems}
    meant = {name: compose().model_fields[name].description for name in problems}
    return " ".join(f"{told[name]} {problem}. It says: {meant[name]}" for name, problem in problems.items())
