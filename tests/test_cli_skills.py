"""`refdesk skills`: from transcripts in files to playbooks that are found, read and compared."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
import skills_ref

from refdesk.app import open_desk
from refdesk.cli import invocation
from refdesk.factories.toolsets import load_toolsets
from tests.server.echo import make_settings
from tests.test_cli import refdesk

PRINTER = "Customer: The label printer jams every morning.\nAgent: Clean the roller with alcohol.\nCustomer: Solved!\n"
ROUTER = {"turns": [["customer", "My router blinks red."], ["agent", "Hold the reset button for ten seconds."]]}
LAMP = {"turns": [["customer", "The desk lamp flickers."], ["agent", "Screw the bulb in tighter."]]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where three conversations of two files were learned."""
    home = tmp_path_factory.mktemp("home")
    (home / "printer.txt").write_text(PRINTER)
    (home / "others.jsonl").write_text(f"{json.dumps(ROUTER)}\n{json.dumps(LAMP)}\n")
    done = refdesk(home, ["skills", "learn", str(home / "printer.txt"), str(home / "others.jsonl"), "--confirmed"])
    assert (done.exit_code, done.stderr) == (0, "3 learned, 0 known, 0 failed.\n")
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["learned", "printer.txt:"],
        ["learned", "others.jsonl:1:"],
        ["learned", "others.jsonl:2:"],
    ]
    return home


def find_id(home: Path, query: str) -> str:
    answer = json.loads(refdesk(home, ["skills", "search", "--json", "--limit", "1", query]).stdout)
    return answer["matches"][0]["skill_id"]


def test_what_is_known_is_not_learned_twice(home: Path) -> None:
    done = refdesk(home, ["skills", "learn", "--json", str(home / "printer.txt")])
    [learned] = json.loads(done.stdout)["learned"]
    assert (learned["created"], learned["skill_id"]) == (False, find_id(home, "label printer jams"))


def test_a_conversation_that_teaches_nothing_is_said_and_the_others_are_learned(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("   \n")
    (tmp_path / "printer.txt").write_text(PRINTER)
    done = refdesk(tmp_path, ["skills", "learn", str(tmp_path / "empty.txt"), str(tmp_path / "printer.txt")])
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["failed", "learned"]
    assert done.stderr == "1 learned, 0 known, 1 failed.\n"


def test_a_search_shows_the_skill_of_the_problem_first(home: Path) -> None:
    for command in (["skills", "search"], ["search", "--toolset", "skills"]):
        first = refdesk(home, [*command, "the router blinks red"]).stdout.splitlines()[0]
        assert "router" in first


def test_a_limit_counts_matches_of_skills_too(home: Path) -> None:
    query = "printer router lamp"
    answer = json.loads(refdesk(home, ["search", "--toolset", "skills", "--json", "--limit", "2", query]).stdout)
    assert len(answer["matches"]) == 2


def test_a_least_score_refuses_what_is_foreign(home: Path) -> None:
    done = refdesk(home, ["skills", "search", "--min-score", "0.9", "pension rules for teachers"])
    assert done.stdout == "Nothing found.\n"


def test_a_skill_is_shown_whole(home: Path) -> None:
    skill_id = find_id(home, "desk lamp flickers")
    shown = refdesk(home, ["skills", "show", skill_id]).stdout
    assert "Screw the bulb in tighter." in shown
    assert "1 confirmed" in shown
    document = json.loads(refdesk(home, ["skills", "show", "--json", skill_id]).stdout)
    assert (document["skill_id"], document["times_confirmed"]) == (skill_id, 1)


def test_the_history_of_a_skill_begins_with_its_first_version(home: Path) -> None:
    skill_id = find_id(home, "label printer jams")
    listed = refdesk(home, ["skills", "history", skill_id]).stdout
    assert listed.startswith("Version 1 · ")
    [version] = json.loads(refdesk(home, ["skills", "history", "--json", skill_id]).stdout)["versions"]
    assert version["version"] == 1


def test_versions_are_compared_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "printer.txt").write_text(PRINTER)
    refdesk(tmp_path, ["skills", "learn", str(tmp_path / "printer.txt")])
    skill_id = find_id(tmp_path, "printer")

    async def refine() -> None:
        settings = make_settings(tmp_path, store=None)
        async with open_desk(settings, load_toolsets(["skills"]), in_background=False) as desk:
            [update] = [each for each in desk.toolsets[0].operations if each.name == "update_skill"]
            more = PRINTER.replace("Clean the roller with alcohol.", "Replace the worn label sensor.")
            await invocation.run(desk, update, {"skill_id": skill_id, "conversation": more})

    anyio.run(refine)
    compared = refdesk(tmp_path, ["skills", "diff", skill_id]).stdout.splitlines()
    assert compared[:2] == ["--- version 1", "+++ version 2"]
    assert any(line.startswith("+") and "label sensor" in line for line in compared)
    assert not any(line.startswith("-") and "roller" in line for line in compared)
    assert refdesk(tmp_path, ["skills", "diff", skill_id, "2", "2"]).stdout == "Versions 2 and 2 say the same.\n"


