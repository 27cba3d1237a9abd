"""No answer over MCP has more tokens than a model's context takes, and each says how to get what was cut."""

from __future__ import annotations

import json
import random
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator, validate
from mcp.client import Client

from benchmarks.tokens import count_tokens
from refdesk.app import Desk, open_desk
from refdesk.core import contracts
from refdesk.core.operations import Operation, Shortening
from refdesk.factories.toolsets import describe_toolsets, load_toolsets
from refdesk.server import ceiling
from refdesk.server.answers import to_text
from refdesk.server.principals import local_principal
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.conftest import connect
from tests.server.echo import make_settings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PROSE = "Refunds above five hundred euros must be approved by a team lead, who writes the reason into the case. "
CHINESE = "退款请求需要主管批准，金额超过五百欧元时必须记录原因。"

_random = random.Random(7)


def draw(alphabet: str, length: int) -> str:
    return "".join(_random.choice(alphabet) for _ in range(length))


TEXTS = {
    "english": PROSE * 40,
    "chinese": CHINESE * 100,
    "japanese": "返金の上限は五百ユーロです。それを超える場合はチームリーダーの承認が必要です。" * 60,
    "korean": "오백 유로를 초과하는 환불은 팀장의 승인이 필요합니다. " * 80,
    "russian": "Возврат средств свыше пятисот евро должен быть одобрен руководителем группы. " * 40,
    "arabic": "يجب أن يوافق قائد الفريق على المبالغ المستردة التي تزيد عن خمسمائة يورو. " * 40,
    "thai": "การคืนเงินที่เกินห้าร้อยยูโรต้องได้รับอนุมัติจากหัวหน้าทีม " * 40,
    "hindi": "पाँच सौ यूरो से अधिक की वापसी के लिए टीम लीड की मंजूरी आवश्यक है। " * 40,
    "german": "Rückerstattungen über fünfhundert Euro müssen von der Teamleitung genehmigt werden. " * 40,
    "code": Path(ceiling.__file__).read_text("utf-8"),
    "ids": json.dumps([str(UUID(int=_random.getrandbits(128))) for _ in range(200)]),
    "hexadecimal": draw("0123456789abcdef", 8000),
    "base64": draw(string.ascii_letters + string.digits + "+/", 8000),
    "letters": draw(string.ascii_lowercase, 8000),
    "punctuation": draw("!\"#$%&'()*+,-./:;<=>?@[]^_{|}~", 3000),
    "emoji": "".join(chr(_random.randint(0x1F300, 0x1F6FF)) for _ in range(1500)),
    "escapes": json.dumps({"text": ('\n\t"quoted" \\ ' + PROSE) * 40}),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_estimate_is_never_below_what_a_model_counts_and_never_twice_as_much(text: str) -> None:
    counted = count_tokens(text)
    assert counted <= ceiling.estimate_tokens(text) < 2 * counted


def test_what_fits_is_left_as_it_is() -> None:
    value = {"results": [{"text": PROSE * 100}]}
    assert ceiling.shorten(value, Shortening("results", ("text",)), {}) is value


def test_long_texts_are_cut_before_any_item_is_left_out_and_short_ones_stay_whole() -> None:
    items = [{"id": str(n), "text": PROSE * 100 if n % 2 else "Short."} for n in range(20)]
    value = {"results": items, "query": "refunds"}
    shortened = ceiling.shorten(value, Shortening("results", ("text",), "Ask for one."), {})
    assert [item["id"] for item in shortened["results"]] == [item["id"] for item in items]
    assert [item["text"] for item in shortened["results"]][::2] == ["Short."] * 10
    assert all(item["text"].endswith("…") and len(item["text"]) > 500 for item in shortened["results"][1::2])
    assert shortened["truncated"] == {"message": "Not whole: 10 long texts are cut, so that it fits. Ask for one."}
    assert value["results"] is items
    assert 8_000 <= count_tokens(to_text(shortened)) <= ceiling.MOST_TOKENS


@pytest.mark.parametrize("text", [TEXTS["english"], TEXTS["chinese"], TEXTS["ids"], TEXTS["base64"]])
@pytest.mark.parametrize(
    "how", [Shortening("results", ("text",), pages=True), Shortening(), Shortening("", ("head.text",))]
)
def test_whatever_an_answer_holds_it_fits(text: str, how: Shortening) -> None:
    value = {"results": [{"id": n, "text": text, "tags": [text] * 3} for n in range(60)], "head": {"text": text}}
    shortened = ceiling.shorten(value, how, {})
    assert count_tokens(to_text(shortened)) <= ceiling.MOST_TOKENS
    assert shortened["truncated"]["message"]


def each_shortened() -> list[Operation]:
    return [
        operation for toolset in describe_toolsets() for operation in toolset.operations if operation.shortening.texts
    ]


@pytest.mark.parametrize("operation", each_shortened(), ids=lambda operation: operation.name)
def test_what_may_be_cut_is_there(operation: Operation) -> None:
    how, schema = operation.shortening, contracts.get_output_schema(operation.output)
    properties: Any = schema["properties"]
    if how.items:
        properties = properties[how.items]["items"]["properties"]
    for path in how.texts:
        for name in path.split(".")[:-1]:
            properties = properties[name]["properties"]
        assert path.split(".")[-1] in properties
    assert how.pages is ("offset" in operation.input.model_fields)


@pytest.fixture
async def desk(tmp_path: Path) -> Any:  # noqa: ANN401 - a generator
    settings = make_settings(tmp_path, agent="tester")
    async with open_desk(settings, load_toolsets(["azure-updates", "knowledge"]), in_background=False) as opened:
        yield opened


async def ask(desk: Desk, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer, held to the ceiling in both of its forms, to its tool's schema, and to its contract."""
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    async with connect(desk, "legacy", principal) as client:
        result = await client.call_tool(tool, arguments)
        schema = await find_schema(client, tool)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    [text] = [block.text for block in result.content if block.type == "text"]
    assert json.loads(text) == result.structured_content
    assert count_tokens(text) <= ceiling.MOST_TOKENS
    validate(result.structured_content, schema, Draft202012Validator)
    [operation] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == tool]
    returns: Any = contracts.describe_operation(operation)["returns"]
    validate(result.structured_content, returns, Draft202012Validator)
    return result.structured_content


async def find_schema(client: Client, tool: str) -> dict[str, Any]:
    [found] = [each for each in (await client.list_tools()).tools if each.name == tool]
    # A receipt has none: nobody need know it before.
    assert found.output_schema is not None or tool == "store_knowledge"
    return found.output_schema or {}


async def test_the_default_page_of_updates_keeps_its_count_and_reading_on_finds_the_rest(desk: Desk) -> None:
    base = (await desk.get_base()).knowledge_base
    record: dict[str, Any] = {
        "status": "Launched",
        "tags": ["Security"],
        "products": ["Virtual Machines"],
        "productCategories": ["Compute"],
    }
    day = {"created": "2026-02-01T00:00:00Z"}
    async with base.store.transaction() as transaction:
        for n in range(100):
            modified = (NOW - timedelta(days=n)).isoformat().replace("+00:00", "Z")
            told = {
                "id": str(500_000 + n),
                "title": f"Azure {n}",
                "description": f"<p>{PROSE * 8}</p>",
                "modified": modified,
            }
            await transaction.put_documents([to_document(record | day | told)])
    page = await ask(desk, "search_azure_updates", {"query": "azure"})
    assert len(page["results"]) == 50
    assert "cut" in page["truncated"]["message"]
    read: list[str] = []
    asked: dict[str, Any] = {"limit": 100}
    while True:
        page = await ask(desk, "search_azure_updates", asked)
        read += [update["id"] for update in page["results"]]
        if not page["hasMore"]:
            break
        asked = {"limit": 100, **page["truncated"]["next"]}
    assert read == [str(500_000 + n) for n in range(100)]


@pytest.mark.parametrize("text", [CHINESE, PROSE, draw(string.ascii_letters, 100)])
async def test_a_long_entry_is_read_on_to_its_end(desk: Desk, text: str) -> None:
    body = (text * 32_000)[:32_000].strip()
    stored = await ask(desk, "store_knowledge", {"title": "Long", "body": body})
    read, asked = "", {"id": stored["id"]}
    while True:
        entry = await ask(desk, "get_knowledge", asked)
        read += entry["body"].removesuffix("…") if "truncated" in entry else entry["body"]
        if "truncated" not in entry:
            break
        asked = {"id": stored["id"], **entry["truncated"]["next"]}
    assert read == body
