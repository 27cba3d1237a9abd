"""A small cross-encoder, made here and run by ONNX Runtime: it counts the pieces that question and text share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from refdesk.cli import cli
from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.reranking import RERANKED, rerank
from refdesk.embedders.local.graph_file import GraphWriter
from refdesk.embedders.local.installed.installing import install
from refdesk.embedders.local.installed.manifest import find_installed, find_reranker, get_folder, write_reranker
from refdesk.embedders.local.installed.reranker import InstalledReranker
from refdesk.errors import EmbedderError
from refdesk.factories.embedders import choose_reranker
from refdesk.model import Candidate
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, make_document
from tests.embedders.tokenizing import save_tokenizer
from tests.server.echo import make_settings
from tests.toolsets.knowledge.conftest import Desk

FLOAT = 1


def make_graph(classes: int) -> bytes:
    """Return a graph of as many logits, whose last is how many pairs of pieces of both parts are the same."""
    graph = GraphWriter()
    [first_axis, second_axis, both] = [
        graph.constant(name, np.array(axes, np.int64)) for name, axes in (("one", [1]), ("two", [2]), ("both", [1, 2]))
    ]
    [rows] = graph.node("Unsqueeze", ["input_ids", second_axis])
    [columns] = graph.node("Unsqueeze", ["input_ids", first_axis])
    [same] = graph.node("Cast", graph.node("Equal", [rows, columns]), to=FLOAT)
    [types] = graph.node("Cast", ["token_type_ids"], to=FLOAT)
    [asked] = graph.node("Sub", [graph.constant("all", np.array(1.0, np.float32)), types])
    [of_question] = graph.node("Unsqueeze", [asked, second_axis])
    [of_text] = graph.node("Unsqueeze", [types, first_axis])
    [shared] = graph.node("Mul", [*graph.node("Mul", [same, of_question]), of_text])
    [counted] = graph.node("Unsqueeze", [*graph.node("ReduceSum", [shared, both], keepdims=0), first_axis])
    if classes == 2:
        [nothing] = graph.node("Sub", [counted, counted])
        [counted] = graph.node("Concat", [nothing, counted], axis=1)
    graph.name_output(counted, "logits")
    ids = {"input_ids": [1, "pieces"], "token_type_ids": [1, "pieces"]}
    return graph.to_bytes(ids, {"logits": [1, classes]})


def make_folder(folder: Path, classes: int = 1) -> Path:
    folder.mkdir()
    (folder / "model.onnx").write_bytes(make_graph(classes))
    save_tokenizer(folder)
    config = {"architectures": ["BertForSequenceClassification"], "max_position_embeddings": 512}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["models", *arguments], env={"REFDESK_HOME": str(home)})


@pytest.mark.parametrize("classes", [1, 2])
async def test_a_question_and_a_text_are_read_together(tmp_path: Path, classes: int) -> None:
    manifest = install(str(make_folder(tmp_path / "overlap", classes)), tmp_path)
    assert (manifest.kind, manifest.dimensions) == ("reranker", 1)
    judged = await InstalledReranker(tmp_path, manifest).judge(
        "reset the router", ["reset the router", "the router", "weather " * 2000]
    )
    assert judged == sorted(judged, reverse=True)
    assert len({*judged}) == 3


async def test_a_damaged_re_ranker_says_so(tmp_path: Path) -> None:
    manifest = install(str(make_folder(tmp_path / "overlap")), tmp_path)
    (get_folder(tmp_path, "overlap") / "model.onnx").write_bytes(b"something else")
    with pytest.raises(EmbedderError, match="as it was installed"):
        await InstalledReranker(tmp_path, manifest).judge("x", ["y"])


def test_a_re_ranker_is_installed_listed_used_and_removed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "made")
    assert "a re-ranker" in run(tmp_path, "install", str(folder), "--name", "overlap").stdout
    assert choose_reranker(make_settings(tmp_path)) is None
    assert str(RERANKED) in run(tmp_path, "use", "overlap").stdout
    listed = run(tmp_path, "list").stdout
    assert "* all-minilm-l6-v2-int8" in listed
    assert "* overlap  re-ranker" in listed
    assert isinstance(choose_reranker(make_settings(tmp_path)), InstalledReranker)
    assert run(tmp_path, "remove", "overlap").exit_code == 0
    assert choose_reranker(make_settings(tmp_path)) is None


async def test_the_best_entries_are_put_in_the_order_of_the_model_with_the_scores_of_their_places(
    tmp_path: Path,
) -> None:
    write_reranker(tmp_path, install(str(make_folder(tmp_path / "overlap")), tmp_path).name)
    reranker = choose_reranker(make_settings(tmp_path))
    store = MemoryStore()
    plain, reranked = (Desk(KnowledgeBase(store, reranker=used), FixedClock(NOW)) for used in (None, reranker))
    await plain.store("Router", "router " * 30)
    await plain.store("Reset", "To reset the router after a power cut, hold the button of the router for a while.")
    await plain.store("Else", "A power cut in the router room ends the reset of clocks.")
    question = "reset the router after a power cut hold the button"
    before, after = await plain.search(question), await reranked.search(question)
    assert [each.score for each in after] == [each.score for each in before]
    assert {each.id for each in after} == {each.id for each in before}
    assert after[0].title == "Router"
    assert before[0].title == "Reset"


class Judge:
    """Prefers long texts, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.seen = fails, 0

    async def judge(self, question: str, texts: list[str]) -> list[float]:
        if self.fails:
            raise EmbedderError("the model is gone")
        self.seen = len(texts)
        return [float(len(text)) for text in texts]


async def test_only_the_best_are_read_and_what_fails_changes_nothing() -> None:
    store = MemoryStore()
    documents = [make_document(f"d{number:02}", "x" * (number + 1)) for number in range(RERANKED + 5)]
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
    ranked = [(Candidate(each.id, NOW), 1.0 / (place + 1)) for place, each in enumerate(documents)]
    judge = Judge()
    moved = await rerank(store, judge, NOTES, "x", [ranked[-1], *ranked[:-1]])  # pyright: ignore[reportArgumentType]
    assert judge.seen == RERANKED
    assert moved[0][0].id == documents[-1].id
    assert [candidate.id for candidate, _ in moved[RERANKED:]] == [f"d{number}" for number in range(19, 24)]
    for reranker in (None, Judge(fails=True)):
        assert await rerank(store, reranker, NOTES, "x", ranked) == ranked  # pyright: ignore[reportArgumentType]
    assert await rerank(store, judge, NOTES, "x", ranked[:1]) == ranked[:1]  # pyright: ignore[reportArgumentType]


def test_what_is_installed_is_found_again(tmp_path: Path) -> None:
    manifest = install(str(make_folder(tmp_path / "overlap")), tmp_path)
    assert find_installed(tmp_path, "overlap") == manifest
    assert find_reranker(tmp_path) is None
