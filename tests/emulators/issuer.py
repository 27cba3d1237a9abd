"""An authorization server in a process of its own: it describes itself, publishes its keys, and makes tokens.

What it does is scripted over the control side of every emulator here (`sample_world.control`): faults, and below it
`POST keys` (which keys there are and are published), `POST description` (what it says of itself, and where) and
`POST sign` (a token with any header and claims). `POST /token` is the client credentials grant (RFC 6749, section 4.4)
with resource indicators (RFC 8707), and, for the client that `POST client` registers, the authorization code grant with
PKCE (RFC 7636): `GET /authorize` shows whoever is there a page on which to agree or not. Where the client is to have
them, refresh tokens count once (RFC 6749, section 6): who brings one again ends the whole session (RFC 9700, section
4.14.2), and so does `POST /revoke` (RFC 7009).
"""

from __future__ import annotations

import argparse
import hashlib
import secrets
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote_plus, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from sample_world.control import CONTROL_PATH, Control
from sample_world.faults import FaultRule
from sample_world.process import RunningProcess, running_process
from sample_world.serving import add_listening_arguments, serve
from tests.emulators.signing import Key, encode, make_key

CLIENT, CLIENT_SECRET = "robot", "robots-secret"
FIRST_KEYS = [("rsa-1", "RS256"), ("ec-1", "ES256")]
EVERYWHERE = ("oauth", "openid")
TOKEN_SECONDS = 300
UNREACHED = ("status", "redirect", "reset", "hang")


