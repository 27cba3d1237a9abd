"""Signing in with a real Keycloak, prepared as the how-to says: who gets in, as whom, and which tokens never do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from tests.acceptance.driver import install, walk
from tests.acceptance.processes import Running, start
from tests.acceptance.test_sign_in import Pocket, find_port
from tests.emulators.signing import Key, encode, make_key
from tests.engines import keycloak
from tests.engines.keycloak import REDIRECT, KeycloakServer, Person

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]

KEY, THIEF = make_key("known", "RS256"), make_key("thief", "RS256")
HOUR = 3600
CLIENT_HOST = "clients.example.com"
"""Where the client has a page: one that registers itself says so, and Keycloak looks at that host, too."""


@dataclass(frozen=True)
class World:
    """Keycloak and refdesk, with people of two organizations."""

    keycloak: KeycloakServer
    url: str
    server: Running
    home: Path

    @property
    def issuer(self) -> str:
        return f"{self.keycloak.url}/realms/desk"

    def sign_in(self, person: Person, pocket: Pocket, *, registered: bool = True) -> OAuthClientProvider:
        """Let a person's client find its way; it knows the address of refdesk and, where registered, its own name."""
        if registered:
            pocket.client = OAuthClientInformationFull(
                client_id="refdesk-mcp",
                redirect_uris=[REDIRECT],  # pyright: ignore[reportArgumentType] - parsed by the model
                token_endpoint_auth_method="none",
                issuer=self.issuer,
            )
        metadata = OAuthClientMetadata(
            client_name="A client",
            client_uri=f"https://{CLIENT_HOST}/a-client",  # pyright: ignore[reportArgumentType] - parsed by the model
            redirect_uris=[REDIRECT],  # pyright: ignore[reportArgumentType] - parsed by the model
            token_endpoint_auth_method="none",
        )
        return OAuthClientProvider(f"{self.url}/mcp", metadata, pocket, person.visit, person.come_back)

    @asynccontextmanager
    async def connect(
        self, person: Person, pocket: Pocket | None = None, *, registered: bool = True
    ) -> AsyncGenerator[Client]:
        provider = self.sign_in(person, pocket or Pocket(), registered=registered)
        async with (
            httpx2.AsyncClient(auth=provider, timeout=120) as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client,
        ):
            yield client

    async def get_token(self, name: str, scope: str, realm: str = "desk") -> dict[str, Any]:
        """Return what Keycloak gives a user of the test's own client, which asks with the password."""
        form = {"grant_type": "password", "client_id": "direct", "username": name, "password": name}
        url = f"{self.keycloak.url}/realms/{realm}/protocol/openid-connect/token"
        async with httpx2.AsyncClient(timeout=120) as http:
            return (await http.post(url, data={**form, "scope": scope})).json()

    async def sign_in_to_console(self, browser: httpx2.AsyncClient, name: str, org: str) -> None:
        """Sign a person in with a browser that has no script."""
        person = Person(name, org, f"{self.url}/console/sign-in/return")
        begun = await browser.get("/console/sign-in/issuer")
        await person.visit(begun.headers["location"])
        assert (await browser.get(person.back)).status_code == 200

    def find_client(self, name: str) -> dict[str, Any]:
        return self.keycloak.administer("GET", f"/desk/clients?clientId={name}").json()[0]

    def find_user(self, name: str) -> str:
        return self.keycloak.administer("GET", f"/desk/users?username={name}").json()[0]["id"]

    def list_sessions(self, name: str) -> list[str]:
        """Return the clients that a user has a session with."""
        found = self.keycloak.administer("GET", f"/desk/users/{self.find_user(name)}/sessions").json()
        return [client for session in found for client in session["clients"].values()]

    def ask(self, token: str, path: str = "/knowledge/search", **headers: str) -> httpx2.Response:
        headers["authorization"] = f"Bearer {token}"
        return httpx2.post(f"{self.url}{path}", json={"query": "x"}, headers=headers, timeout=60)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    url, home = f"http://127.0.0.1:{find_port()}", tmp_path_factory.mktemp("home")
    with keycloak.running() as server:
        settle(server, f"{url}/mcp")
        variables = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_OAUTH_ISSUER": f"{server.url}/realms/desk",
            "REFDESK_OAUTH_AUDIENCE": f"{url}/mcp",
            "REFDESK_OAUTH_ORG_CLAIM": "organization",
            "REFDESK_OAUTH_MORE_SCOPES": "organization",
            "REFDESK_OAUTH_CONSOLE_CLIENT_ID": "refdesk-console",
        }
        with start(["-m", "refdesk", "serve", "--port", url.rpartition(":")[2]], home, **variables) as running:
            running.read_log("listening")
            yield World(server, url, running, home)


