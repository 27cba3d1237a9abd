"""The org for which a caller calls; if its credential is valid for several, it names one in a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Sequence

ORG_HEADER = "Refdesk-Org"


def choose_org(orgs: Sequence[str], asked: str | None) -> str:
    """Return the org for which a caller calls, among those for which its credential is valid.

    Raises:
        PermissionDeniedError: There are several and the caller names none, or it names one that is not among them.
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


class OrglessError(PermissionDeniedError):
    """A credential is valid, but names no org that is served here; signing in again changes nothing.

    Attributes:
        reason: What is missing, for the log.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            "You are signed in, but belong to no org of this server. Ask whoever manages your account where you sign "
            "in to add you to one, or send an API key."
        )
        self.reason = reason


def require_org(asked: str, orgs: Sequence[str]) -> None:
    """Check that the org that a caller names is one of its own.

    Raises:
        PermissionDeniedError: It is not.
    """
    if asked not in orgs:
        raise PermissionDeniedError(f"Your credential is not for the org that the header `{ORG_HEADER}` names.")
