"""Every kind of record is known to erasing: whoever adds one says here who wrote what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.keeping.erasing import Erasable, erase
from refdesk.core.writing.audit import Actor
from refdesk.gaps import records as gaps
from refdesk.impact import cases
from refdesk.impact import records as impacts
from refdesk.model import Metadata, MetadataKey
from refdesk.playbooks import Case, Turn
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills.cases import to_record
from tests.meta.test_structure import SOURCE

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CANARY = "xylocarpine"

OF_ITS_AGENT = {
    *("gap_asked", "skill_outcome", "get_kind(skill_id)", "task"),
    *("watch", "watch_inbox", "watch_news", "watch_seen", "watch_expiry", "watch_delivery"),
}
"""Have the field `agent`, and go with it."""

NAMED_BY_ITS_AGENT = {"idempotency", "quota"}
JUDGED = {"gap", "impact", "impact_case", "impact_marks"}
"""Tell of something else, and have the field `by`: the name and the words of who judged go."""

OF_NOBODY = {
    *("chain", "size", "api_key", "move", "lease", "migration", "backup", "store", "embedding_model", "cosine_scale"),
    *("embedding_failure", "sync", "sync_run", "quarantine", "sync_conversions", "sync_changes_begun"),
    *("_name_kind(toolset, at)", "gap_dropped", "impact_disputed", "impact_pending", "impact_change", "impact_state"),
    *("impact_reach", "impact_learned", "skill_import", "skill_source", "skill_generation", "skill_counters"),
    *("_get_kind(skill_id)", "knowledge_wording", "watch_unread", "watch_state", "watch_progress"),
}
"""Hold ids, counts and states: nothing that an agent wrote. Keys open a door to an agent, until they are revoked."""

_PASSED_ON = {"kind"}
"""Names of parameters, whose values are kinds that are listed by themselves."""


def list_constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names, values = node.targets[0], node.value
            pairs = [(names, values)]
            if isinstance(names, ast.Tuple) and isinstance(values, ast.Tuple):
                pairs = list(zip(names.elts, values.elts, strict=True))
            for name, value in pairs:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield ast.unparse(name), value.value


def list_imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what another module of ours calls KIND, where it is imported by that name: each may have its own."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and "KIND" in {each.name for each in node.names}:
            path = SOURCE.parent / f"{str(node.module).replace('.', '/')}.py"
            yield from ((name, kind) for name, kind in list_constants(ast.parse(path.read_text())) if name == "KIND")


def resolve(said: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(said, ast.Constant):
        return str(said.value)
    name = ast.unparse(said).rpartition(".")[2] if not isinstance(said, ast.Call) else ast.unparse(said)
    return constants.get(name, name.removeprefix("cases."))


def list_kinds() -> set[str]:
    """Return the kinds of all records of which a key is made: the text, or the expression that makes it."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    everywhere: dict[str, str] = {}
    for tree in trees.values():
        everywhere |= {name: value for name, value in list_constants(tree) if name != "KIND"}
    kinds = set[str]()
    for tree in trees.values():
        here = {**everywhere, **dict(list_constants(tree)), **dict(list_imported(tree))}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "MetadataKey" and len(node.args) > 1:
                kinds.add(resolve(node.args[1], here))
    return kinds - _PASSED_ON


def test_every_kind_of_record_is_known_to_erasing() -> None:
    assert list_kinds() == OF_ITS_AGENT | NAMED_BY_ITS_AGENT | JUDGED | OF_NOBODY


def make_records(agent: str) -> dict[str, Metadata]:
    side = cases.Side("a", 0, 1, "x"), cases.Side("b", 0, 1, "x")
    case = cases.Case("acme", *side, "value", 0.9, "both_hold", agent, f"{CANARY} of {agent}")
    impact = impacts.Impact(
        "acme", "499", "notes", "a", "retires", None, 0.9, (), 0, 1, "x", "dismissed", agent, CANARY
    )
    asked = gaps.Asked("acme", "g1", agent, CANARY, ("notes",), ("notes",), 1, NOW, NOW)
    return {
        "impact_case": cases.write_case(case),
        "impact": impacts.write_impact(impact),
        "impact_marks": impacts.write_marks(MetadataKey("acme", "impact_marks", "notes/a"), [impact]),
        "gap": gaps.write_became("acme", "g1", gaps.Became("dismissed", "", agent, CANARY, NOW)),
        "gap_asked": gaps.write_asked(asked, timedelta(days=9)),
        "skill_case/s": to_record(Case("c", (Turn("customer", CANARY),)), "acme", "s", agent, NOW),
    }


@pytest.mark.parametrize("kind", sorted(make_records("")))
async def test_what_an_agent_wrote_in_a_record_of_any_kind_goes_with_it(kind: str) -> None:
    store, record, others = MemoryStore(), make_records("mallory")[kind], make_records("bob")[kind]
    async with store.transaction() as transaction:
        await transaction.put_metadata([record])
    await erase(store, FixedClock(NOW), Actor("acme", "ann", "test"), Erasable("acme", agent="mallory"))
    left = await store.get_metadata(record.key)
    assert CANARY not in str(left)
    assert "mallory" not in str(left)
    assert (left is None) == (kind not in JUDGED)
    async with store.transaction() as transaction:
        await transaction.put_metadata([others])
        await transaction.put_metadata([make_records("mallory")["gap_asked"]])
    await erase(store, FixedClock(NOW), Actor("acme", "ann", "test"), Erasable("acme", agent="mallory"))
    assert await store.get_metadata(others.key) == others


def test_every_kind_that_is_judged_is_tried() -> None:
    assert set(make_records("")) >= JUDGED
