from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from refdesk.errors import InvalidInputError, TooLargeError
from refdesk.toolsets.knowledge.transfer import files, markdown
from refdesk.toolsets.knowledge.transfer.reports import ExportReport, ImportFormat, tell_exported
from tests.toolsets.knowledge.transfer.samples import bring_in, list_messages, make_base, make_entry, read_all

FOLDERS: tuple[ImportFormat, ...] = ("markdown", "basic-memory")
FILES: tuple[ImportFormat, ...] = ("jsonl", "mcp-memory", "mem0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "good.md").write_text(markdown.write(make_entry(1)))
    return made


@pytest.mark.parametrize("format", FOLDERS)
async def test_nothing_outside_the_folder_is_read(folder: Path, format: ImportFormat) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(markdown.write(make_entry(2, title="secret")))
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "up").symlink_to(outside, target_is_directory=True)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    report = await bring_in(make_base(), folder, format)
    assert report.added == 1
    assert list_messages(report, "left_out") == [
        f"{name}: is a symbolic link, which is not followed." for name in ("file.md", "loop", "up")
    ]


@pytest.mark.parametrize("format", FOLDERS)
async def test_what_is_no_markdown_file_is_noted_and_never_waited_for(folder: Path, format: ImportFormat) -> None:
    os.mkfifo(folder / "pipe.md")
    (folder / "picture.png").write_bytes(b"\x00")
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "x.md").write_text("x")
    (folder / "odd\x1b[31m.txt").write_text("x")
    report = await bring_in(make_base(), folder, format)
    assert list_messages(report, "left_out") == [
        ".obsidian: is hidden, and so not read.",
        "odd\\u001b[31m.txt: is not a Markdown file.",
        "picture.png: is not a Markdown file.",
        "pipe.md: is not a Markdown file.",
    ]
    assert report.added == 1


async def test_folders_in_folders_are_read_down_to_a_depth(folder: Path) -> None:
    deep = folder.joinpath(*["d"] * (files.DEEPEST_FOLDER + 1))
    deep.mkdir(parents=True)
    (deep / "lost.md").write_text(markdown.write(make_entry(3)))
    (deep.parent / "found.md").write_text(markdown.write(make_entry(2)))
    report = await bring_in(make_base(), folder, "markdown")
    assert report.added == 2
    assert list_messages(report, "left_out") == ["/".join(["d"] * 33) + ": is nested too deep."]


async def test_a_file_that_is_no_entry_is_refused_and_the_rest_lands(folder: Path) -> None:
    good = markdown.write(make_entry(2))
    bad = {
        "bytes": b"\xff\xfe",
        "nul": good.encode() + b"\x00",
        "plain": b"# Readme\n",
        "open": b"---\ntitle: x\n",
        "alias": good.replace("tags", "x").replace('author: "ann"', "author: *a").encode(),
        "other": good.replace("refdesk-knowledge/1", "refdesk-knowledge/2").encode(),
        "body": good.replace('author: "ann"', 'body: "ann"').encode(),
        "type": good.replace("confidence: 80", "confidence: many").encode(),
        "empty": b"",
    }
    for name, data in bad.items():
        (folder / f"{name}.md").write_bytes(data)
    base = make_base()
    report = await bring_in(base, folder, "markdown")
    assert (report.added, report.invalid) == (1, len(bad))
    assert sorted(problem.place for problem in report.problems) == sorted(f"{name}.md" for name in bad)
    assert len(await read_all(base, "acme", range(9))) == 1


async def test_an_entry_edited_by_hand_in_other_yaml_is_read(folder: Path) -> None:
    text = markdown.write(make_entry(2, tags=("a",)))
    text = text.replace('title: "Entry 2"', "title: Edited: by hand").replace(
        'tags: ["a"]', "tags:\n  - New Tag\n  - b"
    )
    (folder / "edited.md").write_text(text.replace('state: "current"\n', "state: current\nexpiresAt:\n"), newline="")
    base = make_base()
    assert (await bring_in(base, folder, "markdown")).added == 2
    [document] = await read_all(base, "acme", [2])
    assert (document.title, document.facets["tags"]) == ("Edited: by hand", ("new-tag", "b"))


