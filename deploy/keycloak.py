"""Prepares a realm of Keycloak 26 for refdesk: its scopes, the audience of its tokens, who may have what, its clients.

    KEYCLOAK_PASSWORD=… python deploy/keycloak.py --keycloak https://id.example.com --user admin \
        --realm desk --audience https://desk.example.com/mcp

It needs nothing but Python, changes nothing that is there, and may be repeated. What it does can be done by hand in
Keycloak's console as well; see docs/how-to/sign-in-with-oauth.md.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

FOR_ALL = ("articles:read", "knowledge:read", "knowledge:write", "skills:read", "skills:write", "updates:read")
"""Scopes that every user of the realm gets when its client asks for them."""

RESTRICTED = {"knowledge:write_others": "refdesk-editor", "admin": "refdesk-admin"}
"""Scopes that only users with a role get, whoever asks for them."""

NAMED = "included.custom.audience"
"""Where a mapper has the audience that it puts into tokens. Each scope has one: clients that register themselves have
none of the realm's default scopes."""

CLIENT = {
    "clientId": "refdesk-mcp",
    "publicClient": True,
    # On this machine any port will do (RFC 8252, section 7.3).
    "redirectUris": ["http://127.0.0.1/*", "http://localhost/*"],
    "attributes": {"pkce.code.challenge.method": "S256"},
}

CONSOLE = "refdesk-console"
"""What people sign in to the console by: REFDESK_OAUTH_CONSOLE_CLIENT_ID."""

PATIENCE_SECONDS = 60.0
"""How long Keycloak may take for an answer."""


@dataclass(frozen=True)
class Realm:
    """A realm, as its administrator reaches it."""

    url: str
    token: str

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - whatever it answers
        """Return what Keycloak answers, or what it made."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            text = answer.read()
            made = answer.headers.get("Location", "").rpartition("/")[2]
        return json.loads(text) if text else made

    def make_scope(self, name: str, audience: str) -> str:
        """Return the id of a client scope that clients made from now on may ask for, and that brings the audience."""
        id = {scope["name"]: scope["id"] for scope in self.ask("GET", "client-scopes")}.get(name)
        if id is None:
            attributes = {"include.in.token.scope": "true"}
            body = {"name": name, "protocol": "openid-connect", "attributes": attributes}
            id = self.ask("POST", "client-scopes", body)
            self.ask("PUT", f"default-optional-client-scopes/{id}")
            print(f"made the scope {name}")
        mappers = f"client-scopes/{id}/protocol-mappers/models"
        if not any(mapper["config"].get(NAMED) == audience for mapper in self.ask("GET", mappers)):
            config = {NAMED: audience, "access.token.claim": "true"}
            facts = {"protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
            self.ask("POST", mappers, {"name": f"audience {audience}", **facts, "config": config})
            print(f"made the audience of {name}")
        return str(id)

    def restrict(self, scope: str, id: str, role: str) -> None:
        """Give a scope only to users who have a role."""
        if role not in {each["name"] for each in self.ask("GET", "roles")}:
            self.ask("POST", "roles", {"name": role})
            print(f"made the role {role}: give it to those who may have {scope}")
        self.ask("POST", f"client-scopes/{id}/scope-mappings/realm", [self.ask("GET", f"roles/{role}")])


def sign_in(keycloak: str, user: str, password: str) -> str:
    """Return an administrator's token."""
    form = {"grant_type": "password", "client_id": "admin-cli", "username": user, "password": password}
    url = f"{keycloak}/realms/master/protocol/openid-connect/token"
    with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode(), PATIENCE_SECONDS) as answer:
        return str(json.load(answer)["access_token"])


def prepare(realm: Realm, audience: str) -> None:
    """Make whatever is missing."""
    for scope in FOR_ALL:
        realm.make_scope(scope, audience)
    for scope, role in RESTRICTED.items():
        realm.restrict(scope, realm.make_scope(scope, audience), role)
    for client in (CLIENT, describe_console(audience)):
        if not realm.ask("GET", f"clients?clientId={client['clientId']}"):
            realm.ask("POST", "clients", client)
            print(f"made the client {client['clientId']}")


def describe_console(audience: str) -> dict[str, Any]:
    """Return the client of the console, which is beside `/mcp`."""
    address = f"{audience.removesuffix('/mcp')}/console/sign-in/return"
    return {**CLIENT, "clientId": CONSOLE, "redirectUris": [address]}


def main() -> None:
    """Prepare the realm that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keycloak", required=True, help="where Keycloak is, as a URL")
    parser.add_argument("--user", required=True, help="an administrator of its realm `master`")
    parser.add_argument("--realm", required=True, help="the realm whose users sign in")
    parser.add_argument("--audience", required=True, help="the address of /mcp, as clients know it")
    chosen = parser.parse_args()
    if not chosen.audience.endswith("/mcp"):
        parser.error("the audience ends with /mcp: the console's address is made from it")
    if "KEYCLOAK_PASSWORD" not in os.environ:
        parser.error("the variable KEYCLOAK_PASSWORD is missing: the administrator's password")
    keycloak = chosen.keycloak.rstrip("/")
    try:
        token = sign_in(keycloak, chosen.user, os.environ["KEYCLOAK_PASSWORD"])
        prepare(Realm(f"{keycloak}/admin/realms/{urllib.parse.quote(chosen.realm)}", token), chosen.audience)
    except urllib.error.HTTPError as error:
        parser.error(f"{error.url}: HTTP {error.code} {error.read().decode(errors='replace')[:500]}")
    except (urllib.error.URLError, TimeoutError) as error:
        parser.error(f"{keycloak} does not answer: {getattr(error, 'reason', error)}")
    except ValueError:
        parser.error(f"{keycloak} is no address of Keycloak's: it needs https:// or http://, and to answer with JSON")


if __name__ == "__main__":
    main()