def settle(server: KeycloakServer, audience: str) -> None:
    for realm in ("desk", "other"):
        server.administer("POST", "", {"realm": realm, "enabled": True, "organizationsEnabled": True})
        first, again = server.prepare(realm, audience), server.prepare(realm, audience)
        assert ("made the client" in first, again) == (True, "")
        server.make(
            f"/{realm}/clients", {"clientId": "direct", "publicClient": True, "directAccessGrantsEnabled": True}
        )
        ann, bob, cleo = (server.make_user(realm, name) for name in ("ann", "bob", "cleo"))
        root = server.make_user(realm, "root", "refdesk-admin", "refdesk-editor")
        server.make_organization(realm, "acme", ann, cleo, root)
        server.make_organization(realm, "zenith", bob, cleo)
    server.sign_with("desk", KEY)


async def call(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer
    assert answer.structured_content is not None
    return answer.structured_content


async def test_people_sign_in_with_a_client_that_knows_the_address_and_each_works_in_its_org(world: World) -> None:
    ann, pocket = Person("ann"), Pocket()
    async with world.connect(ann, pocket) as client:
        stored = await call(client, "store_knowledge", title="Of acme", body="The zebra code.")
        tools = {tool.name for tool in (await client.list_tools()).tools}
    assert {"store_knowledge", "search_skills", "search_azure_updates"} <= tools
    assert "organization" in ann.asked
    assert not {"admin", "knowledge:write_others"} & set(ann.asked)
    async with world.connect(Person("bob")) as client:
        assert (await call(client, "search_knowledge", query="zebra"))["results"] == []
        answer = await client.call_tool("get_knowledge", {"id": stored["id"]})
        assert answer.is_error
    async with world.connect(Person("nobody-asks-twice"), pocket) as client:
        # The pocket still has ann's token: nobody has to sign in again.
        assert (await call(client, "get_knowledge", id=stored["id"]))["title"] == "Of acme"


@pytest.mark.parametrize(
    ("name", "choice"),
    [("ann", []), ("cleo", [["wait", "::-p-text(zenith)"], ["follow", "::-p-text(zenith)"]])],
    ids=["of one org", "of two"],
)
def test_people_sign_in_to_the_console_with_a_browser(
    world: World, pytestconfig: pytest.Config, name: str, choice: list[list[str]]
) -> None:
    wanted = "/console/browse/knowledge?age=7d"
    said = walk(
        install(pytestconfig),
        [
            ["open", f"{world.url}{wanted}"],
            ["follow", "main .actions a"],
            ["write", "#username", name],
            ["follow", "#kc-login"],
            *choice,
            ["write", "#password", name],
            ["click", "#kc-login"],
            ["wait", "nav[aria-label=Console] button"],
            ["where"],
            ["read", "nav button"],
            ["follow", "nav button"],
            ["read", "nav"],
        ],
    )
    assert said[0] == wanted
    assert said[1].startswith("Sign out oauth-")
    assert "Sign in" in said[2]


async def test_who_is_signed_in_to_the_console_stays_so_until_they_sign_out_or_are_thrown_out(world: World) -> None:
    """Access tokens of two seconds, refresh tokens that count once; she chose one of her two orgs, and stays in it."""
    console = world.find_client("refdesk-console")
    lifespan = {**console, "attributes": {**console["attributes"], "access.token.lifespan": "2"}}
    world.keycloak.administer("PUT", f"/desk/clients/{console['id']}", lifespan)
    world.keycloak.administer("PUT", "/desk", {"revokeRefreshToken": True, "refreshTokenMaxReuse": 0})
    async with httpx2.AsyncClient(base_url=world.url, timeout=120) as browser:
        await world.sign_in_to_console(browser, "cleo", "zenith")
        for _ in range(3):
            before = browser.cookies["refdesk_key"]
            while browser.cookies["refdesk_key"] == before:
                answers = await ask_at_once(browser, "/console/browse/knowledge", 5)
                assert [answer.status_code for answer in answers] == [200] * 5
            assert read_claims(browser.cookies["refdesk_key"])["organization"] == ["zenith"]
        kept = dict(browser.cookies)
        assert world.list_sessions("cleo") == ["refdesk-console"]
        assert (await browser.post("/console/sign-out")).status_code == 303
        assert world.list_sessions("cleo") == []
        browser.cookies.update(kept | {"refdesk_key": ""})
        assert (await browser.get("/console/browse/knowledge")).status_code == 303
        await world.sign_in_to_console(browser, "cleo", "acme")
        world.keycloak.administer("POST", f"/desk/users/{world.find_user('cleo')}/logout")
        status = 200
        while status == 200:  # until the access token is to be renewed, and that is refused
            browser.cookies.delete("refdesk_key")
            status = (await browser.get("/console/browse/knowledge")).status_code
        assert status == 303
    world.keycloak.administer("PUT", f"/desk/clients/{console['id']}", console)
    world.keycloak.administer("PUT", "/desk", {"revokeRefreshToken": False})


async def ask_at_once(browser: httpx2.AsyncClient, path: str, times: int) -> list[httpx2.Response]:
    answers: list[httpx2.Response] = []

    async def ask() -> None:
        answers.append(await browser.get(path))

    async with anyio.create_task_group() as group:
        for _ in range(times):
            group.start_soon(ask)
    return answers


async def test_who_belongs_to_two_orgs_chooses_one_at_sign_in_or_by_a_header(world: World) -> None:
    for org in ("acme", "zenith"):
        async with world.connect(Person("cleo", org)) as client:
            await call(client, "store_knowledge", title=f"Cleo of {org}", body="The heron report.")
            found = await call(client, "search_knowledge", query="heron")
        titles = [each["title"] for each in found["results"]]
        assert titles[0] == f"Cleo of {org}"
        assert len([title for title in titles if "Cleo" in title]) == 1
    token = (await world.get_token("cleo", "knowledge:read organization:*"))["access_token"]
    refused = world.ask(token)
    assert refused.status_code == 403
    assert refused.json()["error"]["details"] == {"orgs": ["acme", "zenith"]}
    assert "Refdesk-Org" in refused.json()["error"]["message"]
    assert [world.ask(token, **{"refdesk-org": org}).status_code for org in ("acme", "zenith", "other")] == [
        200,
        200,
        403,
    ]
    # And a client that can choose its scopes needs no header.
    one = (await world.get_token("cleo", "knowledge:read organization:zenith"))["access_token"]
    assert world.ask(one).status_code == 200
    # A token of one org opens no other, whatever the header says.
    ann = (await world.get_token("ann", "knowledge:read organization:*"))["access_token"]
    assert [world.ask(ann, **{"refdesk-org": org}).status_code for org in ("acme", "zenith")] == [200, 403]


async def test_no_user_gets_a_scope_that_is_not_for_it_whatever_its_client_asks_for(world: World) -> None:
    asked = "knowledge:read knowledge:write_others admin metrics:read organization:*"
    refused = await world.get_token("ann", asked)
    assert refused["error"] == "invalid_scope"  # there is no metrics:read
    asked = asked.replace("metrics:read ", "")
    ann, root = [(await world.get_token(name, asked)) for name in ("ann", "root")]
    assert not {"admin", "knowledge:write_others"} & set(ann["scope"].split())
    assert {"admin", "knowledge:write_others"} <= set(root["scope"].split())
    # Even a realm that gives `admin` away does not open what spans all orgs, unless the operator says so.
    for token in (ann, root):
        headers = {"authorization": f"Bearer {token['access_token']}"}
        assert httpx2.get(f"{world.url}/metrics", headers=headers, timeout=60).status_code == 403
        assert "pendingEmbeddings" not in httpx2.get(f"{world.url}/health", headers=headers, timeout=60).json()


async def test_a_client_may_register_itself_once_the_realm_trusts_its_host(world: World) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with world.connect(Person("ann"), registered=False):
            pass
    assert "Trusted Hosts" in str(find_cause(caught.value))
    kind = "org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy"
    policies = world.keycloak.administer("GET", f"/desk/components?type={kind}").json()
    [hosts] = [each for each in policies if each["providerId"] == "trusted-hosts"]
    hosts["config"] |= {"trusted-hosts": ["127.0.0.1", "localhost", CLIENT_HOST]}
    world.keycloak.administer("PUT", f"/desk/components/{hosts['id']}", hosts)
    pocket = Pocket()
    async with world.connect(Person("ann"), pocket, registered=False) as client:
        await call(client, "search_knowledge", query="zebra")
    assert pocket.client is not None
    assert pocket.client.client_id != "refdesk-mcp"
    assert pocket.token is not None
    assert read_claims(pocket.token.access_token)["organization"] == ["acme"]


def find_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    assert isinstance(error, OAuthRegistrationError)
    return error


def read_claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def forge(claims: dict[str, Any], key: Key = KEY, kid: str | None = None, /, **header: object) -> str:
    return key.sign(claims, **{"typ": "JWT", "kid": kid, **header})


def sign_by_secret(claims: dict[str, Any], secret: bytes, kid: str, algorithm: str = "HS256") -> str:
    """A token signed with what everybody knows of the issuer: its public key, taken for a shared secret."""
    header = {"alg": algorithm, "typ": "JWT", "kid": kid}
    signed = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(claims).encode())}"
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
    return f"{signed}.{encode(hmac.new(secret, signed.encode(), digest).digest())}"


