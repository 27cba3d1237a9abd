"""How well one list over several toolsets finds what was judged relevant, beside plain reciprocal ranks in one run.

Judged collections play the toolsets: one is ranked as `knowledge` ranks, two as `azure-updates` and `skills` do, one as
help articles come, by words alone and with no more than a title and a summary to judge them by. The parts go round.

*One knows*: each collection is a toolset, and each question is about one of them. *All know*: one collection is dealt
out at random, evenly or not, so that what answers a question is scattered. *Nobody knows*: questions about something
else. Vectors are kept in `.benchmarks/`, so that only the first run embeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from random import Random
from typing import TypeAlias

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.learning import read_foreign
from benchmarks.quality import (
    NEVER,
    Judged,
    LexicalIndex,
    Matrix,
    embed,
    get_data_folder,
    rank_cosines,
    rank_scores,
    read_collection,
)
from refdesk.core.search import cosines as cosine_scales
from refdesk.core.search import federation, fusion, matching
from refdesk.core.search.analysis import analyse, parse_query
from refdesk.core.search.passages import embedding_text, split
from refdesk.core.search.providers import HitReference, ProviderHit
from refdesk.core.search.snippets import WIDTH
from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES
from refdesk.model import Candidate
from refdesk.toolsets.knowledge.ranking import rank as rank_knowledge

COLLECTIONS = ("emanual", "cacm", "scifact", "xquad-en")
"""In one language and about four subjects, so that each question is about one of them."""

ASKED = 50
"""Questions of each collection, drawn at random."""

LIMIT = 10
PARTS = ("knowledge", "azure-updates", "skills", "articles")
"""As whom a collection is ranked, by the place of the list that `search` returns."""

DEALS = ((1, 1, 1, 1), (2, 10, 30, 58))
"""How a collection is dealt out: the share of each toolset."""

REFUSED = 0.4
"""The score below which nobody is taken to know the subject."""

Lists: TypeAlias = Mapping[str, Sequence[ProviderHit]]
Merge: TypeAlias = Callable[[Lists], Sequence[str]]
"""From the toolsets' lists to ids, best first."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The documents of one toolset, ready to be searched; they are named by their collection and number."""

    names: Sequence[str]
    index: LexicalIndex
    documents: Sequence[tuple[str, str]]
    terms: Sequence[frozenset[str]]
    passages: Matrix
    starts: NDArray[np.int64]
    summaries: Matrix


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its words, its vector, and which documents answer it how well."""

    text: str
    vector: NDArray[float32]
    relevant: Mapping[str, int]


def read_questions(collection: Judged, most: int = ASKED) -> list[Asked]:
    """Return the questions of a collection that are asked, at most so many."""
    vectors = embed(f"{collection.name}-queries", collection.queries, QUERY_PIECES)
    numbers = list(range(len(collection.queries)))
    Random(1).shuffle(numbers)
    return [
        Asked(
            collection.queries[number],
            vectors[number],
            {f"{collection.name}/{id}": gain for id, gain in collection.relevant[number].items()},
        )
        for number in numbers[:most]
    ]


def make_shelves(collection: Judged, deal: Sequence[int]) -> list[Shelf]:
    """Return the documents of a collection, dealt out at random by shares."""
    random, parts = Random(2), [list[int]() for _ in deal]
    for number in range(len(collection.documents)):
        parts[random.choices(range(len(deal)), deal)[0]].append(number)
    spans = [split(title, body) for title, body in collection.documents]
    passages = [
        embedding_text(title, body, span)
        for (title, body), own in zip(collection.documents, spans, strict=True)
        for span in own
    ]
    summaries = [embedding_text(title, body, (0, WIDTH)) for title, body in collection.documents]
    vectors = embed(f"{collection.name}-passages", passages, PASSAGE_PIECES)
    summary_vectors = embed(f"{collection.name}-summaries", summaries, PASSAGE_PIECES)
    first = np.cumsum([0, *(len(own) for own in spans)])
    return [_make_shelf(collection, part, first, vectors, summary_vectors) for part in parts]


def _make_shelf(
    collection: Judged, part: Sequence[int], first: NDArray[np.int64], vectors: Matrix, summaries: Matrix
) -> Shelf:
    documents = [collection.documents[number] for number in part]
    rows = [range(first[number], first[number + 1]) for number in part]
    return Shelf(
        [f"{collection.name}/{number}" for number in part],
        LexicalIndex(documents),
        documents,
        [frozenset((*analyse(title), *analyse(body))) for title, body in documents],
        vectors[[row for own in rows for row in own]],
        np.cumsum([0, *(len(own) for own in rows)])[:-1],
        summaries[list(part)],
    )


def find_candidates(shelf: Shelf, asked: Asked) -> list[Candidate]:
    """Return what the core's store would find, by words and by meaning."""
    terms = frozenset(parse_query(asked.text).terms)
    lexical = shelf.index.score(asked.text)
    cosines = np.maximum.reduceat(shelf.passages @ asked.vector, shelf.starts)
    near = rank_cosines(cosines)
    return [
        Candidate(
            str(number),
            NEVER,
            lexical.get(number, 0.0),
            float(cosines[number]),
            all_terms=bool(terms) and terms <= shelf.terms[number],
        )
        for number in dict.fromkeys([*rank_scores(lexical), *near])
    ]