class Issuer:
    """One authorization server."""

    def __init__(self, origin: str, path: str) -> None:
        self._origin, self._path = origin, path
        self.name = origin + path
        self._control = Control(_parse_rules, headers=("accept-encoding",))
        self._keys = {id: make_key(id, algorithm) for id, algorithm in FIRST_KEYS}
        self._published = [id for id, _ in FIRST_KEYS]
        self._cache_control: str | None = None
        self._said: dict[str, Any] = {}
        self._described_at: Sequence[str] = EVERYWHERE
        self._refused_scopes: Sequence[str] = ()
        self._client: dict[str, Any] = {}
        self._asked: dict[str, dict[str, str]] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshing: dict[str, tuple[str, dict[str, str]]] = {}
        self._ended: set[str] = set()
        self._used: dict[str, str] = {}

    def build_application(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                *self._control.build_routes(),
                Route(f"{CONTROL_PATH}/keys", self._set_keys, methods=["POST"]),
                Route(f"{CONTROL_PATH}/description", self._set_description, methods=["POST"]),
                Route(f"{CONTROL_PATH}/client", self._set_client, methods=["POST"]),
                Route(f"{CONTROL_PATH}/sign", self._sign, methods=["POST"]),
                Route("/{path:path}", self._serve, methods=["GET", "POST"]),
            ]
        )

    async def _serve(self, request: Request) -> Response:
        fault = self._control.next_fault(request)
        await request.body()  # kept, for the form and for the log
        # What does not reach the server uses up no code and no token.
        reaches = fault is None or fault.fault not in UNREACHED
        return await self._control.finish(request, await self._answer(request) if reaches else Response(), fault)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        if request.method == "POST" and path == f"{self._path}/token":
            form = await request.form()
            if form.get("grant_type") == "authorization_code":
                return self._redeem(request, form)
            if form.get("grant_type") == "refresh_token":
                return self._refresh(request, form)
            return self._grant(request, form)
        if request.method == "POST" and path == f"{self._path}/revoke":
            return self._revoke(request, await request.form())
        if path == f"{self._path}/authorize":
            return self._ask(request)
        if path == f"{self._path}/decide":
            return self._decide(request)
        if path == f"{self._path}/jwks":
            keys = [self._keys[id].to_jwk() for id in self._published]
            return JSONResponse({"keys": keys}, headers={"cache-control": self._cache_control or "no-store"})
        if path in self._find_descriptions():
            return JSONResponse(self._describe())
        return JSONResponse({"error": "not_found"}, 404)

    def _find_descriptions(self) -> list[str]:
        places = {
            "oauth": f"/.well-known/oauth-authorization-server{self._path}",
            "inserted": f"/.well-known/openid-configuration{self._path}",
            "openid": f"{self._path}/.well-known/openid-configuration",
        }
        return [places[kind] for kind in self._described_at]

    def _describe(self) -> dict[str, Any]:
        return {
            "issuer": self.name,
            "authorization_endpoint": f"{self.name}/authorize",
            "token_endpoint": f"{self.name}/token",
            "revocation_endpoint": f"{self.name}/revoke",
            "jwks_uri": f"{self.name}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **self._said,
        }

    def _grant(self, request: Request, form: Mapping[str, Any]) -> Response:
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        if scheme != "Basic" or b64decode(sent).decode() != f"{CLIENT}:{CLIENT_SECRET}":
            return JSONResponse({"error": "invalid_client"}, 401)
        if form.get("grant_type") != "client_credentials":
            return JSONResponse({"error": "unsupported_grant_type"}, 400)
        scope = " ".join(one for one in str(form.get("scope", "")).split() if one not in self._refused_scopes)
        now = int(time.time())
        claims = {
            "iss": self.name,
            "aud": str(form.get("resource")),
            "sub": CLIENT,
            "client_id": CLIENT,
            "org_id": "acme",
            "scope": scope,
            "iat": now,
            "exp": now + TOKEN_SECONDS,
        }
        token = self._keys[self._published[0]].sign(claims)
        return JSONResponse(
            {"access_token": token, "token_type": "Bearer", "expires_in": TOKEN_SECONDS, "scope": scope}
        )

    def _ask(self, request: Request) -> Response:
        """Show the page on which a person agrees or not; what may not be asked is answered 400."""
        asked = dict(request.query_params)
        right = {
            "response_type": "code",
            "client_id": self._client.get("id"),
            "redirect_uri": self._client.get("redirect_uri"),
            "code_challenge_method": "S256",
        }
        if any(asked.get(name) != value for name, value in right.items()) or len(asked.get("code_challenge", "")) != 43:
            return JSONResponse({"error": "invalid_request"}, 400)
        id = secrets.token_urlsafe(16)
        self._asked[id] = asked
        links = [f'<a id="{answer}" href="decide?id={id}&amp;answer={answer}">{answer}</a>' for answer in ("yes", "no")]
        icon = '<link rel="icon" href="data:,">'
        return HTMLResponse(f'<!doctype html><html lang="en"><title>Issuer</title>{icon}{" ".join(links)}</html>')

    def _decide(self, request: Request) -> Response:
        asked = self._asked.pop(request.query_params["id"])
        answer = {"state": asked["state"], "iss": self._client.get("iss", self.name)}
        if request.query_params["answer"] == "yes":
            answer["code"] = secrets.token_urlsafe(16)
            self._codes[answer["code"]] = asked
        else:
            answer["error"] = "access_denied"
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)

    def _redeem(self, request: Request, form: Mapping[str, Any]) -> Response:
        if not self._is_client(request.headers.get("authorization"), form):
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self._codes.pop(str(form.get("code")), None)
        challenge = encode(hashlib.sha256(str(form.get("code_verifier")).encode()).digest())
        if asked is None or challenge != asked["code_challenge"] or form.get("redirect_uri") != asked["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if form.get("resource") != asked.get("resource"):
            return JSONResponse({"error": "invalid_target"}, 400)
        return JSONResponse(self._give(asked, secrets.token_urlsafe(16)))

    def _refresh(self, request: Request, form: Mapping[str, Any]) -> Response:
        if not self._is_client(request.headers.get("authorization"), form):
            return JSONResponse({"error": "invalid_client"}, 401)
        brought = str(form.get("refresh_token"))
        self._ended |= {self._used[brought]} if brought in self._used else set()
        session, asked = self._refreshing.pop(brought, ("", {}))
        if not session or session in self._ended:
            return JSONResponse({"error": "invalid_grant"}, 400)
        self._used[brought] = session
        return JSONResponse(self._give(asked, session))

    def _revoke(self, request: Request, form: Mapping[str, Any]) -> Response:
        if not self._is_client(request.headers.get("authorization"), form):
            return JSONResponse({"error": "invalid_client"}, 401)
        self._ended.add(self._refreshing.pop(str(form.get("token")), ("", {}))[0])
        return Response(status_code=200)

    def _give(self, asked: dict[str, str], session: str) -> dict[str, Any]:
        """Return what a token endpoint answers; the client has `refreshes`, and `now` (seconds since 1970)."""
        now = self._client.get("now", int(time.time()))
        times = {"iat": now, "exp": now + TOKEN_SECONDS}
        facts = {"iss": self.name, "aud": asked["resource"], "client_id": asked["client_id"], "scope": asked["scope"]}
        claims = {**facts, **times, "sub": "ann", "org_id": "acme", **self._client.get("claims", {})}
        given = {"access_token": self._keys[self._published[0]].sign(claims), "token_type": "Bearer"}
        if not self._client.get("refreshes"):
            return given
        refresh = secrets.token_urlsafe(16)
        self._refreshing[refresh] = session, asked
        return {**given, "refresh_token": refresh}

    def _is_client(self, authorization: str | None, form: Mapping[str, Any]) -> bool:
        id, secret = self._client.get("id"), self._client.get("secret")
        if secret is None:
            return authorization is None and form.get("client_id") == id
        _, _, sent = (authorization or "").partition(" ")
        return b64decode(sent).decode() == f"{quote_plus(str(id))}:{quote_plus(secret)}"

    async def _set_client(self, request: Request) -> Response:
        self._client = await request.json()
        return Response(status_code=204)

    async def _set_keys(self, request: Request) -> Response:
        said = await request.json()
        for id, algorithm in said.get("made", {}).items():
            self._keys[id] = make_key(id, algorithm)
        self._published = said.get("published", self._published)
        self._cache_control = said.get("cache_control", self._cache_control)
        return Response(status_code=204)

    async def _set_description(self, request: Request) -> Response:
        said = await request.json()
        self._said = said.get("said", {})
        self._described_at = said.get("at", EVERYWHERE)
        self._refused_scopes = said.get("refused_scopes", ())
        return Response(status_code=204)

    async def _sign(self, request: Request) -> Response:
        said = await request.json()
        key: Key = self._keys[said["key"]]
        return Response(key.sign(said["claims"], **said["header"]), media_type="text/plain")


@dataclass(frozen=True, slots=True)
class RunningIssuer(RunningProcess):
    """A handle on the issuer's process; `url` is its name."""

    async def set_keys(
        self, published: Sequence[str], *, made: Mapping[str, str] | None = None, cache_control: str = "no-store"
    ) -> None:
        """Make keys (algorithms by id), and publish these from now on."""
        await self.call("POST", "keys", {"made": made or {}, "published": published, "cache_control": cache_control})

    async def describe(
        self, *, at: Sequence[str] = EVERYWHERE, refused_scopes: Sequence[str] = (), **said: object
    ) -> None:
        """Say `said` beside the truth, at these addresses: `oauth`, `inserted`, `openid`."""
        await self.call("POST", "description", {"at": at, "said": said, "refused_scopes": refused_scopes})

    async def register(self, id: str, redirect_uri: str, secret: str | None = None, **more: object) -> None:
        """Know this client, in place of any other.

        `more` is `claims`, which stand above what its tokens would have, `iss`, whom browsers are sent back by,
        `refreshes`, whether it is given refresh tokens, and `now`, where its clock stands (seconds since 1970).
        """
        await self.call("POST", "client", {"id": id, "redirect_uri": redirect_uri, "secret": secret, **more})

    async def sign(self, claims: Mapping[str, Any], key: str = "rsa-1", **header: object) -> str:
        """Return a token."""
        return (await self.call("POST", "sign", {"key": key, "claims": claims, "header": header})).decode()

    async def count(self, path: str) -> int:
        """Return how often an address that ends so was asked for."""
        return sum(str(request["path"]).endswith(path) for request in await self.requests())


@asynccontextmanager
async def running_issuer(path: str = "", host: str = "127.0.0.1") -> AsyncGenerator[RunningIssuer]:
    """Run an issuer, whose name has this host and path, while the block runs."""
    async with running_process("tests.emulators.issuer", ["--path", path, "--name", host]) as process:
        yield RunningIssuer(process.pid, process.said, process.control)


def _parse_rules(value: object) -> list[FaultRule]:
    return [FaultRule.model_validate(rule) for rule in cast("list[object]", value)]


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulators.issuer")
    add_listening_arguments(parser)
    parser.add_argument("--path", default="", help="what the issuer's name has behind its origin")
    parser.add_argument("--name", default="127.0.0.1", help="the host that it calls itself by")
    options = parser.parse_args()

    def build(origin: str) -> tuple[Starlette, Mapping[str, str]]:
        issuer = Issuer(origin.replace("127.0.0.1", options.name), options.path)
        return issuer.build_application(), {"url": issuer.name}

    serve(options, build)


if __name__ == "__main__":
    main()