def list_wrong_claims(claims: dict[str, Any]) -> dict[str, dict[str, Any]]:
    now, issuer = int(time.time()), str(claims["iss"])
    changes: dict[str, dict[str, Any]] = {
        "expired": {"exp": now - HOUR},
        "expired long ago": {"exp": 1},
        "endless": {"exp": None},
        "with an end that is none": {"exp": "tomorrow"},
        "of tomorrow": {"nbf": now + HOUR},
        "made tomorrow": {"iat": now + HOUR},
        "for nobody": {"aud": None},
        "for the account console": {"aud": "account"},
        "for a neighbour": {"aud": "https://other.example.com/mcp"},
        "for almost us": {"aud": str(claims["aud"][0]) + "/"},
        "of another realm": {"iss": issuer.replace("/desk", "/other")},
        "of another host": {"iss": issuer.replace("127.0.0.1", "localhost")},
        "of almost the issuer": {"iss": issuer + "/"},
        "of nobody": {"iss": None},
        "a refresh token": {"typ": "Refresh"},
        "an ID token": {"typ": "ID"},
        "an offline token": {"typ": "Offline"},
        "bound to a key": {"cnf": {"jkt": "x"}},
        "without a subject": {"sub": None},
    }
    whole = {name: {**claims, **change} for name, change in changes.items()}
    return {name: {key: value for key, value in each.items() if value is not None} for name, each in whole.items()}


