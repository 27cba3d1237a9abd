from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.core.search.passages import MAX_TITLE_LENGTH, embedding_text, split
from refdesk.embedders.local.wordpiece import WordPiece

WINDOW = 256
TEXTS = st.lists(
    st.sampled_from(
        ["word ", "A sentence ends here. ", "\n\n", "数据库。", "x" * 300, "... ", " \n \n", "\u0301", "é!"]
    ),
    max_size=400,
).map("".join)


def test_a_short_body_is_one_passage() -> None:
    assert split("Title", " One. Two. ") == [(1, 10)]


def test_a_body_without_text_is_one_empty_passage_and_the_title_is_embedded() -> None:
    assert split("Title", "") == split("Title", " \n ") == [(0, 0)]
    assert embedding_text("Title", " \n ", (0, 0)) == "Title"


@settings(max_examples=200)
@given(st.text(max_size=300), TEXTS)
def test_passages_are_in_order_disjoint_and_leave_out_only_blanks(title: str, body: str) -> None:
    spans = split(title, body)
    assert "".join("".join(body[start:end] for start, end in spans).split()) == "".join(body.split())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert all(start < end for start, end in spans) or spans == [(0, 0)]


def test_passages_end_at_sentences_and_are_of_like_length() -> None:
    body = "This is a sentence of nine words or so. " * 60
    texts = [body[start:end] for start, end in split("Title", body)]
    counts = [len(text.split()) for text in texts]
    assert all(text.endswith("so.") for text in texts)
    assert min(counts) > 120
    assert max(counts) - min(counts) <= 18


def test_sentences_that_do_not_fit_together_stand_alone() -> None:
    sentence = "word " * 120 + "end. "
    body = sentence * 10
    assert [body[start:end] for start, end in split("", body)] == [sentence.strip()] * 10


def test_a_paragraph_end_is_preferred() -> None:
    first = "Words of the first paragraph stand here. " * 20
    second = "Words of the second paragraph stand here. " * 24
    spans = split("", f"{first.strip()}\n\n{second}")
    assert spans[0] == (0, len(first) - 1)


@pytest.mark.parametrize("unit", ["word ", "数", "x", "เ", "a. ", "one-two/three_four ", "🎉"])
def test_text_without_sentences_is_cut_to_fit_the_window(unit: str) -> None:
    body = unit * (20_000 // len(unit))
    pieces = WordPiece()
    sizes = [len(pieces.encode(embedding_text("A title", body, span), 10_000)) for span in split("A title", body)]
    assert max(sizes) <= WINDOW


def test_cuts_within_a_sentence_stand_between_words() -> None:
    body = "unbroken " * 1000
    assert all(
        body[start:end].startswith("unbroken") and body[:end].endswith("unbroken") for start, end in split("", body)
    )


def test_a_long_title_is_cut_and_leaves_room_for_the_passage() -> None:
    title, body = "long title " * 100, "word " * 1000
    pieces = WordPiece()
    spans = split(title, body)
    texts = [embedding_text(title, body, span) for span in spans]
    assert texts[0].startswith(title[:MAX_TITLE_LENGTH] + "\nword")
    assert max(len(pieces.encode(text, 10_000)) for text in texts) <= WINDOW
    assert min(text.count("word") for text in texts) > 60


def test_real_texts_fit_the_window_to_their_last_sentence(shared_data: Path) -> None:
    pieces = WordPiece()
    sizes: list[int] = []
    for name in ("emanual", "xquad-en", "xquad-zh", "cacm"):
        corpus = shared_data / "retrieval" / name / "corpus.jsonl"
        for line in corpus.read_text(encoding="utf-8").split("\n")[:-1]:
            row = json.loads(line)
            title, body = row.get("title") or "", row["text"]
            sizes += [len(pieces.encode(embedding_text(title, body, span), 10_000)) for span in split(title, body)]
    assert sum(size > WINDOW for size in sizes) <= len(sizes) / 500
