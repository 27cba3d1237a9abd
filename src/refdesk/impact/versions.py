"""Versions of runtimes, systems and interfaces in normal form: `.NET 8` and `net8.0`, `PYTHON|3.10`, Node's `~20`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ALIASES = {
    "node": "node", "node.js": "node", "nodejs": "node", "website_node_default_version": "node",
    "python": "python", "py": "python", ".net": "dotnet", "dotnet": "dotnet", "net": "dotnet",
    "java": "java", "php": "php", "powershell": "powershell", "pwsh": "powershell",
    "ubuntu": "ubuntu", "windows server": "windows server", "windowsserver": "windows server",
    "rhel": "rhel", "debian": "debian",
    "tls": "tls", "minimum tls version": "tls", "min-tls-version": "tls", "ssl": "ssl",
    "azure linux": "azure linux", "mariner": "azure linux", "azurelinux": "azure linux",
    "kubernetes": "kubernetes", "k8s": "kubernetes",
    "databricks runtime": "databricks runtime", "dbr": "databricks runtime",
    "spark_version": "databricks runtime", "spark": "spark", "postgresql": "postgresql", "postgres": "postgresql",
    "mysql": "mysql", "terraform": "terraform", "functions_extension_version": "runtime", "runtime": "runtime",
    "blobfuse": "blobfuse", "hsmplatform": "hsmplatform", "api": "api", "api-version": "api", "sdk": "sdk",
    "general purpose": "general purpose", "gp": "general purpose", "default rule set": "rule set", "drs": "rule set",
    "inbound nat rule": "nat rule", "nat rules": "nat rule", "image analysis": "image analysis",
}  # fmt: skip
_NAMES = "|".join(sorted(map(re.escape, _ALIASES), key=len, reverse=True)).replace(r"\ ", r"\s+")
_NUMBER = r"(?:v|~|version\s*)?\s?(?P<number>\d{4}-\d{2}-\d{2}|\d{1,4}(?:\.\d{1,4}){0,2})(?:\.x)?"
_NAMED = re.compile(
    rf"(?<![\w.])(?P<name>{_NAMES})(?:\s+(?:on|is|to|at|version|versions|lts|runtime)\b)*[\s|:,=\"'~_(-]{{0,4}}{_NUMBER}(?![\w])",
    re.IGNORECASE,
)
_FURTHER = re.compile(
    r"\s*(?:\(?lts\)?)?\s*(?:/|(?:,|;|&|and|or)\s+(?:and\s+)?)(?:v|~)?(?P<number>\d{1,3}(?:\.\d{1,3}){0,2})(?!\s*%|[\w-])",
    re.IGNORECASE,
)
_LONG_TERM = re.compile(r"(?<![\w.])(?P<number>\d{1,2}(?:\.\d{1,2})?)(?:\.x)?[\s-]+LTS\b")
_FRAMEWORK = re.compile(r"(?<![\w.])net(?P<number>\d{1,2}\.\d)(?!\w)", re.IGNORECASE)
_BEHIND = re.compile(
    r"(?<![\w.])(?:v|~)(?P<number>\d{1,2}(?:\.\d{1,2})?)(?:\s+of)?\s+(?P<name>api|runtime|sdk)\b", re.IGNORECASE
)
_BARE = re.compile(r"(?<![\w.])v(?P<number>\d{1,2}\.\d{1,2})(?![\w.])", re.IGNORECASE)
_OF_INTERFACE = re.compile(r"\bapi(?:s|-version)?\b", re.IGNORECASE)
_OR_BELOW = re.compile(r"\s*(?:and|or)\s+(?:earlier|older|lower|below|before)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Version:
    """A version that a text names.

    Attributes:
        name: What it is a version of.
        number: The number without trailing zeros: `8` for `8.0`; a date stays as it is.
        and_below: Whether all earlier versions are meant, too.
        start, end: Offsets in the text.
    """

    name: str
    number: str
    and_below: bool
    start: int
    end: int

    def covers(self, other: Version) -> bool:
        """Return whether this version, as announced, is or includes another of the same thing."""
        if self.name != other.name:
            return False
        return self.number == other.number or (self.and_below and _order(other.number) <= _order(self.number))


def find_versions(text: str) -> list[Version]:
    """Return the versions that a text names, in order."""
    found: list[Version] = []
    for match in _NAMED.finditer(text):
        name = _ALIASES[re.sub(r"\s+", " ", match["name"].lower())]
        found.append(_make(text, name, match))
        at = match.end()
        while further := _FURTHER.match(text, at):
            found.append(_make(text, name, further))
            at = further.end()
    found += [_make(text, "dotnet", match) for match in _FRAMEWORK.finditer(text)]
    found += [_make(text, _ALIASES[match["name"].lower()], match) for match in _BEHIND.finditer(text)]
    if _OF_INTERFACE.search(text):
        found += [_make(text, "api", match) for match in _BARE.finditer(text)]
    if "databricks" in text.lower():
        found += [_make(text, "databricks runtime", match) for match in _LONG_TERM.finditer(text)]
    return sorted(found, key=lambda version: version.start)


def _make(text: str, name: str, match: re.Match[str]) -> Version:
    return Version(
        name, _normalise(match["number"]), _OR_BELOW.match(text, match.end()) is not None, match.start(), match.end()
    )


def _normalise(number: str) -> str:
    if "-" in number:
        return number
    major, *rest = number.split(".")
    if rest and rest[-1] == "0" and len(rest) == 1:
        return major
    return ".".join([major, *rest])


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", number))
