"""What is told of a call, and what goes on to the services that it asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from refdesk import errors
from refdesk.core import tracing
from refdesk.core.tracing import Ending, Kind
from refdesk.embedders.hosted.openai import OpenAIEmbedder
from refdesk.kit.http import HttpReader
from refdesk.language_models.hosted.gemini import GeminiModel
from refdesk.language_models.hosted.openai import OpenAIModel
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError
from refdesk.toolsets.salesforce_knowledge.transport import Request, Transport
from tests.emulators.otlp import read_received, receiving


@dataclass
class Listener:
    """A tracer that keeps what it is told: names by depth, and how each ended."""

    depth: int = 0
    told: list[tuple[int, str, Mapping[str, str]]] = field(default_factory=list[tuple[int, str, Mapping[str, str]]])
    endings: dict[str, Ending] = field(default_factory=dict[str, Ending])
    name: str = ""

    def begin(self, name: str, kind: Kind, attributes: Mapping[str, str], traceparent: str | None = None) -> Listener:
        del kind, traceparent
        self.told.append((self.depth, name, attributes))
        return Listener(self.depth + 1, self.told, self.endings, name)

    def end(self, ending: Ending) -> None:
        self.endings[self.name] = ending

    def get_headers(self) -> dict[str, str]:
        return {"traceparent": f"of {self.name}"}


@pytest.fixture(scope="module")
def elsewhere() -> Generator[str]:
    """A service that answers 404 and keeps what it was sent."""
    with receiving() as address:
        yield address


async def read_feed(address: str) -> object:
    reader = HttpReader(url=f"{address}/feed", variable="TEST_URL")
    return await reader.read(len)


async def embed(address: str) -> object:
    async with OpenAIEmbedder(None, base_url=f"{address}/embedding", dimensions=2, model="m") as embedder:
        return await embedder.embed_query("x")


DRAFT = SkillDraft("Title", "Problem", Playbook("Goal.", steps=(Step("Do.", id="s1"),)))


async def ask_openai(address: str) -> object:
    async with OpenAIModel(base_url=f"{address}/openai") as model:
        return await model.write(DRAFT, [])


async def ask_gemini(address: str) -> object:
    async with GeminiModel("key", base_url=f"{address}/gemini") as model:
        return await model.write(DRAFT, [])


async def ask_salesforce(address: str) -> object:
    async with Transport(address, 10.0) as transport:
        return await transport.send(address, Request("GET", "/salesforce"))


@pytest.mark.parametrize(
    ("path", "service", "ask"),
    [
        ("/feed", "feed", read_feed),
        ("/embedding/", "embedding", embed),
        ("/openai/", "language model", ask_openai),
        ("/gemini/", "language model", ask_gemini),
        ("/salesforce", "salesforce", ask_salesforce),
    ],
)
async def test_what_is_asked_elsewhere_is_part_of_the_trace(
    elsewhere: str, path: str, service: str, ask: Callable[[str], Awaitable[object]]
) -> None:
    listener = Listener()
    with tracing.trace(listener, "call"), suppress(errors.RefdeskError, RefusedError):
        await ask(elsewhere)
    sent = [one.headers.get("traceparent") for one in read_received(elsewhere) if one.path.startswith(path)]
    assert sent == [f"of call {service}"]
    assert (1, f"call {service}", {"service": service}) in listener.told
    with suppress(errors.RefdeskError, RefusedError):
        await ask(elsewhere)
    assert "traceparent" not in [one for one in read_received(elsewhere) if one.path.startswith(path)][-1].headers


def test_nothing_is_recorded_outside_of_a_trace() -> None:
    with tracing.trace(None, "call") as ending, tracing.span("part"), tracing.calling("feed") as headers:
        assert headers == {}
        assert not tracing.is_traced()
    assert ending.outcome == "ok"


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (errors.NotFoundError("secret"), Ending("NOT_FOUND", is_failure=False)),
        (errors.StoreError("secret"), Ending("STORE_UNAVAILABLE", is_failure=True)),
        (ValueError("secret"), Ending("BROKEN", is_failure=True, error_type="ValueError")),
        (KeyboardInterrupt("secret"), Ending("CANCELLED", is_failure=False)),
    ],
)
def test_an_error_is_told_by_its_code(error: BaseException, ending: Ending) -> None:
    listener = Listener()
    with pytest.raises(type(error)), tracing.trace(listener, "call"), tracing.span("part"):
        raise error
    assert listener.endings == {"call": ending, "part": ending}
    assert not tracing.is_traced()


def test_a_service_that_does_not_answer_is_not_told_as_a_bug() -> None:
    listener = Listener()
    with tracing.trace(listener, "sync"), suppress(OSError), tracing.calling("feed"):
        raise ConnectionRefusedError("secret")
    asked = Ending("FAILED", is_failure=True, error_type="ConnectionRefusedError")
    assert listener.endings == {"call feed": asked, "sync": Ending()}
