from __future__ import annotations

from pathlib import Path

import pytest

from refdesk.errors import ConfigurationError
from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings, check_session_url

URL = "https://acme.my.salesforce.com"
SECRET = "canary-9f8e7d"


def test_each_way_to_sign_in_is_enough() -> None:
    SalesforceSettings(instance_url=URL, access_token=SECRET)
    SalesforceSettings(instance_url=URL, client_id="id", client_secret=SECRET)
    SalesforceSettings(instance_url=URL, client_id="id", username="it@acme.example", private_key_file=Path("key.pem"))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"client_id": "id"},
        {"client_secret": SECRET},
        {"client_id": "id", "username": "it@acme.example"},
        {"username": "it@acme.example", "private_key_file": Path("key.pem")},
    ],
)
def test_half_a_way_to_sign_in_is_named(given: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="REFDESK_SALESFORCE_CLIENT_ID") as caught:
        SalesforceSettings(instance_url=URL, **given)  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("", "acme", "ftp://acme.my.salesforce.com", "http://acme.my.salesforce.com", "https://", "https://:443"),
        *("https://user:pass@acme.my.salesforce.com", "https://acme.my.salesforce.com?x=1", "https://a b.example"),
        *(
            "https://acme.example:99999",
            "https://acme.example\\@evil.example",
            "https://acme.example/#x",
            "//acme.example",
        ),
    ],
)
def test_an_address_that_is_none_or_would_leak_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="REFDESK_SALESFORCE_INSTANCE_URL"):
        SalesforceSettings(instance_url=url, access_token=SECRET)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_version", "61.5"),
        ("api_version", "v51"),
        ("language", "german"),
        ("body_fields", ("Body__c, Id",)),
        ("access_token", "a\nb"),
    ],
)
def test_a_malformed_setting_is_named_and_not_shown(name: str, value: object) -> None:
    given: dict[str, object] = {"instance_url": URL, "access_token": SECRET, name: value}
    with pytest.raises(ConfigurationError, match=f"REFDESK_SALESFORCE_{name.upper()}") as caught:
        SalesforceSettings(**given)  # pyright: ignore[reportArgumentType]
    assert str(value) not in str(caught.value)


def test_settings_do_not_show_their_secrets() -> None:
    shown = repr(SalesforceSettings(instance_url=URL, client_id="id", client_secret=SECRET, access_token=SECRET))
    assert SECRET not in shown


ORG = SalesforceSettings(instance_url=f"{URL}/", access_token=SECRET)
LOCAL = SalesforceSettings(instance_url="http://127.0.0.1:8181", access_token=SECRET)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        (URL, URL),
        ("https://acme.my.salesforce.com/services", URL),
        ("https://na1.salesforce.com", "https://na1.salesforce.com"),
    ],
)
def test_a_session_may_lead_to_the_org_and_to_salesforce(url: str, origin: str) -> None:
    assert check_session_url(url, ORG) == origin


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://evil.example",
            "https://salesforce.com.evil.example",
            "https://evilsalesforce.com",
            "http://na1.salesforce.com",
        ),
        *(
            "http://127.0.0.1:8181",
            "https://localhost",
            "http://169.254.169.254",
            "https://na1.salesforce.com@evil.example",
        ),
        *(
            "",
            None,
            5,
            "https://",
            "file:///etc/passwd",
            "https://evil.example/.salesforce.com",
            "https://evil.example#.salesforce.com",
        ),
    ],
)
def test_a_session_may_lead_nowhere_else(url: object) -> None:
    assert check_session_url(url, ORG) is None


def test_a_session_may_lead_to_this_machine_only_from_this_machine() -> None:
    assert check_session_url("http://localhost:9999", LOCAL) == "http://localhost:9999"
    assert check_session_url("http://192.168.0.1:8181", LOCAL) is None
