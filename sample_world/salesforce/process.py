"""The emulator as a process that a test or the demo starts, scripts and stops."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sample_world.process import EmulatorError, RunningProcess, name_file, running_process
from sample_world.salesforce.schema import OrgKind

__all__ = ["EmulatorError", "RunningEmulator", "running_emulator"]


@dataclass(frozen=True, slots=True)
class RunningEmulator(RunningProcess):
    """A handle on the emulator's process; `url` is the instance URL of the org."""

    @property
    def client_id(self) -> str:
        """The consumer key of the org's one app."""
        return self.said["client_id"]

    @property
    def client_secret(self) -> str:
        """The consumer secret that goes with it."""
        return self.said["client_secret"]

    @property
    def settings(self) -> dict[str, str]:
        """What a server is told so that it asks this one, by the names of the variables."""
        return {
            "REFDESK_SALESFORCE_INSTANCE_URL": self.url,
            "REFDESK_SALESFORCE_CLIENT_ID": self.client_id,
            "REFDESK_SALESFORCE_CLIENT_SECRET": self.client_secret,
        }

    @property
    def username(self) -> str:
        """The user that every session runs as: `sub` of an assertion."""
        return self.said["username"]

    @property
    def private_key(self) -> str:
        """The key in PEM form that signs assertions; empty where the emulator was given a public key."""
        return self.said["private_key"]

    @property
    def access_token(self) -> str:
        """A token that is good until the sessions expire."""
        return self.said["access_token"]

    async def reset(self) -> None:
        """Put the org back to what it was: articles, rights, usage, page size, sessions. Faults and the log stay."""
        await self._change("reset")

    async def expire_sessions(self) -> None:
        """Let no token that was given so far, the one above included, be good any more."""
        await self._change("expire")

    async def set_usage(self, used: int, limit: int = 15_000, per_app: tuple[int, int, str] | None = None) -> None:
        """Say how many calls of the day's limit are used; each further call counts. At the limit all are refused."""
        await self._change("usage", {"used": used, "limit": limit, "per_app": per_app})

    async def set_user(
        self,
        *,
        knowledge_user: bool = True,
        view_drafts: bool = True,
        view_archived: bool = True,
        hidden_fields: Sequence[str] = (),
        api_enabled: bool = True,
    ) -> None:
        """Give the user exactly these rights (see `org.User`)."""
        await self._change(
            "user",
            {
                "knowledge_user": knowledge_user,
                "view_drafts": view_drafts,
                "view_archived": view_archived,
                "hidden_fields": list(hidden_fields),
                "api_enabled": api_enabled,
            },
        )

    async def set_articles(self, articles: Sequence[object]) -> None:
        """Let the org hold exactly these articles, in the form of `data/articles.json`."""
        await self._change("articles", list(articles))

    async def set_versions(self, oldest: int = 31, newest: int = 68) -> None:
        """Serve these versions of the API alone, both included."""
        await self._change("versions", {"oldest": oldest, "newest": newest})

    async def set_languages(self, default: str, *active: str) -> None:
        """Let the org's articles be in these languages, the first of which is meant where none is named."""
        await self._change("languages", {"default": default, "active": [default, *active]})

    async def set_users(self, users: Mapping[str, Mapping[str, object]]) -> None:
        """Let these tokens be sessions of users with these rights (see `org.User`), beside the app's own sessions."""
        await self._change("users", {token: dict(rights) for token, rights in users.items()})

    async def set_page_size(self, size: int) -> None:
        """Let a page of a query's answer have at most this many records, whatever a client asks for."""
        await self._change("page-size", size)

    async def _change(self, what: str, value: object = None) -> None:
        await self.call("POST", f"org/{what}", value)


@asynccontextmanager
async def running_emulator(
    org: OrgKind = "lightning",
    *,
    article_object: str = "Knowledge__kav",
    articles: Path | None = None,
    faults: Path | None = None,
    public_key: Path | None = None,
    port: int = 0,
) -> AsyncGenerator[RunningEmulator]:
    """Run the emulator in a process of its own while the block runs (see `sample_world.process.running_process`).

    Args:
        org: What kind of org it is; `disabled` has no Knowledge.
        article_object: What a Lightning org calls the object of its articles; ends in `__kav`.
        articles: JSON file of articles to hold instead of the sample world's.
        faults: JSON file of fault rules to start with.
        public_key: PEM file of the key that assertions are checked with; without it a pair is made.
        port: Port to listen on; 0 takes a free one.

    Raises:
        EmulatorError: it ended, or was not listening after 30 s.
    """
    arguments = ["--port", str(port), "--org", org, "--article-object", article_object]
    arguments += [*name_file("--articles", articles), *name_file("--faults", faults)]
    arguments += name_file("--public-key", public_key)
    async with running_process("sample_world.salesforce", arguments) as process:
        yield RunningEmulator(process.pid, process.said, process.control)
