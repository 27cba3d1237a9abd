"""Skills as files: the same bytes for the same version, and a digest that says so."""

from __future__ import annotations

import hashlib
import json
import re

from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.toolsets.skills.manifest import find_manifest, list_manifests
from tests.toolsets.skills.conftest import INVOICE, Desk, ScriptedModel


async def test_a_file_is_the_same_until_the_version_changes(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    [before] = await list_manifests(desk.queries())
    await call("search_skills", query="invoice")
    await call("report_outcome", skill_id=id, outcome="failed")
    assert await list_manifests(desk.queries()) == [before]
    await call("update_skill", skill_id=id, conversation="Customer: PayPal bill is wrong\nAgent: Please wait a day.")
    [after] = await list_manifests(desk.queries())
    assert after.uri == before.uri
    assert after.files[0].sha256 != before.files[0].sha256
    assert 'version: "2"' in after.files[0].text


async def test_a_manifest_tells_name_digest_size_and_where_the_skill_comes_from(desk: Desk) -> None:
    id = (await desk.serve()("create_skill", conversation=INVOICE))["skill_id"]
    [manifest] = await list_manifests(desk.queries())
    [file] = manifest.files
    name = manifest.frontmatter["name"]
    assert isinstance(name, str)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= 64
    assert manifest.uri == f"skill://refdesk/{name}/SKILL.md"
    assert (file.path, file.size) == ("SKILL.md", len(file.text.encode()))
    assert file.sha256 == hashlib.sha256(file.text.encode()).hexdigest()
    origin = manifest.frontmatter["metadata"]
    assert isinstance(origin, dict)
    assert (origin["skill-id"], origin["made-by"], origin["author"]) == (id, "rules-8", "ann")
    assert "## Steps\n\n1. **Do:** Ask for" in file.text


async def test_a_manifest_is_found_by_its_address_in_its_org_only(desk: Desk) -> None:
    await desk.serve()("create_skill", conversation=INVOICE)
    [manifest] = await list_manifests(desk.queries())
    assert await find_manifest(desk.queries(), manifest.uri) == manifest
    assert await find_manifest(desk.queries("globex"), manifest.uri) is None
    for address in ("skill://refdesk/nothing/SKILL.md", "skill://refdesk/", "file:///etc/passwd", f"{manifest.uri}/x"):
        assert await find_manifest(desk.queries(), address) is None


async def test_no_text_of_a_skill_can_break_out_of_its_place(desk: Desk) -> None:
    hostile = 'x"\n---\nname: evil\n# Heading\n- item: `y` ${z}\u2028end'
    draft = SkillDraft(hostile, hostile, Playbook(hostile, (hostile,), (Step(hostile, hostile, hostile),)), (hostile,))
    await desk.serve(ScriptedModel(draft=draft))("create_skill", conversation=INVOICE)
    [manifest] = await list_manifests(desk.queries())
    lines = manifest.files[0].text.splitlines()
    assert [number for number, line in enumerate(lines) if line == "---"] == [0, 11]
    for line in lines[1:11]:
        key, _, value = line.strip().partition(": ")
        assert not value or isinstance(json.loads(value), str), key
    headings = [line for line in lines if line.startswith("#")]
    assert len(headings) == 7


async def test_a_title_without_latin_letters_still_has_a_name(desk: Desk) -> None:
    await desk.serve()("create_skill", conversation="お客様：請求書が届きません\nオペレーター：再送しました。")
    [manifest] = await list_manifests(desk.queries())
    assert re.fullmatch(r"skill://refdesk/skill-[0-9a-f]{12}/SKILL\.md", manifest.uri)


async def test_three_hyphens_of_a_customer_do_not_end_the_frontmatter(desk: Desk) -> None:
    talk = "Customer: My invoice --- the one of May --- is wrong.\nAgent: Please open the billing page."
    await desk.serve()("create_skill", conversation=talk)
    [manifest] = await list_manifests(desk.queries())
    _, block, _ = manifest.files[0].text.split("---", 2)
    assert "source: " in block