async def test_a_line_longer_than_is_read_is_refused_and_the_rest_lands(tmp_path: Path) -> None:
    entity = {"type": "entity", "name": "x", "entityType": "t", "observations": ["fact"]}
    long = b'{"type":"entity","name":"' + b"x" * files.LONGEST_LINE + b'"}'
    (tmp_path / "m").write_bytes(b"\n".join([long, json.dumps(entity).encode(), long * 2, long]))
    report = await bring_in(make_base(), tmp_path / "m", "mcp-memory")
    assert (report.added, report.invalid) == (1, 3)
    assert list_messages(report, "invalid") == [f"line {number}: is longer than is read." for number in (1, 3, 4)]


@pytest.mark.parametrize("format", FOLDERS)
async def test_a_file_longer_than_is_read_is_refused_and_the_rest_lands(folder: Path, format: ImportFormat) -> None:
    with (folder / "long.md").open("wb") as file:
        file.truncate(files.LONGEST_LINE + 1)
    report = await bring_in(make_base(), folder, format)
    assert (report.added, list_messages(report, "invalid")) == (1, ["long.md: is longer than is read."])


async def test_a_json_file_larger_than_is_read_is_refused_whole(tmp_path: Path) -> None:
    with (tmp_path / "m").open("wb") as file:
        file.truncate(files.LARGEST_FILE + 1)
    with pytest.raises(TooLargeError):
        await bring_in(make_base(), tmp_path / "m", "mem0")


@pytest.mark.parametrize("format", [*FOLDERS, *FILES])
async def test_a_source_that_is_not_there_or_of_the_wrong_sort_is_refused(tmp_path: Path, format: ImportFormat) -> None:
    (tmp_path / "file").write_text("{}")
    wrong = tmp_path / "file" if format in FOLDERS else tmp_path
    for path in (tmp_path / "nothing", wrong):
        with pytest.raises(InvalidInputError) as caught:
            await bring_in(make_base(), path, format)
        assert str(tmp_path) not in caught.value.message


async def test_the_user_may_name_a_folder_by_a_link(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert (await bring_in(make_base(), link, "markdown")).added == 1


async def test_a_file_from_before_the_calendar_is_dated_now(folder: Path) -> None:
    os.utime(folder / "good.md", ns=(-(2**62), -(2**62)))
    assert (await bring_in(make_base(), folder, "basic-memory")).added == 1


@pytest.mark.parametrize("format", FOLDERS)
async def test_a_file_that_cannot_be_opened_is_refused_and_the_rest_lands(folder: Path, format: ImportFormat) -> None:
    # A name at the limit within a path beyond it: it can be listed and not opened, whoever asks.
    long = folder
    for _ in range(15):
        long = long / ("n" * 250)
    fill_deep_folder(folder, long)
    report = await bring_in(make_base(), folder, format)
    assert report.added == 1
    assert all("cannot be read" in message for message in list_messages(report, "invalid"))
    assert report.invalid > 0


def fill_deep_folder(folder: Path, deep: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    for part in [*deep.relative_to(folder).parts, *["n" * 250] * 3]:
        os.mkdir(part, dir_fd=handle)
        below = os.open(part, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)


@pytest.mark.parametrize(
    ("entries", "links", "said"),
    [(1, 1, "1 entry written to a: 0 superseded, 1 link."), (2, 0, "2 entries written to a: 0 superseded, 0 links.")],
)
def test_what_was_written_is_told_in_whole_words(entries: int, links: int, said: str) -> None:
    assert tell_exported(ExportReport(format="jsonl", entries=entries, links=links, superseded=0), "a") == said
