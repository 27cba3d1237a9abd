"""Which desk a client belongs to."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from refdesk.forwarder import identity, rendezvous
from refdesk.forwarder.command import Options, read_options
from refdesk.server.local import listening
from refdesk.settings import compose, load_settings

BASE = {"REFDESK_HOME": "/data"}


def find(names: tuple[str, ...] = (), **variables: str) -> identity.Identity:
    return identity.read(names, {**BASE, **{f"REFDESK_{name}": value for name, value in variables.items()}})


def test_every_setting_makes_another_desk_but_those_that_are_known_to_change_no_answer() -> None:
    names = {name.upper() for name in compose().model_fields}
    assert names >= identity.NOT_COMPARED, "a name that is no setting any more"
    for name in names:
        value = "none" if name == "CONFIG" else "x"
        assert (find((), **{name: value}) == find()) == (name in identity.NOT_COMPARED - {"HOME"}), name


def test_secrets_toolsets_folders_and_what_libraries_read_are_compared() -> None:
    assert find(SALESFORCE_PRIVATE_KEY="a") != find(SALESFORCE_PRIVATE_KEY="b")
    assert find(names=("skills", "knowledge")) == find(names=("knowledge", "skills")) != find()
    assert find(HOME="/other") != find()
    assert identity.read((), {**BASE, "https_proxy": "http://proxy"}) != find()
    assert identity.read((), {**BASE, "refdesk_read_only": "1", "REFDESK_AUDIT_READS": ""}) == find(READ_ONLY="1")


def test_a_relative_path_means_the_folder_that_it_is_relative_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    absolute = [
        find(),
        find(STORE="sqlite:////x/file"),
        find(STORE="postgresql://db/x"),
        find(OPENAI_LANGUAGE_MODEL="a.5"),
        find(STORE="sqlite:///~/file"),
        find(EMBEDDER_MODEL_PATH="~/model.onnx"),
    ]
    relative = [find(STORE="sqlite:///file"), find(EMBEDDER_MODEL_PATH="model.onnx")]
    assert ([each.is_portable for each in absolute], [each.is_portable for each in relative]) == (
        [True] * 6,
        [False] * 2,
    )
    monkeypatch.chdir(tmp_path)
    assert find() == absolute[0]
    assert find(STORE="sqlite:///file") != relative[0]
    assert find(HOME="sub").home == str(tmp_path / "sub")


def test_a_package_that_brings_toolsets_makes_another_desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "acme_news-1.2.dist-info"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = find()
    (folder / "entry_points.txt").write_text("[refdesk.toolsets]\nnews = acme:TOOLSET\n")
    assert find() != before
    assert "plugin acme_news-1.2.dist-info" in find().facts


@pytest.mark.parametrize("variables", [{}, {"XDG_DATA_HOME": "/data/xdg"}, {"XDG_DATA_HOME": " "}])
def test_the_default_home_is_that_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], tmp_path: Path
) -> None:
    monkeypatch.delenv("REFDESK_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert identity.find_home() == str(load_settings().home)


def test_names_of_files_show_neither_settings_nor_the_same_digest_in_another_folder(tmp_path: Path) -> None:
    places = [rendezvous.open_place(identity.Identity(str(tmp_path / each), ("GEMINI_API_KEY=k",))) for each in "ab"]
    assert places[0].key != places[1].key
    assert all(re.fullmatch("[0-9a-f]{16}", place.key) for place in places)
    assert (tmp_path / "a" / "desk").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "desk" / "secret").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_enter_is_closed_and_one_that_is_no_folder_refused(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir(mode=0o755)
    rendezvous.open_place(identity.Identity(str(tmp_path), ()))
    assert (tmp_path / "desk").stat().st_mode & 0o777 == 0o700
    other = tmp_path / "other"
    other.mkdir()
    (other / "desk").symlink_to(tmp_path / "desk")
    with pytest.raises(rendezvous.UnusableError):
        rendezvous.open_place(identity.Identity(str(other), ()))


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_a_socket_finds_a_short_path_where_the_data_folders_is_too_long(
    monkeypatch: pytest.MonkeyPatch, has_descriptors: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        check_long_path(monkeypatch, Path(name), has_descriptors)


def check_long_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_descriptors: bool) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if not has_descriptors:
        monkeypatch.setattr(rendezvous, "DESCRIPTORS", "/nowhere")
    place = rendezvous.open_place(identity.Identity(str(tmp_path / ("x" * 120)), ()))
    listener, address = listening.listen(place, on_loopback=False)
    with listener:
        found = rendezvous.Found(1, "1", address, "desk", place.key, 0.0)
        assert (len(str(address)) > rendezvous.MOST_SOCKET_PATH) == has_descriptors
        assert Path(str(address)).parent.stat().st_mode & 0o777 == 0o700
        rendezvous.connect(found).close()


def test_only_plain_options_of_serve_over_stdio_are_read_without_the_command_line() -> None:
    assert read_options(["serve", "--stdio", "--agent=ann", "--toolset", "skills", "--tools", "all"]) == Options(
        ("skills",), "all", None, "ann"
    )
    for arguments in (
        ["serve"],
        ["serve", "--stdio", "--isolated"],
        ["serve", "--stdio", "--org"],
        ["search", "--stdio"],
    ):
        assert read_options(arguments) is None


def test_another_sandbox_has_another_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    before = find()
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: "net:[1]" if path.endswith("ns/net") else real(path))  # pyright: ignore
    assert find() != before
