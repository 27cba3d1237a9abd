"""Whether this Python was compiled for speed: a CPython without its profile-guided optimization is far slower."""

from __future__ import annotations

import sys
import sysconfig
from typing import TYPE_CHECKING

from refdesk.core.descriptors import Check

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGED = "/usr"
"""Where systems install their own Python, which some of them (Debian) optimize without the variables saying so."""


def check_python() -> list[Check]:
    """Return a hint if this Python was surely built without optimizations, else nothing."""
    if not lacks_optimizations(sysconfig.get_config_vars(), sys.base_prefix):
        return []
    version = ".".join(map(str, sys.version_info[:3]))
    advice = (
        "So refdesk takes more processor time than it needs. Use another, or build it with --enable-optimizations "
        "(pyenv: PYTHON_CONFIGURE_OPTS=--enable-optimizations)."
    )
    return [Check("python", "ok", f"{version} was built without optimizations", advice)]


def lacks_optimizations(variables: Mapping[str, object], prefix: str) -> bool:
    """Return whether a CPython was built from its sources without profiles; `False` if that is not known.

    Args:
        variables: Those of its build, of `sysconfig`.
        prefix: Where it is installed.
    """
    options, flag = str(variables.get("CONFIG_ARGS") or ""), str(variables.get("PGO_PROF_USE_FLAG") or "")
    if prefix == _PACKAGED or not options or not flag or sys.implementation.name != "cpython":
        return False
    of_compiler = " ".join(
        str(value) for name, value in variables.items() if name.endswith(("CFLAGS", "CFLAGS_NODIST"))
    )
    return "--enable-optimizations" not in options and not any(
        each in f"{options} {of_compiler}" for each in ("-fprofile-use", "-fprofile-instr-use", "-prof-use")
    )
