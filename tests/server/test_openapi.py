"""The OpenAPI description as tools read it: valid, and true about addresses, statuses and methods."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
from openapi_spec_validator import OpenAPIV31SpecValidator

from refdesk import errors
from refdesk.core import contracts
from refdesk.core.operations import Toolset
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import openapi, pages


def test_the_description_of_every_toolset_is_valid() -> None:
    described = openapi.describe(describe_toolsets(), "https://issuer.example")
    assert [str(error) for error in OpenAPIV31SpecValidator(described).iter_errors()] == []


def test_what_stands_in_an_address_is_a_parameter_and_no_field_of_the_body() -> None:
    for path, methods in openapi.describe(describe_toolsets())["paths"].items():
        named = set(re.findall(r"{(\w+)}", path))
        for operation in methods.values():
            parameters = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
            content = operation.get("requestBody", {}).get("content", {}).get(openapi.JSON, {})
            assert parameters == named, path
            assert not named & content.get("schema", {}).get("properties", {}).keys(), path
            assert not named & {name for one in content.get("examples", {}).values() for name in one["value"]}, path


def test_a_warning_does_not_hide_the_answer() -> None:
    toolsets = describe_toolsets()
    paths = openapi.describe(toolsets)["paths"]
    for operation in (each for toolset in toolsets for each in toolset.operations):
        responses = paths[operation.route.path][operation.route.method.lower()]["responses"]
        schema = responses["200"]["content"][openapi.JSON]["schema"]
        assert schema == contracts.get_output_schema(operation.output), operation.name


def test_what_any_caller_may_be_answered_is_described_for_every_operation_by_the_code_that_it_sees() -> None:
    described = openapi.describe(describe_toolsets())["paths"]
    for toolset in describe_toolsets():
        for each in (*toolset.operations, *toolset.resources):
            responses = described[each.route.path][each.route.method.lower()]["responses"]
            for kind in (errors.UnauthenticatedError, errors.TooLargeError, errors.LimitExceededError):
                response = responses[str(contracts.STATUSES[kind])]
                assert f"{toolset.error_format.name(kind.code)}: " in response["description"], each
                assert ("Retry-After" in response.get("headers", {})) is (kind is errors.LimitExceededError)


class Counted(tuple[Toolset, ...]):
    """Toolsets that count how often they were gone through."""

    rounds = 0

    def __iter__(self) -> Iterator[Toolset]:
        self.rounds += 1
        return super().__iter__()


def test_the_page_of_operations_is_written_once_and_names_the_server_as_each_client_reaches_it() -> None:
    """Nobody needs a key for it, and writing it takes long."""
    toolsets = Counted(describe_toolsets())
    docs = pages.Docs(toolsets, "", wants_keys=True)
    first = bytes(docs.show("https://a.example").body)
    rounds = toolsets.rounds
    second = bytes(docs.show('https://b.example/"<x>').body)
    assert (rounds > 0, toolsets.rounds) == (True, rounds)
    assert b"curl https://a.example/knowledge/" in first
    assert second == first.replace(b"https://a.example", b"https://b.example/&quot;&lt;x&gt;")


async def test_a_wrong_method_names_the_right_ones(rest: httpx2.AsyncClient) -> None:
    wrong = await rest.get("/echo/search")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert "POST" in wrong.json()["error"]["message"]