REFUNDS = [
    f"Customer: I was charged twice for order {number}.\nAgent: May I have your order number, please?\n"
    f"Customer: It is {number}.\nTool: find_order(order={number})\nAgent: I have refunded the second payment.\n"
    for number in (4471, 4482, 4493, 4504, 4515)
]
LOCKED = [
    f"Customer: I am locked out of my account{word}.\nAgent: Please open the sign-in page and choose Forgot password.\n"
    "Customer: Done.\nAgent: Please enter the code from the e-mail.\nCustomer: It works now!\n"
    for word in ("", " again", " since today", " after the update", " on the phone")
]


def write_folder(folder: Path) -> Path:
    for number, (refund, locked) in enumerate(zip(REFUNDS, LOCKED, strict=True)):
        (folder / f"refund{number}.txt").write_text(refund)
        (folder / f"locked{number}.txt").write_text(locked)
    return folder


def test_conversations_of_one_problem_in_a_folder_become_one_skill_and_again_nothing(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    folder = write_folder(tmp_path / "chats")
    learned = json.loads(refdesk(tmp_path, ["skills", "learn", "--json", str(folder)]).stdout)["learned"]
    assert len(learned) == 10
    by_skill = {
        one["skill_id"]: {two["place"][:6] for two in learned if two["skill_id"] == one["skill_id"]} for one in learned
    }
    assert sorted(map(sorted, by_skill.values())) == [["locked"], ["refund"]]
    shown = refdesk(tmp_path, ["skills", "show", find_id(tmp_path, "charged twice")]).stdout
    assert "Refund the second payment" in shown or "you have refunded the second payment" in shown
    assert "(5 of 5)" in shown
    again = refdesk(tmp_path, ["skills", "learn", str(folder)])
    assert again.stderr == "0 learned, 10 known, 0 failed.\n"


def test_a_dry_run_shows_the_skills_and_learns_nothing(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    done = refdesk(tmp_path, ["skills", "learn", "--dry-run", str(write_folder(tmp_path / "chats"))])
    assert done.stderr == "2 skills would be learned, 0 known.\n"
    assert done.stdout.count("    5 conversations: ") == 2
    assert refdesk(tmp_path, ["skills", "search", "charged twice"]).stdout == "Nothing found.\n"


def test_what_may_be_one_problem_or_several_is_shown_and_merging_is_undone(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    folder = write_folder(tmp_path / "chats")
    learned = json.loads(refdesk(tmp_path, ["skills", "learn", "--json", str(folder)]).stdout)["learned"]
    refund, locked = (next(o["skill_id"] for o in learned if o["place"].startswith(n)) for n in ("refund", "locked"))
    merged = refdesk(tmp_path, ["skills", "merge", refund, locked])
    assert f"refdesk skills unmerge {locked} undoes it." in merged.stdout
    plan = refdesk(tmp_path, ["skills", "learn", "--dry-run", str(folder)]).stdout
    assert "Perhaps several problems: " in plan
    assert f"({refund}), 5 and 5 conversations" in plan
    shown = refdesk(tmp_path, ["skills", "show", refund], NO_COLOR="1", COLUMNS="60").stdout
    assert f"Merged with {locked}" in " ".join(shown.split())
    assert "in 5 of 10 conversations" in shown
    assert "\x1b" not in shown
    assert json.loads(refdesk(tmp_path, ["skills", "show", "--json", refund]).stdout)["history"]["merged_from"] == [
        locked
    ]
    planned = refdesk(tmp_path, ["skills", "split", refund, "--dry-run"]).stdout.splitlines()
    assert planned[0].startswith("5 conversations would become “")
    assert len(planned) == 6
    parted = refdesk(tmp_path, ["skills", "split", refund])
    new = json.loads(refdesk(tmp_path, ["skills", "search", "--json", "locked account"]).stdout)["matches"][0]
    assert f"refdesk skills merge {refund} {new['skill_id']} undoes it." in parted.stdout
    assert refdesk(tmp_path, ["skills", "merge", refund, new["skill_id"]]).exit_code == 0
    assert refdesk(tmp_path, ["skills", "unmerge", new["skill_id"]]).exit_code == 0
    locked = new["skill_id"]
    assert refdesk(tmp_path, ["skills", "merge", refund, locked]).exit_code == 0
    gone = refdesk(tmp_path, ["skills", "merge", refund, locked])
    assert (gone.exit_code, gone.stderr) == (2, f"Error: The skill {locked} was merged into {refund}: use that one.\n")
    assert refdesk(tmp_path, ["skills", "unmerge", locked]).exit_code == 0
    (tmp_path / "more.txt").write_text(REFUNDS[0].replace("4471", "9999").replace("Tool:", "Tool :"))
    plan = json.loads(refdesk(tmp_path, ["skills", "learn", "--dry-run", "--json", str(tmp_path / "more.txt")]).stdout)
    assert plan["splits"] == []
    assert [one["skill_id"] for one in plan["like"]] == [refund]


def test_skills_are_written_to_a_folder_and_read_again(home: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    done = refdesk(home, ["skills", "export", "--format", "agent-skills", str(out)])
    assert (done.exit_code, done.stderr) == (0, f"3 skills written to {out}.\n")
    assert [skills_ref.validate(folder) for folder in sorted(out.iterdir())] == [[], [], []]
    again = refdesk(home, ["skills", "import", str(out)])
    assert (again.exit_code, again.stderr) == (0, "3 unchanged.\n")
    (out / "broken").mkdir()
    (out / "broken" / "SKILL.md").write_text("nothing")
    (out / "foreign" / "assets").mkdir(parents=True)
    (out / "foreign" / "SKILL.md").write_text("---\nname: foreign\ndescription: Greet.\n---\nSay hello.\n")
    (out / "foreign" / "assets" / "logo.png").write_bytes(b"\x89PNG\xff")
    (out / "foreign" / "assets" / "more.md").write_text("More.")
    done = refdesk(other, ["skills", "import", "--json", str(out)])
    assert done.exit_code == 1
    folders = json.loads(done.stdout)["folders"]
    results = {one["name"]: one["result"] for one in folders}
    assert (results.pop("broken"), set(results.values())) == ("broken", {"added"})
    [notes] = [one["notes"] for one in folders if one["name"] == "foreign"]
    assert notes == ["The file assets/logo.png was left out: it is hidden, a link, too long or no text."]
    refdesk(other, ["skills", "export", str(tmp_path / "again")])
    assert (tmp_path / "again" / "foreign" / "assets" / "more.md").read_text() == "More."
    for folder in (each for each in out.iterdir() if each.name not in ("broken", "foreign")):
        for path in (path for path in folder.rglob("*") if path.is_file()):
            assert (tmp_path / "again" / path.relative_to(out)).read_bytes() == path.read_bytes()


def test_one_skill_is_exported_by_its_id_in_place_of_what_was_there(home: Path, tmp_path: Path) -> None:
    skill_id = find_id(home, "desk lamp flickers")
    assert refdesk(home, ["skills", "export", "--id", skill_id, str(tmp_path)]).exit_code == 0
    [folder] = tmp_path.iterdir()
    (folder / "old.txt").write_text("of an older export")
    assert refdesk(home, ["skills", "export", "--id", skill_id, str(tmp_path)]).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["SKILL.md", "assets"]
    missing = refdesk(home, ["skills", "export", "--id", "nothing", str(tmp_path)])
    assert (missing.exit_code, "0 skills written" in missing.stderr) == (2, True)
    nothing = refdesk(home, ["skills", "import", str(folder / "assets")])
    assert nothing.stderr == "Error: There is no folder with a SKILL.md in it.\n"


@pytest.mark.parametrize("command", [["show"], ["history"], ["diff"]])
def test_an_unknown_skill_is_one_sentence(home: Path, command: list[str]) -> None:
    done = refdesk(home, ["skills", *command, "nothing"])
    assert done.exit_code == 2
    assert done.stderr == "Error: There is no skill nothing; refdesk skills search shows the ids.\n"


def test_a_version_that_is_not_there_is_said(home: Path) -> None:
    done = refdesk(home, ["skills", "diff", find_id(home, "printer"), "1", "7"])
    assert (done.exit_code, done.stderr) == (2, "Error: There is no version 7; there are 1 to 1.\n")


def test_the_doctor_tells_what_learns(tmp_path: Path) -> None:
    for variables, found in (
        ({}, "none: skills are learned by rules-8, without a key"),
        ({"REFDESK_LANGUAGE_MODEL": "openai"}, "openai-gpt-5-mini is asked"),
    ):
        checks = json.loads(refdesk(tmp_path, ["doctor", "--json"], **variables).stdout)["checks"]
        [check] = [check for check in checks if check["name"] == "language model"]
        assert check["found"].startswith(found)
        assert bool(check["advice"]) is not bool(variables)


def test_an_outcome_is_reported_and_taken_back(home: Path) -> None:
    skill_id = find_id(home, "desk lamp flickers")
    before = json.loads(refdesk(home, ["skills", "show", "--json", skill_id]).stdout)
    report = json.loads(refdesk(home, ["skills", "report", "--json", skill_id, "failed", "--evidence", "Dark."]).stdout)
    assert report["confidence"] == pytest.approx(before["confidence"] - 0.1)
    done = refdesk(home, ["skills", "withdraw-outcome", skill_id, report["report_id"]])
    assert (done.exit_code, f"confidence {before['confidence']:.2f}" in done.stdout) == (0, True)
    assert json.loads(refdesk(home, ["skills", "show", "--json", skill_id]).stdout) == before
