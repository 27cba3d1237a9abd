"""Skills as folders of the Agent Skills format: the reference validator takes each, and reading it loses nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import skills_ref

from refdesk.core.keeping import erasing
from refdesk.core.sanitizer import clean
from refdesk.core.writing import audit
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills import folders
from refdesk.toolsets.skills.folders import EVIDENCE, Folder
from refdesk.toolsets.skills.records import make_name
from tests.stores.traces import find_traces, make_canary
from tests.toolsets.skills.conftest import INVOICE, Call, Desk, ScriptedModel, make_desk

PDF = """\
---
name: pdf-forms
description: Fill PDF forms: use it when a form is a PDF.
license: Apache-2.0
compatibility: Requires poppler
allowed-tools: [Bash(pdftk:*), Read]
metadata:
  author: example
  version: 1.5
---

# PDF forms

1. Run scripts/fill.py.

See [the fields](references/FIELDS.md).
"""
FILES = {"SKILL.md": PDF, "scripts/fill.py": "print('---')\n", "references/FIELDS.md": "# Fields\n"}

HARD = (
    "The order --- the last one --- fails: \"why\"?",
    "---",
    "----\n---\nname: evil\n",
    "key: value: [a, {b}] # no comment & *anchor !tag | > % @ `",
    "'single' and \"double\" \\ and \\u0041",
    "CON", "aux.txt", "a/b\\c:d*e?f\"g<h>i|j",
    "😀 👩🏽 emoji alone is no name", "日本語だけの題名", "ﬁne Ⅷ İstanbul ẞ",
    "x" * 300, "é" * 300, "a - b -- c",
    "\x7f\x85\u2028\ufeff\u00a0 end",
    "true", "null", "0x1F", "2026-01-01", "",
)  # fmt: skip


def write(root: Path, folder: Folder | Mapping[str, Any]) -> Path:
    """Put a folder, or one that an operation answered, on the disk."""
    if not isinstance(folder, Folder):
        folder = Folder(folder["name"], {file["path"]: file["text"] for file in folder["files"]})
    for path, text in folder.files.items():
        target = root / folder.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
    return root / folder.name


def send(files: Mapping[str, str], name: str = "pdf-forms") -> dict[str, Any]:
    return {"name": name, "files": [{"path": path, "text": text} for path, text in files.items()]}


def to_files(folder: Mapping[str, Any]) -> dict[str, str]:
    return {file["path"]: file["text"] for file in folder["files"]}


async def export(call: Call) -> list[dict[str, Any]]:
    return (await call("export_skills"))["folders"]


async def import_one(call: Call, folder: Mapping[str, Any], **more: object) -> dict[str, Any]:
    [done] = (await call("import_skills", folders=[folder], **more))["folders"]
    return done


@pytest.mark.parametrize("text", HARD)
async def test_the_reference_validator_takes_every_skill_whatever_customers_say(text: str, tmp_path: Path) -> None:
    desk, said = make_desk(MemoryStore()), text or "nothing"
    draft = SkillDraft(said, said, Playbook(said, (said,), (Step(said, said, said),), (said,), said), (said,), (said,))
    model = ScriptedModel(draft=draft)
    call = desk.serve(model)
    await call("create_skill", conversation=INVOICE, metadata={"product_area": said})
    # The same title again, from another conversation.
    skill = (await desk.queries().list_skills())[0]
    await desk.queries().create_skill(
        replace(skill, skill_id=skill.skill_id[:-1] + "f", name=make_name(said, "f" * 12))
    )
    exported = await export(call)
    assert len({folder["name"].casefold() for folder in exported}) == 2
    for folder in exported:
        path = write(tmp_path, folder)
        assert skills_ref.validate(path) == []
        properties = skills_ref.read_properties(path)
        assert properties.name == folder["name"]
        assert properties.description.startswith(clean(" ".join(said.split()))[:200].strip()[:50])
        assert (await import_one(call, folder))["result"] == "unchanged"


async def test_what_was_exported_comes_back_as_it_was_and_twice_is_once(desk: Desk) -> None:
    call, elsewhere = desk.serve(), desk.serve(org="globex", agent="bob")
    await call("create_skill", conversation=INVOICE, metadata={"product_area": "billing", "ticket": {"n": [1]}})
    [folder] = await export(call)
    first = await import_one(elsewhere, folder)
    assert (first["result"], first["notes"], first["detail"]) == ("added", [], "")
    assert (await import_one(elsewhere, folder))["result"] == "unchanged"
    assert (await import_one(call, folder))["result"] == "unchanged"
    assert await export(elsewhere) == [folder]
    [mine], [other] = await desk.queries().list_skills(), await desk.queries("globex").list_skills()
    assert (other.draft, other.skill_id, other.name) == (mine.draft, mine.skill_id, mine.name)
    assert other.metadata == {"product_area": "billing", "ticket": {"n": [1]}, "imported_author": "ann"}
    assert (other.author, other.times_used, other.changes) == ("bob", 0, ("Imported.",))
    found = await elsewhere("search_skills", query="wrong company name on the invoice")
    assert [match["skill_id"] for match in found["matches"]] == [mine.skill_id]


async def test_a_refined_skill_comes_back_with_its_evidence() -> None:
    desk = make_desk(MemoryStore())
    call, elsewhere = desk.serve(), desk.serve(org="globex")
    created = await call("create_skill", conversation=INVOICE)
    for number in range(4):
        talk = INVOICE.replace("4471", str(5000 + number)).replace("Got it", f"Got it {number}")
        await call("update_skill", skill_id=created["skill_id"], conversation=talk, feedback="Ask kindly.")
    [folder] = await export(call)
    assert (await import_one(elsewhere, folder))["result"] == "added"
    [again] = await export(elsewhere)
    [mine], [other] = await desk.queries().list_skills(), await desk.queries("globex").list_skills()
    assert other.draft == mine.draft
    assert other.playbook.steps[0].led_on == mine.playbook.steps[0].led_on > 0
    # A version is counted where it is kept; all else is the same.
    assert again["files"][0]["text"] == folder["files"][0]["text"].replace('version: "5"', 'version: "1"')
    assert again["files"][1:] == folder["files"][1:]


async def test_an_edited_skill_becomes_a_version_that_no_conversation_changes() -> None:
    desk = make_desk(MemoryStore())
    call = desk.serve()
    created = await call("create_skill", conversation=INVOICE)
    [folder] = await export(call)
    text = folder["files"][0]["text"]
    edited = text.replace("send a corrected invoice", "send a corrected invoice by letter").replace(
        "## Edge cases\n\nNone known.", "## Edge cases\n\n- The company was sold:\n  ask a lawyer."
    )
    folder["files"][0]["text"] = edited
    assert (await import_one(call, folder, dry_run=True))["result"] == "changed"
    assert (await import_one(call, folder))["result"] == "changed"
    assert (await import_one(call, folder))["result"] == "unchanged"
    skill = await desk.queries().get_skill(created["skill_id"])
    assert skill is not None
    assert (skill.version, skill.made_by, skill.changes[0]) == (2, "a person", "Edited in a file.")
    assert skill.playbook.edge_cases == ("The company was sold: ask a lawyer.",)
    # The step that was not touched keeps its evidence.
    assert skill.playbook.steps[0].cases
    await call("update_skill", skill_id=skill.skill_id, conversation=INVOICE.replace("4471", "4472"))
    refined = await desk.queries().get_skill(created["skill_id"])
    assert refined is not None
    assert [step.do for step in refined.playbook.steps] == [step.do for step in skill.playbook.steps]
    assert len(refined.playbook.cases) == 2
    # The folder is of an older state by now: what is here stays.
    folder["files"][0]["text"] = edited.replace("by letter", "by fax")
    kept = await import_one(call, folder)
    assert (kept["result"], kept["detail"]) == ("kept", "The skill here has changed since the folder was written.")


async def test_a_folder_from_elsewhere_keeps_its_own_words_and_files(desk: Desk, tmp_path: Path) -> None:
    call, elsewhere = desk.serve(), desk.serve(org="globex")
    done = await import_one(call, send(FILES))
    assert (done["result"], done["title"], done["notes"]) == ("added", "PDF forms", [])
    assert (await import_one(call, send(FILES)))["result"] == "unchanged"
    shown = await call("get_skill", skill_id=done["skill_id"])
    assert shown["problem"] == "Fill PDF forms: use it when a form is a PDF."
    assert "1. Run scripts/fill.py." in shown["resolution"]
    found = await call("search_skills", query="fill PDF forms")
    assert [match["skill_id"] for match in found["matches"]] == [done["skill_id"]]
    [folder] = await export(call)
    path = write(tmp_path, folder)
    assert skills_ref.validate(path) == []
    assert skills_ref.read_properties(path).metadata == {"author": "example", "version": "1.5"}
    assert {**to_files(folder), "SKILL.md": ""} == {**FILES, "SKILL.md": ""}
    assert to_files(folder)["SKILL.md"].endswith(PDF.rpartition("---\n")[2])
    assert (await import_one(elsewhere, folder))["result"] == "added"
    assert await export(elsewhere) == [{**folder, "skill_id": (await export(elsewhere))[0]["skill_id"]}]


async def test_a_folder_from_elsewhere_learns_and_is_read_again_without_loss(tmp_path: Path) -> None:
    desk = make_desk(MemoryStore())
    call, elsewhere = desk.serve(), desk.serve(org="globex")
    done = await import_one(call, send(FILES))
    talk = "Customer: My tax form is a PDF, please fill it.\nAgent: Please open the form in the portal.\nCustomer: Ok!"
    await call("update_skill", skill_id=done["skill_id"], conversation=talk)
    resolution = (await call("get_skill", skill_id=done["skill_id"]))["resolution"]
    assert "open the form in the portal" in resolution
    assert "1. Run scripts/fill.py." in resolution
    [folder] = await export(call)
    assert skills_ref.validate(write(tmp_path, folder)) == []
    assert (await import_one(elsewhere, folder))["result"] == "added"
    [mine], [other] = await desk.queries().list_skills(), await desk.queries("globex").list_skills()
    assert (other.draft, other.instructions) == (mine.draft, mine.instructions)
    # Its own words may change; what conversations taught stays.
    newer = {**FILES, "SKILL.md": PDF.replace("Run scripts/fill.py.", "Run scripts/fill.py twice.")}
    assert (await import_one(call, send(newer)))["result"] == "changed"
    resolution = (await call("get_skill", skill_id=done["skill_id"]))["resolution"]
    assert "fill.py twice" in resolution
    assert "open the form in the portal" in resolution


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ({"README.md": "x"}, "There is no SKILL.md in it: add one."),
        ({"SKILL.md": "# No front matter"}, "does not begin with front matter"),
        ({"SKILL.md": "---\nname: x\n"}, "does not begin with front matter"),
        ({"SKILL.md": "---\nname: x\n---\nText"}, "has no description"),
        ({"SKILL.md": "---\ndescription: x\n---\nText"}, "has no name"),
        ({"SKILL.md": "---\nname: x\ndescription: ''\n---\nText"}, "has no description"),
        ({"SKILL.md": f"---\nname: x\ndescription: {'y' * 1025}\n---\nText"}, "1025 characters"),
        ({"SKILL.md": "---\nname: x\ndescription: &a y\nlicense: *a\n---\nText"}, "Line 3 of SKILL.md"),
        ({"SKILL.md": "---\nname: x\ndescription: y\n---\n\n"}, "says nothing"),
    ],
)
async def test_a_broken_folder_is_told_and_the_others_go_on(files: Mapping[str, str], detail: str) -> None:
    call = make_desk(MemoryStore()).serve()
    done = (await call("import_skills", folders=[send(files, "x"), send(FILES)]))["folders"]
    assert [one["result"] for one in done] == ["broken", "added"]
    assert detail in done[0]["detail"]


async def test_what_a_skill_cannot_keep_is_told_and_the_rest_is_kept() -> None:
    call = make_desk(MemoryStore()).serve()
    text = PDF.replace("license: Apache-2.0", "license: Apache-2.0\nmodel: large").replace("pdf-forms", "NUL", 1)
    files = {
        "SKILL.md": text,
        "../evil.sh": "x",
        "/etc/passwd": "x",
        "con.txt": "x",
        "a": "a file",
        "a/b.md": "below a file",
        "Scripts/Run.py": "1",
        "scripts/run.py": "2",
        "big.txt": "x" * 262_144,
        "good.md": "kept",
    }
    done = await import_one(call, send(files, "nul"))
    assert done["result"] == "added"
    told = " ".join(done["notes"])
    for name in ("model", "NUL", "../evil.sh", "/etc/passwd", "con.txt", "a/b.md", "scripts/run.py", "big.txt"):
        assert name in told
    [folder] = await export(call)
    assert folder["name"].startswith("pdf-forms-")
    assert set(to_files(folder)) == {"SKILL.md", "a", "Scripts/Run.py", "good.md"}


@pytest.mark.parametrize(
    "evidence",
    [
        "{",
        "[]",
        '{"format": "other"}',
        '{"format": "refdesk-skill/1"}',
        '{"format": "refdesk-skill/1", "skill_id": "../../x"}',
    ],
)
async def test_damaged_evidence_leaves_what_the_text_says(evidence: str) -> None:
    call = make_desk(MemoryStore()).serve()
    done = await import_one(call, send({**FILES, EVIDENCE: evidence}))
    assert done["result"] == "added"
    assert "only what SKILL.md says was taken over" in done["notes"][0]


async def test_what_an_importer_sends_is_bounded_and_masked_like_what_is_learned() -> None:
    desk = make_desk(MemoryStore())
    call, elsewhere = desk.serve(), desk.serve(org="globex")
    await call("create_skill", conversation=INVOICE)
    [folder] = await export(call)
    files = to_files(folder)
    kept = json.loads(files[EVIDENCE])
    kept["keywords"] = ["ann@example.org", *(f"word{number}" for number in range(500))]
    done = await import_one(elsewhere, send({**files, EVIDENCE: json.dumps(kept)}, folder["name"]))
    assert done["result"] == "added"
    [skill] = await desk.queries("globex").list_skills()
    assert len(skill.keywords) == 80
    assert skill.keywords[0] == "[e-mail]"


async def test_a_name_that_is_taken_is_not_taken_away() -> None:
    desk = make_desk(MemoryStore())
    call = desk.serve()
    await call("create_skill", conversation=INVOICE)
    [learned] = await desk.queries().list_skills()
    text = PDF.replace("pdf-forms", learned.name, 1)
    done = await import_one(call, send({"SKILL.md": text}, learned.name))
    assert done["result"] == "added"
    assert "gets another name" in done["notes"][0]
    assert len({folder["name"] for folder in await export(call)}) == 2


async def test_what_was_erased_does_not_come_back_unless_it_is_from_elsewhere(desk: Desk, tmp_path: Path) -> None:
    call, canary = desk.serve(), make_canary()
    created = await call("create_skill", conversation=INVOICE)
    [folder] = await export(call)
    foreign = send({**FILES, "references/more.md": canary})
    imported = await import_one(call, foreign)
    actor = audit.Actor("acme", "root", "cli")
    for skill_id in (created["skill_id"], imported["skill_id"]):
        await erasing.erase(desk.base.store, desk.clock, actor, erasing.Erasable("acme", skill_id))
    assert await find_traces(desk.base.store, tmp_path, canary) == []
    kept = await import_one(call, folder)
    assert (kept["result"], kept["detail"]) == ("kept", "It was erased here, or merged into another skill.")
    assert (await import_one(call, foreign))["result"] == "added"


async def test_pages_of_an_export_hold_every_skill_once() -> None:
    call = make_desk(MemoryStore()).serve()
    for number in range(5):
        await import_one(call, send({"SKILL.md": PDF.replace("pdf-forms", f"form-{number}", 1)}, f"form-{number}"))
    names, after = list[str](), ""
    while True:
        page = await call("export_skills", limit=2, after=after)
        names += [folder["name"] for folder in page["folders"]]
        if "next" not in page:
            break
        after = page["next"]
    assert sorted(names) == [f"form-{number}" for number in range(5)]
    answer = await call("export_skills", skill_ids=[after, "unknown", after[:-1], "unknown"])
    [one] = answer["folders"]
    assert one["skill_id"] == after
    assert [each["skill_id"] for each in answer["unknown"]] == ["unknown", after[:-1]]
    assert all(f"There is no skill {each['skill_id']}." in each["reason"] for each in answer["unknown"])
    assert "unknown" not in await call("export_skills", skill_ids=[after])


def test_no_path_that_some_system_cannot_have_is_portable() -> None:
    for path in ("a", "references/Über uns.md", "a.b.c", "scripts/x_1.py"):
        assert folders.is_portable(path)
    for path in (
        "",
        "/a",
        "a//b",
        "./a",
        "../a",
        "a/../b",
        "a\\b",
        "C:x",
        "nul",
        "LPT1.txt",
        "a/con.md",
        "a.",
        "a ",
        ".x",
    ):
        assert not folders.is_portable(path), path
