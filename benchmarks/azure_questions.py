"""What a cloud engineer asks of the real announcements, and whether the answer is among the first three.

Each question names the updates that a person would want to see. Where one of them answers it, one must be among the
first three; where it asks for many, all of the first three must be of those. Asked are the search of updates and,
beside it, the updates in the one search over everything.

    python -m benchmarks.azure_questions [--show]

`--show` prints the first three of every question. The day on which they are asked is that of the newest record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.quality import get_data_folder
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.providers import ProviderAnswer, ProviderHit, Question
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.azure_updates.models import SearchInput, Update
from refdesk.toolsets.azure_updates.provider import FIND
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.search import search_updates

ASKED_ON = datetime(2026, 8, 21, 12, tzinfo=UTC)
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question, the ids of what answers it, and whether it asks for many."""

    question: str
    ids: str
    many: bool = False

    def is_answered(self, shown: Sequence[str]) -> bool:
        """Return whether the first ids shown answer it."""
        good = [id in self.ids.split() for id in shown[:SHOWN]]
        return bool(good) and (all(good) if self.many else any(good))


QUESTIONS = (
    Wanted(
        "Which virtual machine series are being retired before June 2027?",
        "500573 500578 548543 548497 548525 559751 516070 568661",
        many=True,
    ),
    Wanted("What is retired in AKS this year?", "557929 502044 497368 557224 500273 555839 499906 500294", many=True),
    Wanted("copilot in the Azure portal news", "569685 528538 526751 520762"),
    Wanted("machines that heal themselves", "501999"),
    Wanted("self-healing machines", "501999"),
    Wanted("Is Azure HorizonDB generally available?", "563087 529806"),
    Wanted("Which AKS features went GA in March 2026?", "557907 557892 557902 557897 557882 560521 557887", many=True),
    Wanted("TLS 1.0 end of support app service", "557852"),
    Wanted("new Azure regions opened in 2026", "559406 568013 553999"),
    Wanted("cheaper disks", "499401 499411 499406", many=True),
    Wanted("Ubuntu 22.04 node images end of support", "557928"),
    Wanted("can I check whether my PostgreSQL can be upgraded before I try", "568419 563786"),
    Wanted("encrypt traffic between pods", "560015"),
    Wanted("Claude models in Foundry", "532303 534541 555870 563026", many=True),
    Wanted("migrate from AWS S3 to blob storage", "558651 514653"),
    Wanted("APIM premium v2", "527612"),
    Wanted("confidential computing previews", "525455 530661 564495 523564 489745 565000", many=True),
    Wanted("Windows Server 2022 retirement", "558247 499906"),
    Wanted("when do I have to move off Azure Blueprints?", "564806"),
    Wanted("GPUs without managing servers in container apps", "525460"),
    Wanted("retirements in the next 90 days", "568457 568661 567556 569535 558033 500573 500578 509686", many=True),
    Wanted("set up AKS backup with one command", "560521"),
    Wanted("Redis Entra authentication", "564873"),
)


def read_records() -> list[dict[str, object]]:
    """Return the real records; none where they are absent."""
    path = get_data_folder().parent / "azure-updates" / "archive.json"
    return json.loads(path.read_text(encoding="utf-8"))["items"] if path.exists() else []


@asynccontextmanager
async def open_updates(folder: Path) -> AsyncGenerator[Context]:
    """Return what asks all records, with the vectors of the local model, on the day of the newest."""
    clock, embedder = FixedClock(ASKED_ON), LocalEmbedder()
    async with embedder, open_store(folder / "store.sqlite3") as store:
        semantics = Semantics(store, embedder)
        async with store.transaction() as transaction:
            await transaction.put_documents([to_document(record) for record in read_records()])  # pyright: ignore[reportArgumentType]
        await Indexer(store, semantics, clock).run_once()
        reader = Principal("benchmark", "reader", frozenset({"updates:read"}))
        yield Context(reader, KnowledgeBase(store, semantics, clock))


async def ask(context: Context, question: str) -> list[Update]:
    """Return the first answers to a question put as it is."""
    request = SearchInput.model_validate({"query": question, "limit": SHOWN, "includeDescription": False})
    return (await search_updates(context, request)).results


async def ask_in_one_list(context: Context, question: str) -> list[ProviderHit]:
    """Return the first answers that the updates give where everything is asked."""
    answer = await FIND(context, Question(question, limit=SHOWN))
    return list(answer.hits) if isinstance(answer, ProviderAnswer) else []


async def run(*, show: bool) -> int:
    """Print how each question is answered; return how many are answered well."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_updates(Path(folder)) as context:
            answered = in_one_list = 0
            for wanted in QUESTIONS:
                updates = await ask(context, wanted.question)
                is_good = wanted.is_answered([update.id for update in updates])
                answered += is_good
                hits = await ask_in_one_list(context, wanted.question)
                in_one_list += wanted.is_answered([hit.id for hit in hits])
                print(f"{'good' if is_good else 'BAD':<6}{wanted.question}")
                for update in updates if show or not is_good else []:
                    print(f"      {update.id}  {update.title}")
    print(f"{answered} of {len(QUESTIONS)} answered among the first {SHOWN}; where everything is asked, {in_one_list}")
    return answered


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not read_records():
        sys.exit("No real announcements here: set REFDESK_TEST_DATA to the folder of real records.")
    asyncio.run(run(show=options.show))


if __name__ == "__main__":
    main()
