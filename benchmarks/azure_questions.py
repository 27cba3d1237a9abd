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
    Wanted(
        "retirements in the next 90 days",
        "496964 498563 498749 498754 499906 500273 500573 500578 500853 501673 501692 502623 509686 "
        "513892 516070 545771 555839 557406 558033 559311 564441 565393 567556 568457 568661 569535",
        many=True,
    ),
    Wanted("set up AKS backup with one command", "560521"),
    Wanted("Redis Entra authentication", "564873"),
    Wanted("When does Azure Sphere retire?", "557123"),
    Wanted("Until when can I use Azure CDN in China?", "501678"),
    Wanted("our functions app runs on linux consumption, what do we have to do?", "499451 559311"),
    Wanted("SSTP VPN end of support", "499923"),
    Wanted("which GPU VM series are going away in 2026", "500573 500578 516070", many=True),
    Wanted("Python 3.10 functions end of life date", "545771 509686"),
    Wanted("Is Python 3.14 supported in Azure Functions?", "567646"),
    Wanted("Go on Azure Functions", "562502"),
    Wanted("Redis Enterprise shutdown", "499606"),
    Wanted("what replaces Azure Cache for Redis and when is it retired", "499577 499606"),
    Wanted("AKS Kubernetes 1.34", "548114"),
    Wanted("confidential VMs that are generally available", "502874 558051 553966", many=True),
    Wanted("Claude Opus on Databricks", "555981 560590 568316", many=True),
    Wanted("move data from Google Cloud Storage to Azure", "566948"),
    Wanted("move data from AWS FSx", "567979"),
    Wanted("protect file shares against ransomware", "536699 560188"),
    Wanted("how can I block bots with a captcha", "512751"),
    Wanted("IPv6 on the firewall", "569520"),
    Wanted("ipv6 for my vpn gateway", "567847"),
    Wanted("node.js 20 end of support", "502957"),
    Wanted(".NET 8 EOL App Service", "558033"),
    Wanted("limits raised for NSG rules", "562695"),
    Wanted("masking sensitive data in Cosmos DB", "523726 559633"),
    Wanted("change the partition key of an existing container", "563017"),
    Wanted("restore a single file from a NetApp backup", "522077"),
    Wanted("PostgreSQL minor version updates", "503636 550164"),
    Wanted("run DuckDB queries inside postgres", "523559 563766"),
    Wanted("remote MCP servers on functions", "525505 525523 559981 562099"),
    Wanted("Azure SQL updates August 2026", "569145"),
    Wanted("What's new in Azure SQL in March 2026?", "558116 558121 558879 558884", many=True),
    Wanted("savings plan reservation exchange", "568514"),
    Wanted("log analytics export old data", "566591"),
    Wanted("Grafana essential tier retirement", "559395"),
    Wanted("Document Intelligence v3.0 API retirement", "561176"),
    Wanted("new storage price reductions", "499401 499406 499411", many=True),
    Wanted("Sentinel SAP connector agent retirement", "568457"),
    Wanted("Denmark region", "559406 560288"),
    Wanted("default outbound access retirement date", "515484"),
    Wanted("AVS AV36 nodes retirement", "503883 564735 557094"),
    Wanted("low priority VMs batch migrate to spot", "543279"),
    Wanted("resumable SFTP uploads", "499438"),
    Wanted("sign in to SFTP with Entra", "567085 558662"),
    Wanted("mTLS on Front Door", "569251"),
    Wanted("previews in Application Gateway WAF", "501323 530609 555205 557416 567218", many=True),
    Wanted(
        "private previews",
        "489745 500175 513752 526198 529806 530287 530661 531783 553999 555184 564446 564451 564495 564981 565000",
        many=True,
    ),
    Wanted("What GA'd in Azure Container Apps?", "512813 512850 525460 562559 562564 562511 562554", many=True),
    Wanted("Windows containers AKS server 2025", "526213"),
    Wanted("Ubuntu 24.04 on AKS", "536550 548096"),
    Wanted("what is in preview for Azure Front Door?", "567218 567402 569251 561148 512751", many=True),
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
