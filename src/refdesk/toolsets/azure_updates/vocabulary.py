"""The words used in updates, for completing words that occur in none of them and may be beginnings of words.

They are read only when such a word is met, and kept until the next sync.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import anyio.to_thread
import regex

from refdesk.core.search.analysis import QUOTED, analyse
from refdesk.core.search.folding import fold
from refdesk.model import FindRequest, TextQuery
from refdesk.toolsets.azure_updates.feeds import read_statuses
from refdesk.toolsets.azure_updates.models import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from refdesk.core.background.sync_log import SyncStatus
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Document
    from refdesk.protocols import Store
    from refdesk.toolsets.azure_updates.settings import Feed

LEAST_LETTERS = 3
"""Least letters of a beginning: fewer would begin nearly every word."""

LEAST_STEM = 4
"""Least letters of a stem by which words are taken to be related: *healing* and *healthy*."""

MOST_WORDS = 4
"""Most words that one beginning stands for: the most frequent ones."""

BATCH = 500
MOST_MET = 5000
_WORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")
_QUOTES_OR_WORD = regex.compile(rf"{QUOTED.pattern}|[^\W_][\w-]*\*?")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of all updates.

    Attributes:
        words: Each word once, folded, in order.
        uses: The number of updates that each occurs in, in the same order.
    """

    words: Sequence[str]
    uses: Sequence[int]

    def complete(self, beginning: str) -> list[str]:
        """Return the most frequent words that begin so, most frequent first, one of each that searches tell apart."""
        start = bisect_left(self.words, beginning)
        found: dict[tuple[str, ...], tuple[int, str]] = {}
        for at in range(start, len(self.words)):
            if not self.words[at].startswith(beginning):
                break
            terms, use = tuple(analyse(self.words[at])), (-self.uses[at], self.words[at])
            found[terms] = min(found.get(terms, use), use)
        return [word for _, word in sorted(found.values())[:MOST_WORDS]]


@dataclass(slots=True)
class _Known:
    """What is known of the words in a store's updates.

    Attributes:
        met: Words that were asked for and that some update contains.
        statuses: The sync states, by feed, that the vocabulary was read in.
    """

    met: set[str] = field(default_factory=set[str])
    statuses: Mapping[Feed, SyncStatus] | None = None
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary((), ()))


_known: WeakKeyDictionary[Store, _Known] = WeakKeyDictionary()


async def complete_words(knowledge_base: KnowledgeBase, query: str) -> tuple[str, Mapping[str, str]]:
    """Return the query with beginnings of words replaced by the words, and what each was replaced by.

    A beginning is a word followed by `*`, or one that occurs in no update but that other words begin with, else one
    whose stem they begin with. Of words joined by hyphens, only the last can be one; text in double quotes stays.
    """
    store = knowledge_base.store
    beginnings = [word for word in _list_candidates(query) if not await _occurs(store, word)]
    if not beginnings:
        return query, {}
    vocabulary = await _get_vocabulary(knowledge_base)
    found = {word: _find_words(vocabulary, word) for word in beginnings}
    replaced = {word: " ".join(words) for word, words in found.items() if words}
    return _QUOTES_OR_WORD.sub(lambda match: _replace(match[0], replaced), query), replaced


def _find_words(vocabulary: Vocabulary, word: str) -> list[str]:
    beginning, stems = fold(word.rstrip("*")), analyse(word)
    found = vocabulary.complete(beginning)
    if found or len(stems) != 1 or not LEAST_STEM <= len(stems[0]) < len(beginning):
        return found
    return vocabulary.complete(stems[0]) if beginning.startswith(stems[0]) else []


def _replace(word: str, replaced: Mapping[str, str]) -> str:
    before, _, last = _part(word)
    return f"{before} {replaced[last]}".lstrip() if last in replaced else word


def _part(word: str) -> tuple[str, str, str]:
    return ("", "", word) if QUOTED.fullmatch(word) else word.rpartition("-")


def _list_candidates(query: str) -> Iterator[str]:
    for match in _QUOTES_OR_WORD.finditer(query):
        word = _part(match[0])[2]
        if len(word.rstrip("*")) >= LEAST_LETTERS and word[0].isalpha():
            yield word


async def _occurs(store: Store, word: str) -> bool:
    """Return whether some update contains a form of the word; never true for a word followed by `*`."""
    if word.endswith("*"):
        return False
    met = _known.setdefault(store, _Known()).met
    if word not in met:
        text = TextQuery(tuple(dict.fromkeys(analyse(word))))
        found = await store.find(FindRequest(COLLECTION, text=text, depth=1, counts=False))
        if not found.candidates:
            return False
        if len(met) >= MOST_MET:
            met.clear()
        met.add(word)
    return True


async def _get_vocabulary(knowledge_base: KnowledgeBase) -> Vocabulary:
    """Return the vocabulary as of the last sync, including syncs by other processes."""
    store, statuses = knowledge_base.store, await read_statuses(knowledge_base)
    known = _known.setdefault(store, _Known())
    if known.statuses != statuses or not known.vocabulary.words:
        known.vocabulary, known.statuses = await _read(store), statuses
    return known.vocabulary


async def _read(store: Store) -> Vocabulary:
    ids = sorted(await store.get_digests(COLLECTION))
    uses: Counter[str] = Counter()
    for start in range(0, len(ids), BATCH):
        documents = await store.get_documents(COLLECTION, ids[start : start + BATCH])
        await anyio.to_thread.run_sync(_count, [each for each in documents if each is not None], uses)
    return await anyio.to_thread.run_sync(_make, uses)


def _count(documents: Iterable[Document], uses: Counter[str]) -> None:
    for document in documents:
        uses.update(set(_WORD.findall(fold(f"{document.title} {document.body}"))))


def _make(uses: Counter[str]) -> Vocabulary:
    words = sorted(uses)
    return Vocabulary(words, [uses[word] for word in words])