def search(shelf: Shelf, asked: Asked) -> list[list[ProviderHit]]:
    """Return the list of each toolset: first as knowledge, then as updates and as skills, last as articles."""
    text, candidates = parse_query(asked.text), find_candidates(shelf, asked)
    cosines = {candidate.id: candidate.cosine for candidate in candidates}
    scores = dict(zip(cosines, fusion.absolute(candidates, text), strict=True))
    worded = sorted((c for c in candidates if c.lexical > 0), key=lambda c: (not c.all_terms, -c.lexical))
    fused = sorted(scores, key=lambda id: -scores[id])
    own = [[candidate.id for candidate, _ in rank_knowledge(candidates, text)], fused, fused]

    def find(id: str) -> ProviderHit:
        judged = matching.judge(text, *shelf.documents[int(id)], cosines[id], cosine_scales.REFERENCE)
        return make_finding(shelf.names[int(id)], judged, scores[id])

    def find_article(id: str) -> ProviderHit:
        cosine, (title, body) = float(shelf.summaries[int(id)] @ asked.vector), shelf.documents[int(id)]
        judged = matching.judge(text, title, body[:WIDTH], cosine, cosine_scales.REFERENCE, is_summary=True)
        return make_finding(shelf.names[int(id)], judged)

    articles = [find_article(candidate.id) for candidate in worded[:LIMIT]]
    return [*([find(id) for id in ranked[:LIMIT]] for ranked in own), articles]


def make_finding(id: str, strength: float, score: float = 1.0) -> ProviderHit:
    """Return a hit of which nothing but its relevance matters."""
    return ProviderHit(id=id, title="", snippet="", strength=strength, score=score, reference=HitReference("", {}))


def merge_by_rank(lists: Lists) -> list[str]:
    """Return the peer: plain reciprocal ranks, ties in the order of the toolsets."""
    ranks = [fusion.reciprocal_rank([[hit.id for hit in found]]) for found in lists.values()]
    scores = {id: score for own in ranks for id, score in own.items()}
    return sorted(scores, key=lambda id: -scores[id])


def merge_by_strength(lists: Lists) -> list[str]:
    """Return the other peer: the strongest first, wherever its toolset ranks it."""
    hits = [hit for found in lists.values() for hit in found]
    return [hit.id for hit in sorted(hits, key=lambda hit: -hit.relevance)]


def merge_as_refdesk(lists: Lists) -> list[str]:
    """Return what `search_everything` shows."""
    return [one.hit.id for one in federation.rank(lists)]


MERGES: Mapping[str, Merge] = {
    "plain reciprocal rank (peer)": merge_by_rank,
    "relevance alone": merge_by_strength,
    "as search_everything": merge_as_refdesk,
}


