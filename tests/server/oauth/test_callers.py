"""Who a token's claims mean, and that two of them are never one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk import errors
from refdesk.discovery import list_scopes
from refdesk.model import Principal
from refdesk.server.oauth.callers import HASHED, MOST_CHARACTERS, name_agent, read_caller
from refdesk.server.orgs import OrglessError
from tests.server.oauth.samples import OAUTH, make_claims


def who(claims: dict[str, Any], **changed: object) -> Principal:
    return read_caller(claims, replace(OAUTH, **changed)).principal


def test_an_org_may_be_fixed_and_then_no_token_can_name_another() -> None:
    assert who(make_claims(org_id="other"), org="acme").org == "acme"
    assert who(make_claims(org_id=None), org="acme").org == "acme"


@pytest.mark.parametrize("value", ["acme", ["acme"], {"acme": {"id": "1"}}])
def test_a_claim_that_names_one_org_names_it_in_any_form(value: object) -> None:
    assert who(make_claims(organization=value), org_claim="organization").org == "acme"


@pytest.mark.parametrize("value", [[], {}, [["a"]], [None], None, 1, True, "A B", ["A B", "ä"]])
def test_a_claim_that_names_no_org_is_refused(value: object) -> None:
    with pytest.raises(OrglessError, match="belong to no org"):
        who(make_claims(organization=value), org_claim="organization")


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1, "b": 2}, ["a", "No Org", "b", "a"]])
def test_whoever_belongs_to_several_orgs_says_for_which_one_it_calls(value: object) -> None:
    claims, oauth = make_claims(organization=value), replace(OAUTH, org_claim="organization")
    assert [read_caller(claims, oauth, org).principal.org for org in ("a", "b")] == ["a", "b"]
    with pytest.raises(errors.PermissionDeniedError, match="Refdesk-Org`: a, b"):
        read_caller(claims, oauth)
    for other in ("c", "", "A", "a,b", "No Org"):
        with pytest.raises(errors.PermissionDeniedError, match="not for the org"):
            read_caller(claims, oauth, other)


def test_of_several_orgs_only_those_that_are_listed_count() -> None:
    claims, oauth = make_claims(org_id=["x", "org_1", "y"]), replace(OAUTH, orgs={"org_1": "acme"})
    assert read_caller(claims, oauth).principal.org == "acme"
    with pytest.raises(errors.PermissionDeniedError):
        read_caller(claims, oauth, "x")


def test_the_org_asked_for_must_be_the_one_that_all_are_in() -> None:
    oauth = replace(OAUTH, org="acme")
    assert read_caller(make_claims(), oauth, "acme").principal.org == "acme"
    with pytest.raises(errors.PermissionDeniedError):
        read_caller(make_claims(org_id="other"), oauth, "other")


def test_no_token_sees_all_orgs_unless_the_operator_says_so() -> None:
    claims = make_claims(scope="admin metrics:read knowledge:write_others knowledge:read")
    assert who(claims).scopes == {"knowledge:write_others", "knowledge:read"}
    assert who(claims, grants_server_scopes=True).scopes >= {"admin", "metrics:read"}


def test_where_orgs_are_listed_no_other_is_let_in() -> None:
    orgs = {"org_9jB": "acme", "org_9jb": "other"}
    assert who(make_claims(org_id="org_9jB"), orgs=orgs).org == "acme"
    assert who(make_claims(org_id="org_9jb"), orgs=orgs).org == "other"
    for value in ("acme", "org_9JB", "", None):
        with pytest.raises(OrglessError):
            who(make_claims(org_id=value), orgs=orgs)


@given(st.lists(st.text(min_size=1) | st.from_regex(r"oauth-(1|2|sha256):.{0,60}", fullmatch=True), unique=True))
def test_two_callers_are_never_one_agent(values: list[str]) -> None:
    for prefix in ("oauth-1:", "oauth-", "oauth-sha256:", ""):
        oauth = replace(OAUTH, agent_prefix=prefix)
        names = [name_agent(value, oauth) for value in values]
        assert len(set(names)) == len(values)
        assert all(0 < len(name) <= MOST_CHARACTERS and name.isprintable() for name in names)


@given(st.text(min_size=1))
def test_an_agent_of_one_issuer_is_none_of_another(value: str) -> None:
    first, second = (
        replace(OAUTH, issuer=f"https://{name}.example", agent_prefix=f"oauth-{name}:") for name in ("aa", "bb")
    )
    assert name_agent(value, first) != name_agent(value, second)


def test_only_one_claim_names_the_agent() -> None:
    assert who(make_claims(sub="x", client_id="y")).agent == "oauth-1:x"
    assert who(make_claims(sub="x", client_id="y"), agent_claim="client_id").agent == "oauth-1:y"
    with pytest.raises(errors.UnauthenticatedError):
        who(make_claims(azp=None, client_id="y"), agent_claim="azp")


def test_a_name_that_does_not_fit_is_replaced_by_its_hash() -> None:
    assert name_agent("x" * 56, OAUTH) == "oauth-1:" + "x" * 56
    for value in ("x" * 57, "a\nb", "a ", "\ud800", "a\u2028b"):
        assert name_agent(value, OAUTH).startswith(HASHED)
    free = replace(OAUTH, agent_prefix="")
    victim = name_agent("x" * 65, free)
    assert name_agent(victim, free) != victim


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "knowledge:read updates:read"}, {"knowledge:read", "updates:read"}),
        ({"scope": "  openid  knowledge:read email "}, {"knowledge:read"}),
        ({"scope": None, "scp": "knowledge:read"}, {"knowledge:read"}),
        ({"scope": None, "scp": ["knowledge:read", "skills:read", 5, None]}, {"knowledge:read", "skills:read"}),
        ({"scope": "knowledge:read", "scp": ["skills:read"]}, {"knowledge:read", "skills:read"}),
        ({"scope": "KNOWLEDGE:READ knowledge:* knowledge: * root echo:read"}, set[str]()),
        ({"scope": "knowledge:read,skills:read"}, set[str]()),
        ({"scope": {"knowledge:read": True}}, set[str]()),
        ({"scope": None, "roles": ["admin"], "permissions": ["admin"]}, set[str]()),
    ],
)
def test_only_refdesks_own_scopes_count(claims: dict[str, object], scopes: set[str]) -> None:
    assert who(make_claims(**claims)).scopes == scopes


def test_with_a_prefix_only_scopes_that_have_it_count() -> None:
    claims = make_claims(scope="refdesk/knowledge:read admin refdesk/refdesk/admin")
    assert who(claims, scope_prefix="refdesk/").scopes == {"knowledge:read"}


def test_the_claims_that_list_scopes_can_be_chosen() -> None:
    claims = make_claims(permissions=["skills:read"], roles=["updates:read"])
    assert who(claims, scope_claims=("permissions", "roles")).scopes == {"skills:read", "updates:read"}


def test_a_token_may_have_every_scope() -> None:
    claims = make_claims(scope=" ".join(list_scopes()))
    assert who(claims, grants_server_scopes=True).scopes == list_scopes().keys()
