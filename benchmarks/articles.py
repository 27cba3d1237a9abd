"""What refdesk adds to a search of Salesforce's articles, beside the same requests sent bare in the same run.

Run with `python -m benchmarks.articles [ROUNDS]`. The emulated org runs in a process of its own; bare and through
refdesk take turns, so that both meet the same machine. The promise is less than 5 ms above the upstream's own time.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio
import httpx2

from refdesk.toolsets.salesforce_knowledge import rows, statements
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.configuration import NEWEST_VERSION, SalesforceSettings
from sample_world.salesforce.ids import make_id
from sample_world.salesforce.process import RunningEmulator, running_emulator

ROUNDS = 200
ARTICLES = 60
PROMISED_MILLISECONDS = 5.0


def make_articles() -> list[dict[str, object]]:
    """Return articles of the size that real ones have: two sections of about 3,000 characters of HTML each."""
    text = "<p>Open the <b>portal</b>, choose a printer and follow the steps.</p><ul><li>One</li><li>Two</li></ul>" * 30
    return [
        {
            "number": number,
            "versions": [
                {
                    "title": f"Printer {number} prints nothing",
                    "summary": "What to do when a printer prints nothing.",
                    "url_name": f"printer-{number}",
                    "created": "2025-01-01T00:00:00Z",
                    "published": "2025-01-01T00:00:00Z",
                    "sections": {"Symptoms__c": text, "Resolution__c": text},
                }
            ],
        }
        for number in range(1, ARTICLES + 1)
    ]


async def time_in_turns(asks: list[Callable[[], Awaitable[object]]], rounds: int) -> list[list[float]]:
    """Return the milliseconds that each takes, round by round; a tenth of the rounds goes before."""
    taken: list[list[float]] = [[] for _ in asks]
    for round in range(-rounds // 10, rounds):
        for ask, times in zip(asks, taken, strict=True):
            start = perf_counter()
            await ask()
            if round >= 0:
                times.append(1000 * (perf_counter() - start))
    return taken


def show(name: str, bare: list[float], through: list[float]) -> float:
    """Print one line and return the milliseconds added, by the median of the pairs."""
    added = median(ours - theirs for theirs, ours in zip(bare, through, strict=True))
    ratio = median(through) / median(bare)
    print(f"{name:<8} bare {median(bare):6.2f} ms  through {median(through):6.2f} ms  {ratio:5.2f} x  +{added:5.2f} ms")
    return added


async def measure(emulator: RunningEmulator, rounds: int) -> list[float]:
    """Return the milliseconds that refdesk adds to a search and to a reading."""
    settings = SalesforceSettings(instance_url=emulator.url, access_token=emulator.access_token)
    headers = {"Authorization": f"Bearer {emulator.access_token}"}
    base = f"{emulator.url}/services/data/v{NEWEST_VERSION}.0/"
    id = make_id("ka0", 1001)
    async with (
        SalesforceSource(settings) as source,
        httpx2.AsyncClient(base_url=base, headers=headers, verify=False, trust_env=False) as http,
    ):
        await source.search("printer prints nothing")
        await source.get_article(id)
        versions = await source.catalogue.describe(statements.ARTICLE_VERSIONS)
        fields = versions.keep(rows.STANDARD_FIELDS, with_type=True)
        body = statements.build_search(statements.Search("printer prints nothing", "en_US", 10), fields)
        described = await source.catalogue.describe(rows.LIGHTNING_NAME)
        texts = (field.name for field in described.choose_body_fields(()))
        names = (*described.keep(rows.STANDARD_FIELDS, with_type=True), *texts)
        query = {"q": statements.build_version_query(described.name, names, id)}
        bare, through = await time_in_turns(
            [lambda: http.post("parameterizedSearch", json=body), lambda: source.search("printer prints nothing")],
            rounds,
        )
        added = show("search", bare, through)
        bare, through = await time_in_turns(
            [lambda: http.get("query", params=query), lambda: source.get_article(id)], rounds
        )
        return [added, show("reading", bare, through)]


async def main(rounds: int) -> bool:
    """Measure and say whether the promise holds."""
    with tempfile.TemporaryDirectory() as folder:
        articles = Path(folder) / "articles.json"
        articles.write_text(json.dumps(make_articles()), encoding="utf-8")
        async with running_emulator("lightning", articles=articles) as emulator:
            await emulator.set_usage(0, 10**6)
            added = await measure(emulator, rounds)
    print(f"promised: less than {PROMISED_MILLISECONDS:g} ms added to a search")
    return added[0] < PROMISED_MILLISECONDS


if __name__ == "__main__":
    sys.exit(not anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
