"""The error tree is complete: every leaf has its own code, and its own HTTP status."""

from __future__ import annotations

from refdesk import errors
from refdesk.server import rest


def leaves(root: type[errors.RefdeskError]) -> list[type[errors.RefdeskError]]:
    """The leaves of the tree; toolsets may refine them, which changes nothing here."""
    children = [child for child in root.__subclasses__() if child.__module__ == errors.__name__]
    return [leaf for child in children for leaf in leaves(child)] if children else [root]


def test_every_leaf_has_a_code_of_its_own() -> None:
    codes = [leaf.code for leaf in leaves(errors.RefdeskError)]
    assert len(set(codes)) == len(codes)


def test_every_leaf_has_an_http_status() -> None:
    for leaf in leaves(errors.RefdeskError):
        assert rest.status_of(leaf("Try again.")) in {400, 401, 403, 404, 409, 413, 429, 500}
