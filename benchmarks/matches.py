"""Whether `match` tells what is known from what is not: every toolset asked about its subject, and about others.

    python -m benchmarks.matches

Each judged collection is asked its own questions and those of the others, once as `search_knowledge` finds, once by
words alone, and once as help articles come, with no more than a title and a summary to judge. Real announcements are
asked questions of ours, and skills learned from real conversations the openings of others; both also what the
collections and a bank's customers ask. Printed are, for each, the area under the curve of the best hit's strength, how
often a question about something else finds a strong match, and how often one about the subject finds only weak ones.
Last, each collection is judged by thresholds that were fitted on the others alone. Vectors are kept in `.benchmarks/`,
so that only the first run embeds.

Further folders of judged collections, `--folder`, are asked by words alone, those in one folder each other's questions:
for other languages, of which no vectors of the packaged model are trusted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from benchmarks import azure_questions
from benchmarks.everything import COLLECTIONS, Asked, Shelf, find_candidates, make_shelves, read_questions
from benchmarks.learning import LEARNED, SAME_DOMAIN, learn_all, read_foreign, read_talks, take
from benchmarks.quality import LexicalIndex, get_data_folder, rank_scores, read_collection
from refdesk.core.search import cosines, matching
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.retrieval import SearchRequest
from refdesk.core.search.snippets import WIDTH
from refdesk.embedders.local import LocalEmbedder
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.knowledge.ranking import rank
from refdesk.toolsets.skills.openings import leave_pleasantries
from refdesk.toolsets.skills.queries import get_queries

LIMIT = 10
LEARNED_EACH = 5
"""Conversations learned into each skill."""

ASKED = 150
"""Questions of each collection, where it has so many."""

TALKS = 150
FOREIGN = 120

MOST = 0.03
"""Of questions about something else that may find a strong match, and of those about the subject that may find none."""

ABOUT_AZURE = (
    "when does azure databricks standard tier end",
    "is .NET 10 supported in azure functions",
    "DuckDB in PostgreSQL",
    "encrypt disks of virtual machines, what replaces azure disk encryption",
    "web application firewall insights",
    "sharing reserved capacity between subscriptions",
    "large volumes in azure netapp files",
    "regular expressions in T-SQL",
    "visual studio 2026",
    "load balancer metrics by protocol",
    "premium SSD v2 in Austria",
    "object replication for blobs with priority",
    "run Azure Linux on WSL",
    "prometheus metrics of the kubernetes control plane",
    "istio with application gateway for containers",
    "change event streaming from azure sql",
    "arm based virtual machines cobalt",
    "remote MCP servers on azure functions",
    "log alerts azure monitor",
    "migrate postgresql databases discover and assess",
    "sign in to remote desktop with entra",
    "defender for cloud and github advanced security",
    "what happened to Azure DNS zone endpoints of storage accounts",
    "expressroute resiliency",
    "image generation model in foundry",
    "multi agent orchestration framework",
    "private endpoints for azure AI search",
    "mysql flexible server quota",
    "mongodb vcore shards rebalance",
    "language service features that are retired",
)


@dataclass(slots=True)
class Strengths:
    """How strong the best hit was, for questions about the subject and about something else."""

    own: list[float] = field(default_factory=list[float])
    foreign: list[float] = field(default_factory=list[float])

    def get_area(self) -> float:
        """Return how often a question about the subject has a stronger hit than one about something else."""
        foreign = sorted(self.foreign)
        pairs = [(bisect_left(foreign, own), bisect_right(foreign, own)) for own in self.own]
        return sum(below + not_above for below, not_above in pairs) / (2 * len(pairs) * len(foreign))

    def get_wrongly_strong(self, threshold: float = matching.STRONG) -> float:
        """Return the share of the questions about something else that find a strong match."""
        return float(np.mean(np.array(self.foreign) >= threshold))

    def get_wrongly_weak(self, threshold: float = matching.PARTIAL) -> float:
        """Return the share of the questions about the subject that find only weak matches."""
        return float(np.mean(np.array(self.own) < threshold))


Measured = Mapping[str, Mapping[str, Strengths]]
"""By toolset and collection."""


def judge(shelf: Shelf, asked: Asked) -> dict[str, float]:
    """Return how strong the best hit is, for each way of searching."""
    text, candidates = parse_query(asked.text), find_candidates(shelf, asked)
    with_vectors = [(int(each.id), each.cosine) for each, _ in rank(candidates, text)[:LIMIT]]
    lexical = {int(each.id): each.lexical for each in candidates if each.lexical > 0}
    worded = rank_scores(lexical)[:LIMIT]

    def judge_one(number: int, cosine: float | None, width: int | None = None) -> float:
        title, body = shelf.documents[number]
        return matching.judge(text, title, body[:width], cosine, cosines.REFERENCE, is_summary=width is not None)

    found = {
        "knowledge": [judge_one(*pair) for pair in with_vectors],
        "knowledge, words alone": [judge_one(number, None) for number in worded],
        "salesforce-knowledge": [
            judge_one(number, float(shelf.summaries[number] @ asked.vector), WIDTH) for number in worded
        ],
    }
    return {name: max(values, default=0.0) for name, values in found.items()}


def ask_collections(folder: Path) -> dict[str, dict[str, Strengths]]:
    """Return what the judged collections say."""
    collections = [read_collection(folder / name) for name in COLLECTIONS]
    questions = {collection.name: read_questions(collection, ASKED) for collection in collections}
    measured: dict[str, dict[str, Strengths]] = {}
    for collection in collections:
        [shelf] = make_shelves(collection, (1,))
        for source, all_asked in questions.items():
            for asked in all_asked:
                for way, strength in judge(shelf, asked).items():
                    of = measured.setdefault(way, {}).setdefault(collection.name, Strengths())
                    (of.own if source == collection.name else of.foreign).append(strength)
    return measured


async def ask_azure(foreign: Sequence[str]) -> Strengths:
    """Return what the real announcements say, as the tool finds them."""
    own = [*(wanted.question for wanted in azure_questions.QUESTIONS), *ABOUT_AZURE]
    with tempfile.TemporaryDirectory() as folder:
        async with azure_questions.open_updates(Path(folder)) as context:

            async def ask(question: str) -> float:
                request = SearchRequest(COLLECTION, question, semantic=True, limit=LIMIT, quotes_bind=True)
                found = await context.knowledge_base.search(request)
                return max((hit.strength for hit in found.hits), default=0.0)

            return Strengths([await ask(each) for each in own], [await ask(each) for each in foreign])


async def ask_skills(folder: Path, foreign: Sequence[str]) -> Strengths:
    """Return what skills say that were learned from conversations, asked how others begin."""
    drawn, talks = read_talks(folder, 1)
    async with LocalEmbedder() as embedder:
        await embedder.load()
        learned = await learn_all(take(drawn, min(LEARNED_EACH, LEARNED)), embedder)
        queries = get_queries(learned.context)

        async def ask(question: str) -> tuple[str, float]:
            asked = leave_pleasantries(question)  # as the tool does
            text, vector = parse_query(asked), await embedder.embed_query(asked)
            found = await queries.hybrid_search(vector.tolist(), asked, LIMIT)
            strengths = [
                matching.judge(text, one["skill"].title, one["skill"].body, one["cosine"], cosines.REFERENCE)
                for one in found
            ]
            best = learned.tasks[found[0]["skill"].skill_id] if found else ""
            return best, max(strengths, default=0.0)

        own = [await ask(" ".join(talk.said[:2]) or "-") for talk in talks[:: max(1, len(talks) // TALKS)]]
        others = [await ask(each) for each in foreign]
    return Strengths(
        [strength for _, strength in own],
        [strength for task, strength in others if not task.startswith(SAME_DOMAIN)],
    )


def write_table(measured: Measured) -> list[str]:
    """Return a line for each toolset and collection."""
    head = f"{'':<26}{'collection':<16}{'area':>8}{'foreign, strong':>17}{'own, only weak':>16}"
    return [head] + [
        f"{toolset:<26}{name:<16}{of.get_area():>8.3f}{of.get_wrongly_strong():>17.1%}{of.get_wrongly_weak():>16.1%}"
        for toolset, by_name in measured.items()
        for name, of in (*by_name.items(), *([("all", join(by_name.values()))] if len(by_name) > 1 else []))
    ]


def join(parts: Iterable[Strengths]) -> Strengths:
    """Return all of them as one."""
    whole = Strengths()
    for part in parts:
        whole.own += part.own
        whole.foreign += part.foreign
    return whole


def fit(measured: Mapping[str, Strengths]) -> list[str]:
    """Return what thresholds do on each collection that were fitted on the others, with room for what is still unlike.

    A threshold keeps to half of what may be wrong on each of the others, so that the one most unlike decides.
    """
    lines: list[str] = []
    for name, of in measured.items():
        others = [other for each, other in measured.items() if each != name]
        strong = max(float(np.quantile(other.foreign, 1 - MOST / 2)) for other in others)
        partial = min(float(np.quantile(other.own, MOST / 2)) for other in others)
        lines.append(
            f"  {name:<16} strong {strong:.3f}, partial {partial:.3f}:"
            f" foreign, strong {of.get_wrongly_strong(strong):.1%}; own, only weak {of.get_wrongly_weak(partial):.1%}"
        )
    return lines


def ask_by_words(folder: Path) -> dict[str, Strengths]:
    """Return what the judged collections of a folder say by words alone, each asked the questions of all."""
    collections = [read_collection(path.parent) for path in sorted(folder.glob("*/qrels.tsv"))]
    asked = {each.name: Random(1).sample(each.queries, min(ASKED, len(each.queries))) for each in collections}
    measured: dict[str, Strengths] = {}
    for collection in collections:
        index, of = LexicalIndex(collection.documents), measured.setdefault(collection.name, Strengths())
        for source, questions in asked.items():
            for question in questions:
                text, found = parse_query(question), rank_scores(index.score(question))[:LIMIT]
                strengths = [matching.judge(text, *collection.documents[number]) for number in found]
                (of.own if source == collection.name else of.foreign).append(max(strengths, default=0.0))
    return measured


async def measure(folder: Path) -> dict[str, dict[str, Strengths]]:
    """Return what every toolset says."""
    measured, bank = ask_collections(folder), read_foreign(folder.parent)[: FOREIGN // 4]
    others = [asked.text for name in COLLECTIONS for asked in read_questions(read_collection(folder / name))]
    foreign = [*others[:: max(1, len(others) // FOREIGN)], *bank]
    if azure_questions.read_records():
        measured["azure-updates"] = {"announcements": await ask_azure(foreign)}
    if (folder.parent / "star").is_dir():
        measured["skills"] = {"conversations": await ask_skills(folder.parent / "star", foreign)}
    return measured


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, action="append", default=[], help="further collections, by words alone")
    more: list[Path] = parser.parse_args().folder
    folder = get_data_folder()
    if not all((folder / name).is_dir() for name in COLLECTIONS):
        sys.exit(f"No collections in {folder}: set REFDESK_TEST_DATA to the folder of real records.")
    measured = asyncio.run(measure(folder)) if not more else {each.name: ask_by_words(each) for each in more}
    print("\n".join(write_table(measured)))
    print(f"Thresholds: strong {matching.STRONG}, partial {matching.PARTIAL}. Those fitted on the others:")
    for name, by_collection in measured.items():
        if len(by_collection) > 1:
            print("\n".join([name, *fit(by_collection)]))


if __name__ == "__main__":
    main()
