"""A server with what a support team writes down, learns and is told, for the console's tests and pictures."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.acceptance.processes import WAIT_SECONDS, run, start
from tests.conftest import REPOSITORY

TALKS = REPOSITORY / "sample_world" / "conversations"
SCOPES = ("updates:read", "knowledge:read", "knowledge:write", "knowledge:write_others", "skills:read", "skills:write")
LIMIT = """Support may refund up to **{}** without asking anybody{}.

## Above the limit

Anything above goes to a team lead, who answers within one working day.{}

1. Open the order.
2. Choose *Refund*.
3. Write the reason{}.

The customer gets an e-mail when the money is on its way.
"""
NOTES = (
    ("Card payments fail on Sundays at 02:00 UTC", "The bank's gateway is down until 02:40.", ["payments", "outage"]),
    ("The hub blinks white while it updates", "Wait ten minutes. A reset loses the pairing.", ["hub", "firmware"]),
    ("Invoices carry the VAT id of the buyer", "Also for private customers in Italy.", ["billing", "policy"]),
    ("Two accounts with one e-mail address", "They can be merged by level two only.", ["accounts"]),
    ("Shipping to Norway needs a customs form", "Form CN23, three copies, in English.", ["shipping"]),
    ("Plus renews on the day it was bought", "Not on the first of the month.", ["plus", "billing"]),
    ("Chargebacks take up to 75 days", "The bank decides; tell the customer at once.", ["payments", "refunds"]),
)
OUTCOMES = (
    "resolved",
    "resolved",
    "failed",
    "resolved",
    "likely_resolved",
    "resolved",
    "failed",
    "resolved",
    "resolved",
)


@dataclass(frozen=True)
class World:
    """The server, the key of somebody who may do everything there, and the ids of what has a history."""

    url: str
    key: str
    note: str
    skill: str
    update: str

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return post(self.url, self.key, path, body)


def post(url: str, key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {key}"}
    answer = httpx2.post(url + path, json=body, headers=headers, timeout=3 * WAIT_SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextmanager
def open_world(home: Path) -> Generator[World]:
    """Yield a server that takes every caller; the key sees what is behind it, too."""
    with start(["-m", "sample_world.azure_updates", "--port", "0", "--day", "1"], home / "feed") as feed:
        addresses = feed.receive()
        serve = ["-m", "refdesk", "serve", "--no-auth", "--port", "0"]
        with start(serve, home, REFDESK_EMBEDDER="hashing", REFDESK_AZURE_UPDATES_URL=addresses["url"]) as server:
            url, key = server.read_log("listening")["url"], make_key(home)
            post(url, key, "/syncs", {"toolset": "azure-updates"})
            httpx2.post(f"{addresses['control']}/world", json={"day": 2}, timeout=WAIT_SECONDS).raise_for_status()
            post(url, key, "/syncs", {"toolset": "azure-updates", "full": True})
            changes = post(url, key, "/azure-updates/changes", {"kinds": ["changed"], "limit": 1})["changes"]
            yield World(url, key, write_notes(url, key), learn(url, key), changes[0]["id"])


def make_key(home: Path) -> str:
    scopes = [part for scope in (*SCOPES, "admin") for part in ("--scope", scope)]
    made = run(["keys", "create", "--org", "local", "--agent", "ann", *scopes, "--json"], home)
    return json.loads(made.stdout)["key"]


def write_notes(url: str, key: str) -> str:
    """Write the notes, one of them three times and in place of another, and return the id of what holds of that."""
    for title, body, tags in NOTES:
        post(url, key, "/knowledge", {"title": title, "body": body, "tags": tags})
    first = {"title": "Refunds up to 500 EUR need no approval", "body": LIMIT.format("500 EUR", "", "", "")}
    produced = {"taskRef": {"taskId": "T-1042", "kind": "produced"}}
    id = post(url, key, "/knowledge", {**first, "tags": ["refunds", "policy"], "confidence": 95, **produced})["id"]
    plus = {"title": "Refund limit for Plus customers", "body": "Plus customers get up to 300 EUR.", "tags": ["plus"]}
    other = post(url, key, "/knowledge", plus)["id"]
    finance = " Above 2,000 EUR the finance team has to agree, too."
    for amount, whom, reason in (
        ("200 EUR", "", ", and who agreed"),
        ("250 EUR", ", Plus included", ", and who agreed"),
    ):
        edit = {
            "title": f"Refunds up to {amount} need no approval",
            "body": LIMIT.format(amount, whom, finance, reason),
        }
        id = post(url, key, f"/knowledge/{id}/edit", edit)["id"]
    post(url, key, f"/knowledge/{other}/supersede", {"newId": id})
    return id


def learn(url: str, key: str) -> str:
    """Learn a skill of three conversations, report how it went, and return its id."""
    first, *others = [talk.read_text("utf-8") for talk in sorted(TALKS.glob("charged_twice*.txt"))[:3]]
    id = post(url, key, "/create", {"conversation": first})["skill_id"]
    post(url, key, "/create", {"conversation": (TALKS / "hub_white_ring.txt").read_text("utf-8")})
    for talk in others:
        post(url, key, "/update", {"skill_id": id, "conversation": talk})
    for outcome in OUTCOMES:
        post(url, key, "/outcome", {"skill_id": id, "outcome": outcome, "evidence": "The customer said so."})
    return id
