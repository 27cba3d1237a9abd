from __future__ import annotations

from pathlib import Path

import pytest

from refdesk import errors
from refdesk.settings import PREFIX, compose, load_settings, variable


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in compose().model_fields:
        monkeypatch.delenv(variable(name), raising=False)


def test_nothing_has_to_be_set() -> None:
    settings = load_settings()
    assert settings.org == "local"
    assert settings.embedder == "local"
    assert settings.store_url.startswith("sqlite:///")


def test_the_store_lies_in_the_home_whatever_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REFDESK_HOME", str(tmp_path / "50% off"))
    assert load_settings().store_url == f"sqlite:///{tmp_path}/50%25%20off/refdesk.sqlite3"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REFDESK_EMBEDDER", "magic"),
        ("REFDESK_STDIO_ERA", "ancient"),
        ("REFDESK_AZURE_UPDATES_URL", "ftp://hunter2"),
        ("REFDESK_GEMINI_BASE_URL", "http://["),
        ("REFDESK_OAUTH_ISSUER", "https://id.example.com:port"),
        ("REFDESK_OTLP_ENDPOINT", "hunter2"),
        ("REFDESK_OAUTH_ORG_CLAIM", "\t"),
        ("REFDESK_TRUSTED_PROXIES", "proxy.example"),
        ("REFDESK_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("REFDESK_AZURE_UPDATES_STALE_HOURS", "soon"),
        ("REFDESK_AZURE_UPDATES_STALE_HOURS", "0"),
        ("REFDESK_AZURE_UPDATES_FULL_HOURS", "nan"),
        ("REFDESK_REQUEST_TIMEOUT_SECONDS", "inf"),
        ("REFDESK_LOG_LEVEL", "loud"),
        ("REFDESK_ORG", "No Such Org"),
        ("REFDESK_AGENT", "two\nlines"),
    ],
)
def test_a_malformed_variable_is_named_in_one_sentence_without_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.ConfigurationError) as caught:
        load_settings()
    message = caught.value.message
    assert message.startswith(name + " ")
    assert "\n" not in message
    assert value not in message.removeprefix(name) or value in ("0", "inf")


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_STORE", "")
    monkeypatch.setenv("REFDESK_EMBEDDER", "")
    assert load_settings().embedder == "local"
    assert load_settings().store is None


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_ALLOWED_HOSTS", "desk.example, other.example,")
    assert load_settings().allowed_hosts == ("desk.example", "other.example")


@pytest.mark.parametrize("host", ["desk.example", "Desk.Example", "localhost", "10.0.0.7", "[fd00::1]", "a_b"])
def test_a_host_name_is_taken_as_requests_name_it(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("REFDESK_ALLOWED_HOSTS", host)
    assert load_settings().allowed_hosts == (host,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("HOSTS", host)
            for host in ("desk.example:8350", "https://desk.example", "*.example", "a.example b.example")
        ),
        *(("ORIGINS", origin) for origin in ("pages.example", "https://pages.example/", "https://a.example b", "*")),
    ],
)
def test_what_no_request_could_name_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"REFDESK_ALLOWED_{name}", value)
    with pytest.raises(errors.ConfigurationError, match=f"REFDESK_ALLOWED_{name} has the wrong form.*such as"):
        load_settings()


def test_what_the_command_line_says_stands_above_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_ORG", "from-environment")
    assert load_settings().org == "from-environment"
    assert load_settings(org="from-command-line").org == "from-command-line"


def test_secrets_show_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFDESK_GEMINI_API_KEY", "hunter2")
    settings = load_settings()
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    assert settings.gemini_api_key is not None
    assert settings.gemini_api_key.get_secret_value() == "hunter2"


def test_every_setting_says_what_it_is() -> None:
    for name, field in compose().model_fields.items():
        assert field.description, f"{PREFIX}{name}"
        assert field.description.endswith(".")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("REFDESK_ALOWED_HOSTS", "REFDESK_ALLOWED_HOSTS"),
        ("REFDESK_ALLOWED_HOST", "REFDESK_ALLOWED_HOSTS"),
        ("REFDESK_STORES", "REFDESK_STORE"),
        ("REFDESK_REQUEST_TIMEOUT", "REFDESK_REQUEST_TIMEOUT_SECONDS"),
        ("refdesk_loglevel", "REFDESK_LOG_LEVEL"),
    ],
)
def test_a_misspelt_setting_names_the_nearest(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(errors.ConfigurationError, match=f"{name}. Did you mean {meant}\\?"):
        load_settings()


@pytest.mark.parametrize(
    "name", ["REFDESK_KEY", "REFDESK_SERVICE_HOST", "REFDESK_PORT_8350_TCP", "REFDESK_TEST_DATA", "REFDESK_SOAK"]
)
def test_what_belongs_to_others_is_let_be(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert load_settings().org == "local"
