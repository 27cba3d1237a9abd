"""Reads the texts of errors out of the source, and tells whether a text says what to do next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from refdesk import errors

REPOSITORY = Path(__file__).parents[2]

VERBS = """
    add allow ask call check choose close copy create delete download edit enable end export find fix flatten follow
    free give go grant import install keep learn leave let list look lower make mark mend merge move name open paste
    pick point put raise read refine remove rename repair repeat replace report restart restore retry run save say
    search see send set shorten show sign split start stop store sum supersede swap sync take tell try undo
    unmerge update upgrade use wait widen write
"""
"""With which a sentence, or a part of one, asks something of its reader."""

_ASKS = re.compile(rf"(?:^|[.:;,—–(] ?|\bor |\band |\bthen |\bplease |`)(?:{'|'.join(VERBS.split())})\b", re.IGNORECASE)
_FORMS = re.compile(
    r"\bmust\b|\bneeds?\b|\bmay\b|\bis required|\bat (?:most|least)\b|\bsuch as\b|\bdid you mean\b"
    r"|\bthere are\b|\bthe arguments are\b",
    re.IGNORECASE,
)
"""Or it says what would do."""

_TOOL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\brefdesk [a-z]+|`[^`]+`")
"""Or it names a tool or a command."""

_FILLED = "…"


def says_what_to_do(text: str) -> bool:
    """Return whether a reader of an error knows from its text what to do next."""
    return any(pattern.search(text) for pattern in (_ASKS, _FORMS, _TOOL))


@dataclass(frozen=True, slots=True)
class Raised:
    """An error's text, with `…` for what is filled in, and where it is made."""

    place: str
    text: str


def read_texts(folder: Path) -> list[Raised]:
    """Return the texts of all errors that the modules below a folder make with a text of their own."""
    return [raised for path in sorted(folder.rglob("*.py")) for raised in _read(path, folder)]


NAMES = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.RefdeskError)
}


def _read(path: Path, folder: Path) -> Iterator[Raised]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _get_name(node.func) in NAMES and node.args:
            text = _write(node.args[0], constants)
            if text is not None:
                yield Raised(f"{path.relative_to(folder)}:{node.lineno}", text)


def _get_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _write(node: ast.expr, constants: Mapping[str, ast.expr]) -> str | None:
    """Return a text as far as the source has it, `None` where it has nothing of it."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(_write(part, constants) or _FILLED for part in parts)
        case ast.Name(name) if name in constants:
            return _write(constants[name], constants)
        case ast.BinOp(left, ast.Add(), right):
            both = _write(left, constants), _write(right, constants)
            return None if both == (None, None) else "".join(each or _FILLED for each in both)
        case _:
            return None
