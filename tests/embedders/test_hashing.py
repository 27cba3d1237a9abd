from __future__ import annotations

import numpy as np
import pytest

from refdesk.embedders.hashing import HashingEmbedder, embed


async def test_a_text_always_has_the_same_unit_vector() -> None:
    async with HashingEmbedder() as embedder:
        assert embedder.is_ready
        await embedder.load()
        [one, other] = await embedder.embed_passages(["Reset the password", "reset  THE passwords!"])
        query = await embedder.embed_query("Reset the password")
    assert one.shape == (embedder.model.dimensions,)
    assert one.dtype == np.float32
    assert np.linalg.norm(one) == pytest.approx(1.0)
    assert np.array_equal(one, other)
    assert np.array_equal(one, query)


def test_the_vectors_are_those_the_name_stands_for() -> None:
    # The term and its seven pieces of three letters, at their places, with the signs of their hashes.
    piece = 0.3 / (1.0 + 7 * 0.3**2) ** 0.5
    signs = {0: -1, 6: -1, 29: 1, 108: -1, 157: 1, 177: -1, 202: 1}
    expected = {**{place: sign * piece for place, sign in signs.items()}, 237: piece / 0.3}
    vector = embed("printer")
    assert {int(place): float(vector[place]) for place in vector.nonzero()[0]} == pytest.approx(expected)


def test_shared_words_bring_texts_nearer_than_shared_spelling_and_that_nearer_than_nothing() -> None:
    question = embed("the printer is jammed")
    shared, spelled, other = (
        float(question @ embed(text)) for text in ("printer paper jammed", "print jamming", "the weather is nice")
    )
    assert shared > spelled > other


@pytest.mark.parametrize("text", ["", " ", "?!", "\ud800", "the", "x" * 100_000])
def test_any_text_has_a_direction(text: str) -> None:
    assert np.linalg.norm(embed(text)) == pytest.approx(1.0)
