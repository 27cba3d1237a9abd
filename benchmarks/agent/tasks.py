"""The tasks, as the file beside this has them, and whether one is solved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at once a task is done: the answer of a tool, and what it must, may not, and may but once hold."""

    tool: str
    arguments: dict[str, Any]
    must: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """An everyday task.

    Attributes:
        ask: What a person says to the agent.
        recipes: For the scripted agent: the recipes of the server's instructions that are followed, in turn.
        facts: For the scripted agent: what the person's words come to, by the names of arguments.
        ideal: The calls of somebody who knows the desk well.
        must: What the reply must hold.
        never: What it may not.
        after: What the desk must be like then.
    """

    name: str
    ask: str
    recipes: tuple[str, ...]
    facts: dict[str, Any]
    ideal: int
    must: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    after: tuple[Look, ...] = ()


def load_tasks(path: Path = FOLDER / "tasks.json") -> list[Task]:
    """Return the tasks of a file, in its order."""
    return [_read(each) for each in json.loads(path.read_text("utf-8"))]


def _read(task: dict[str, Any]) -> Task:
    reply, looks = task["reply"], task.get("after", [])
    return Task(
        task["name"],
        task["ask"],
        tuple(task["recipes"]),
        task["facts"],
        task["ideal"],
        tuple(reply.get("must", ())),
        tuple(reply.get("never", ())),
        tuple(
            Look(each["tool"], each["arguments"], *(tuple(each.get(name, ())) for name in ("must", "never", "once")))
            for each in looks
        ),
    )


def find_faults(text: str, must: tuple[str, ...], never: tuple[str, ...] = (), once: tuple[str, ...] = ()) -> list[str]:
    """Return what is wrong with a text, whatever its case; nothing where all of it is right."""
    folded = text.casefold()
    return [
        *(f"lacks {each!r}" for each in must if each.casefold() not in folded),
        *(f"holds {each!r}" for each in never if each.casefold() in folded),
        *(f"holds {each!r} {count} times" for each in once if (count := folded.count(each.casefold())) > 1),
    ]
