"""The org that a caller calls for; if its credential is valid for several, it names one in a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Sequence

ORG_HEADER = "Refdesk-Org"


def choose_org(orgs: Sequence[str], asked: str | None) -> str:
    """Return the org that a caller calls for, among those that its credential is valid for.

    Raises:
        PermissionDeniedError: There are several and it names none, or it names another one.
    """
    if asked is not None:
        require_org(asked, orgs)
        return asked
    if len(orgs) > 1:
        raise PermissionDeniedError(
            f"You belong to several orgs. Say for which one you call, in the header `{ORG_HEADER}`: {', '.join(orgs)}.",
            details={"orgs": list(orgs)},
        )
    return orgs[0]


def require_org(asked: str, orgs: Sequence[str]) -> None:
    """Check that the org that a caller asks for is one of its own.

    Raises:
        PermissionDeniedError: It is not.
    """
    if asked not in orgs:
        raise PermissionDeniedError(f"Your credential is not for the org that the header `{ORG_HEADER}` names.")
