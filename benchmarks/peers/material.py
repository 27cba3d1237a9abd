"""What is stored and asked: invented notes, and facts that are corrected twice."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass

from benchmarks.peers.rival import REPOSITORY, Note

WORDS_OF_A_NOTE = 40
SEED = 11

MOST_EMBEDDED = 1_000
"""Up to so many notes each rival embeds all that it is filled with; of more, what another has embedded is taken."""


class Writer:
    """Writes notes of the words of this repository's pages, as unevenly drawn as they occur there."""

    def __init__(self, seed: int = SEED) -> None:
        pages = sorted((REPOSITORY / "docs").glob("how-to/*.md"))
        counts = Counter(re.findall(r"[a-z]{3,}", " ".join(page.read_text("utf-8") for page in pages).lower()))
        self._words, self._weights = list(counts), list(counts.values())
        self._chance = random.Random(seed)
        self._number = 0

    def write(self, count: int) -> list[Note]:
        """Return so many notes; no two have a title in common."""
        return [self._write() for _ in range(count)]

    def ask(self, count: int) -> list[str]:
        """Return so many questions of four of the rarer words."""
        rarer = sorted(zip(self._weights, self._words, strict=True))[: len(self._words) // 2]
        return [" ".join(word for _, word in self._chance.sample(rarer, 4)) for _ in range(count)]

    def _write(self) -> Note:
        self._number += 1
        words = self._chance.choices(self._words, self._weights, k=WORDS_OF_A_NOTE)
        title = f"{' '.join(words[:4]).capitalize()} {self._number}"
        return Note(f"k-{self._number:06}", title, f"{' '.join(words).capitalize()}.")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact in three generations, each with a value that no other has, and three ways to ask for it.

    Attributes:
        notes: The generations, oldest first, all with one key.
        values: What each says.
        questions: By kind: in the words of the oldest, of the newest, and in others.
    """

    notes: tuple[Note, Note, Note]
    values: tuple[str, str, str]
    questions: dict[str, str]


KINDS: tuple[str, ...] = ("old wording", "new wording", "paraphrase")
_TOPICS = (
    (
        "refund limit",
        "{who} pays refunds of up to {value} euros without asking a manager.",
        "Since spring the ceiling for reimbursements at {who} is {value} euros.",
        "From now on {who} may return {value} euros to a buyer before a supervisor signs.",
        "up to what sum can {who} give money back on its own",
    ),
    (
        "parcel deadline",
        "{who} promises that a parcel leaves the depot within {value} minutes.",
        "The dispatch window for shipments from {who} was changed to {value} minutes.",
        "Consignments of {who} have to be handed to the carrier after {value} minutes at the latest.",
        "how fast must {who} send goods off",
    ),
    (
        "door code",
        "The door of the archive of {who} opens with the code {value}.",
        "The keypad at the records room of {who} was reset: the digits are {value}.",
        "To enter the document store of {who}, type {value}.",
        "what must be typed to get into the files room of {who}",
    ),
    (
        "storage quota",
        "Every mailbox of {who} has a storage quota of {value} megabytes.",
        "Administrators enlarged the space for e-mail at {who} to {value} megabytes.",
        "An inbox at {who} now holds {value} megabytes before it refuses messages.",
        "how much mail can somebody at {who} keep",
    ),
    (
        "support extension",
        "The hotline of {who} is reached at extension {value}.",
        "Callers who need help from {who} are now put through to {value}.",
        "The desk that assists customers of {who} answers on line {value}.",
        "which number connects to the assistance of {who}",
    ),
    (
        "machine temperature",
        "The kiln of {who} is run at {value} degrees.",
        "Firing at {who} was adjusted: the furnace is set to {value} degrees.",
        "{who} heats its oven to {value} degrees since the refit.",
        "how hot does {who} burn its ware",
    ),
)
_NAMES = (
    *("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel", "Ivy", "Juniper", "Kauri", "Larch"),
    *("Maple", "Nutmeg", "Oak", "Pine", "Quince", "Rowan", "Spruce", "Teak", "Umbrella", "Viburnum", "Willow"),
    *("Yew", "Zelkova"),
)
_PLACES = ("Lisbon", "Riga")


def make_facts(count: int) -> list[Fact]:
    """Return so many facts, at most 300, each about a topic of a team that no other fact is about."""
    teams = [f"team {name} in {place}" for place in _PLACES for name in _NAMES]
    pairs = [(who, topic) for topic in _TOPICS for who in teams]
    random.Random(SEED).shuffle(pairs)
    values = random.Random(SEED + 1).sample(range(1000, 9999), 3 * count)
    return [
        _make_fact(number, who, topic, values[3 * number : 3 * number + 3])
        for number, (who, topic) in enumerate(pairs[:count])
    ]


def _make_fact(number: int, who: str, topic: tuple[str, ...], values: list[int]) -> Fact:
    name, *wordings, paraphrase = topic
    first, second, third = (str(value) for value in values)
    bodies = [form.format(who=who, value=value) for form, value in zip(wordings, values, strict=True)]
    one, two, three = (Note(f"k-{number:06}", f"{who.capitalize()}: {name}", body) for body in bodies)
    bare = [re.sub(r"\s+", " ", form.format(who=who, value="")) for form in wordings]
    questions = dict(zip(KINDS, (bare[0], bare[2], paraphrase.format(who=who)), strict=True))
    return Fact((one, two, three), (first, second, third), questions)
