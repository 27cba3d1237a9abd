"""Virtual machine sizes and their series: `Standard_D2s_v3` is in Dsv3, so an announcement on Dv3/Dsv3 applies to it.

Source: Microsoft's naming conventions of virtual machine sizes: family, subfamily, number of vCPUs, constrained vCPUs,
additive features, accelerator, version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SIZE = re.compile(
    r"""(?<![A-Za-z0-9])(?P<standard>(?i:standard|basic)_)?
    (?P<family>[A-Z]{1,3}?)(?P<disk>S(?=\d+(?:-\d+)?_v))?(?P<cpus>\d{1,4})(?:-\d+)?
    (?P<features>[a-z]{0,5}?)(?P<accelerator>_(?:cc|[A-Z]+\d+[a-z]*))?(?:_?v(?P<version>\d+))?(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_NAME = re.compile(
    r"""(?<![A-Za-z0-9])(?:Standard_)?(?P<family>[A-Z]{1,2})(?P<features>[a-z]{0,5}?)
    (?P<accelerator>_?(?:cc|A10|V710|H100|T4|A100|MI300X))?_?v(?P<version>\d+)(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_LISTED = re.compile(
    r"(?<![A-Za-z0-9])((?:[A-Z]{1,2}[a-z]{0,5}(?:v\d)?(?:,? and |, ?| or |/))*[A-Z]{1,2}[a-z]{0,4})"
    r"[- ]?(?i:series)(?![a-z])"
)
_IN_LIST = re.compile(r"(?<![A-Za-z0-9])([A-Z]{1,2}[a-z]{0,3})(?![A-Za-z0-9])")
_SPECIALISED = re.compile(r"(?:N|H|M)[A-Z]*|H")
_SHOUTED = re.compile(r"STANDARD_([A-Z0-9_-]+)")
_OF_COMPUTE = re.compile(
    r"\b(?:vms?|virtual machines?|azure|vcpus?|skus?|sizes?|pools?|nodes?|quota|reserv\w+|ri|boxes)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Series:
    """A series that a text names, by one of its sizes or directly.

    Attributes:
        names: Names that announcements may use for it, folded, the most exact first.
        start, end: Offsets in the text.
    """

    names: tuple[str, ...]
    start: int
    end: int


def find_series(text: str) -> list[Series]:
    """Return the series that a text names, in order."""
    found = [*_find_sizes(text), *_find_names(text)]
    return sorted(found, key=lambda each: each.start)


def _find_sizes(text: str) -> Iterator[Series]:
    for match in _SHOUTED.finditer(text):
        lowered = re.sub(r"[A-Z]+(?=_|$)", lambda m: m[0].lower(), match[1].replace("_V", "_v"))
        yield from (Series(each.names, match.start(), match.end()) for each in _find_sizes(f"Standard_{lowered}"))
    for match in _SIZE.finditer(text):
        if match["standard"] or match["version"] or re.fullmatch(r"B\d+m?s", match[0]):
            yield Series(_name_size(match), match.start(), match.end())


def _name_size(match: re.Match[str]) -> tuple[str, ...]:
    family, features, version = match["family"], match["features"] + ("s" if match["disk"] else ""), match["version"]
    accelerator = (match["accelerator"] or "").strip("_").lower()
    suffix = f"v{version}" if version else ""
    names = [f"{family}{features}{accelerator}{suffix}", f"{family}{features}{suffix}"]
    if _SPECIALISED.fullmatch(family) and not accelerator:
        names.append(f"{family}{suffix}")
    if family == "B" and not version:
        names += ["B", "Bs", "Bv1"]
    return tuple(dict.fromkeys(name.lower() for name in names))


def _find_names(text: str) -> Iterator[Series]:
    for match in _NAME.finditer(text):
        if match["family"] == "IP":
            continue
        parts = (match["family"], match["features"], (match["accelerator"] or "").strip("_"), f"v{match['version']}")
        # "Dv3" names the page of both Dv3 and Dsv3, which are retired together.
        yield Series(("".join(parts).lower(),), match.start(), match.end())
    if not _OF_COMPUTE.search(text):
        return
    for match in _LISTED.finditer(text):
        for each in _IN_LIST.finditer(match[1]):
            if each[1] == "VM":
                continue
            yield Series((each[1].lower(),), match.start() + each.start(), match.start() + each.end())


def list_sizes(name: str) -> list[str]:
    """Return how sizes of a series are written, as far as its name tells: for `dsv3`, among others `d4s_v3`."""
    parts = re.fullmatch(r"([a-z]{1,2}?)([a-z]{0,5}?)((?:a10|v710|h100|t4|cc)?)(?:v(\d+))?", name)
    if parts is None:
        return []
    suffix = f"_v{parts[4]}" if parts[4] else ""
    return [f"{parts[1]}{cpus}{parts[2]}{suffix}" for cpus in _COMMON_SIZES]


_COMMON_SIZES = (2, 4, 8, 16, 32, 64)
