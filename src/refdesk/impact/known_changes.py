"""All announced changes, found by what a note names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from refdesk.impact.changes import Change
from refdesk.impact.matching import WEIGHTS, Match, Passage, match

LEAST = 0.8
"""The least weight of a term by which changes are looked up: more common terms would lead to most changes."""

WORTH_KEEPING = 0.3
"""A match of less confidence is not kept, whatever judgements of others could make of it."""


@dataclass(slots=True)
class KnownChanges:
    """Changes by id, and by the keys that lead to them."""

    by_id: dict[str, Change] = field(default_factory=dict[str, Change])
    _by_key: dict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))

    def put(self, change: Change) -> None:
        """Add a change, or replace it."""
        self.remove(change.id)
        self.by_id[change.id] = change
        for key in _list_keys(change):
            self._by_key[key].add(change.id)

    def remove(self, id: str) -> None:
        """Remove a change, if it is there."""
        old = self.by_id.pop(id, None)
        for key in _list_keys(old) if old is not None else ():
            self._by_key[key].discard(id)

    def find(self, passages: Sequence[Passage], weights: Mapping[str, float] = WEIGHTS) -> list[tuple[Change, Match]]:
        """Return the changes that a note relies on, surest first, ties by id."""
        ids = {id for passage in passages for key in _list_named(passage) for id in self._by_key.get(key, ())}
        if not any(passage.awaited for passage in passages):
            ids = {id for id in ids if self.by_id[id].kind != "releases"}
        found = [(change, match(change, passages, weights)) for change in map(self.by_id.__getitem__, ids)]
        sure = [(change, each) for change, each in found if each is not None and each.confidence >= WORTH_KEEPING]
        return sorted(sure, key=lambda pair: (-pair[1].confidence, pair[0].id))


def _list_keys(change: Change) -> Iterator[str]:
    yield from (f"product {product}" for product in change.products)
    yield from (f"series {name}" for name in change.series)
    yield from (f"version {version.name}" for version in change.versions)
    yield from (f"term {term}" for term, weight in change.terms.items() if weight >= LEAST)
    yield from (f"word {_first(name)}" for name in (*change.identifiers, *change.phrases))


def _list_named(passage: Passage) -> Iterable[str]:
    yield from (f"product {product}" for product in passage.product_ids)
    yield from (f"series {name}" for each in passage.series for name in each.names)
    yield from (f"version {version.name}" for version in passage.versions)
    yield from (f"term {term}" for term in passage.terms)
    yield from (f"word {_first(word)}" for word in passage.text.split())


def _first(name: str) -> str:
    """Return the key by which a name is looked up: the first letters and digits of its first word."""
    word = name.casefold().split()[0] if name.split() else ""
    return "".join(character for character in word if character.isalnum())[:12]