def measure(ranked: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return nDCG@10 with linear gains."""
    ideal = sum(gain / log2(place + 2) for place, gain in enumerate(sorted(relevant.values(), reverse=True)[:10]))
    return sum(relevant.get(id, 0) / log2(place + 2) for place, id in enumerate(ranked[:10])) / ideal


def ask(shelves: Sequence[Shelf], asked: Asked) -> list[Lists]:
    """Return the lists of the toolsets to a question, once for each way of giving them their parts."""
    lists = [search(shelf, asked) for shelf in shelves]
    return [{str(number): lists[number][(number + turn) % 4] for number in range(len(shelves))} for turn in range(4)]


def tell_who_knows(shelves: Sequence[Shelf], questions: Sequence[Sequence[Asked]]) -> None:
    """Print how often the right toolset comes first, is among the first three, and nDCG@10."""
    print(f"One of four knows{'':<19}{'first':>8}{'in 3':>8}{'nDCG@10':>9}")
    rows = {name: list[tuple[float, float, float]]() for name in (*MERGES, "the right toolset alone")}
    parts = {part: list[tuple[float, float]]() for part in PARTS}
    for right, own in enumerate(questions):
        for asked in own:
            for turn, lists in enumerate(ask(shelves, asked)):
                for name, merge in MERGES.items():
                    ranked = merge(lists)
                    of = [id.partition("/")[0] == COLLECTIONS[right] for id in ranked[:3]]
                    rows[name].append((float(of[:1] == [True]), float(any(of)), measure(ranked, asked.relevant)))
                alone = [hit.id for hit in lists[str(right)]]
                rows["the right toolset alone"].append((1.0, 1.0, measure(alone, asked.relevant)))
                together = measure(merge_as_refdesk(lists), asked.relevant)
                parts[PARTS[(right + turn) % len(PARTS)]].append((together, measure(alone, asked.relevant)))
    for name, values in rows.items():
        first, three, ndcg = np.mean(values, axis=0)
        print(f"  {name:<34}{first:>8.3f}{three:>8.3f}{ndcg:>9.3f}", flush=True)
    _tell_parts(parts)


def _tell_parts(parts: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    for part, pairs in parts.items():
        together, alone = (sum(values) / len(values) for values in zip(*pairs, strict=True))
        print(f"  … where {part} knows{'':<{13 - len(part)}}{together:>22.3f}, alone {alone:.3f}")


def tell_all_know(collections: Sequence[Judged], questions: Sequence[Sequence[Asked]]) -> None:
    """Print nDCG@10 where each collection is dealt out to four toolsets, and where it is kept in one."""
    print(f"All four know, nDCG@10{'':<14}" + "".join(f"{collection.name:>10}" for collection in collections))
    rows = {name: list[float]() for name in (*MERGES, "one toolset has all")}
    for collection, own in zip(collections, questions, strict=True):
        [whole] = make_shelves(collection, (1,))
        dealt = [make_shelves(collection, deal) for deal in DEALS]
        for name, merge in MERGES.items():
            values = [
                measure(merge(lists), asked.relevant)
                for shelves in dealt
                for asked in own
                for lists in ask(shelves, asked)
            ]
            rows[name].append(float(np.mean(values)))
        kept = [measure([hit.id for hit in search(whole, asked)[1]], asked.relevant) for asked in own]
        rows["one toolset has all"].append(float(np.mean(kept)))
    for name, values in rows.items():
        print(f"  {name:<34}" + "".join(f"{value:>10.3f}" for value in values), flush=True)


def tell_nobody_knows(shelves: Sequence[Shelf], questions: Sequence[Sequence[Asked]]) -> None:
    """Print how the best score tells a question that somebody can answer from one that nobody can."""
    texts = read_foreign(get_data_folder().parent)[:ASKED]
    if not texts:
        return
    vectors = embed("foreign-queries", texts, QUERY_PIECES)
    foreign = [Asked(text, vector, {}) for text, vector in zip(texts, vectors, strict=True)]
    own = [asked for of_one in questions for asked in of_one]
    refused, kept = (
        np.mean([_get_best(lists) < REFUSED for asked in group for lists in ask(shelves, asked)])
        for group in (foreign, own)
    )
    print(f"Nobody knows: below a score of {REFUSED} stay {refused:.1%} of foreign questions, {kept:.1%} of the others")


def _get_best(lists: Lists) -> float:
    return max((one.score for one in federation.rank(lists)), default=0.0)


def main() -> None:
    """Print the tables."""
    folder = get_data_folder()
    if not all((folder / name).is_dir() for name in COLLECTIONS):
        sys.exit(f"No collections in {folder}: set REFDESK_TEST_DATA to the folder of real records.")
    collections = [read_collection(folder / name) for name in COLLECTIONS]
    questions = [read_questions(collection) for collection in collections]
    shelves = [shelf for collection in collections for shelf in make_shelves(collection, (1,))]
    tell_who_knows(shelves, questions)
    tell_all_know(collections, questions)
    tell_nobody_knows(shelves, questions)


if __name__ == "__main__":
    main()