def list_attacks(token: str, kid: str) -> dict[str, str]:
    """Tokens that are wrong in one thing each, most of them signed with the issuer's own key."""
    claims, (header, payload, signature) = read_claims(token), token.split(".")
    assert isinstance(KEY.private, rsa.RSAPrivateKey)
    public = KEY.private.public_key()
    form, pem, der = serialization.PublicFormat, serialization.Encoding.PEM, serialization.Encoding.DER
    secrets = {
        "PEM": public.public_bytes(pem, form.SubjectPublicKeyInfo),
        "PEM of RSA": public.public_bytes(pem, form.PKCS1),
        "DER": public.public_bytes(der, form.SubjectPublicKeyInfo),
        "DER of RSA": public.public_bytes(der, form.PKCS1),
    }
    secrets |= {"jwk": json.dumps(KEY.to_jwk()).encode(), "n": KEY.to_jwk()["n"].encode(), "nothing": b""}
    none = [encode(json.dumps({"alg": alg, "typ": "JWT", "kid": kid}).encode()) for alg in ("none", "None", "NONE", "")]
    flipped = base64.urlsafe_b64decode(signature + "==")
    attacks = {name: forge(each, KEY, kid) for name, each in list_wrong_claims(claims).items()}
    attacks |= {
        f"{algorithm} with the public key, {name}": sign_by_secret(claims, secret, kid, algorithm)
        for name, secret in secrets.items()
        for algorithm in ("HS256", "HS384", "HS512")
    }
    attacks |= {f"alg none {number}": f"{each}.{payload}." for number, each in enumerate(none)}
    attacks |= {f"alg none {number}, signed": f"{each}.{payload}.{signature}" for number, each in enumerate(none)}
    attacks |= {
        "by another key of that name": forge(claims, THIEF, kid),
        "by another key": forge(claims, THIEF, "thief"),
        "with its own key": forge(claims, THIEF, kid, jwk=THIEF.to_jwk()),
        "with an address of keys": forge(claims, THIEF, kid, jku="http://127.0.0.1:9/keys"),
        "with a certificate": forge(claims, THIEF, kid, x5c=["MIIB"]),
        "with a critical header": forge(claims, KEY, kid, crit=["exp"]),
        "typed otherwise": forge(claims, KEY, kid, typ="dpop+jwt"),
        "named by no key": forge(claims, KEY, "nobody"),
        "of another algorithm": forge(claims, KEY, kid, alg="PS256"),
        "without a signature": f"{header}.{payload}.",
        "with half a signature": f"{header}.{payload}.{signature[: len(signature) // 2]}",
        "with another signature": f"{header}.{payload}.{encode(bytes([flipped[0] ^ 1, *flipped[1:]]))}",
        "with more scopes": f"{header}.{encode(json.dumps({**claims, 'scope': 'admin'}).encode())}.{signature}",
        "of another org": f"{header}.{encode(json.dumps({**claims, 'organization': ['zenith']}).encode())}.{signature}",
        "of two parts": f"{header}.{payload}",
        "of four parts": f"{token}.{signature}",
        "of nothing": "..",
    }
    return attacks


async def test_no_wrong_token_opens_anything_and_none_is_told_from_another(world: World) -> None:
    genuine = await world.get_token("ann", "openid knowledge:read organization")
    token = genuine["access_token"]
    kid = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))["kid"]
    other = await world.get_token("ann", "openid knowledge:read organization", realm="other")
    attacks = list_attacks(token, kid) | {
        "Keycloak's own ID token": genuine["id_token"],
        "Keycloak's own refresh token": genuine["refresh_token"],
        "of the realm beside it": other["access_token"],
        "of the realm beside it, in our name": forge(
            {**read_claims(other["access_token"]), "iss": world.issuer}, THIEF, "thief"
        ),
    }
    # What the attacks are made from opens the door, as Keycloak made it and as the test signs it again.
    assert [world.ask(each).status_code for each in (token, forge(read_claims(token), KEY, kid))] == [200, 200]
    # Whoever is known, but in no org, is sent nowhere to sign in again.
    strangers = [forge({**read_claims(token), "organization": each}, KEY, kid) for each in ([], ["*"], None)]
    assert [world.ask(each).status_code for each in strangers] == [403] * 3
    bodies = set[str]()
    for name, attack in attacks.items():
        for path in ("/knowledge/search", "/mcp"):
            answer = world.ask(attack, path)
            assert answer.status_code == 401, name
            assert answer.headers["www-authenticate"].startswith("Bearer "), name
            bodies.add(answer.text)
    assert len(bodies) == 1
    assert len(attacks) > 60
    assert world.ask(token).status_code == 200
