"""Salesforce record ids: 15 case-sensitive characters, or 18 with a checksum of the case."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from refdesk.errors import InvalidInputError

_ID = re.compile(r"k[aA][0-9A-Za-z]{13}(?:[0-5A-Z]{3})?")
_LONG = re.compile(r"[Kk][0-9A-Za-z]{17}")
_CHECKSUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"


@dataclass(frozen=True, slots=True)
class ArticleId:
    """A checked id in its 18-character form. A version's id changes at every publication, an article's never."""

    value: str
    kind: Literal["version", "article"]

    @property
    def prefix(self) -> str:
        """The three characters that identify the object type."""
        return self.value[:3]


def parse_id(text: str) -> ArticleId:
    """Return the id. If one of 18 characters lost its case, that is restored from the last three characters.

    Raises:
        InvalidInputError: It has the wrong length or characters, is not an article's, or its checksum does not fit.
    """
    text = text.strip(" ")
    if _LONG.fullmatch(text) and (text.islower() or text.isupper()):
        # No genuine id looks so: it begins with a lower-case letter, and if all letters are lower case, it ends in AAA.
        text = _restore_case(text)
    if not _ID.fullmatch(text):
        raise InvalidInputError(
            "`article_id` is no article's id: it has 15 or 18 letters and digits and begins with ka0 (a version) or "
            "kA0 (an article); take it from `id` of search_articles.",
            details={"fields": ["article_id"]},
        )
    whole = text[:15] + compute_checksum(text[:15])
    if len(text) == 18 and text != whole:
        raise InvalidInputError(
            "`article_id` is damaged: its last three characters do not fit the others. Upper and lower case matter.",
            details={"fields": ["article_id"]},
        )
    return ArticleId(whole, "version" if text[1] == "a" else "article")


def _restore_case(text: str) -> str:
    checksum = text[15:].upper()
    masks = [_CHECKSUM.find(char) for char in checksum]
    own = (char.upper() if masks[at // 5] >> at % 5 & 1 else char.lower() for at, char in enumerate(text[:15]))
    return "".join(own) + checksum


def compute_checksum(text: str) -> str:
    """Return the three characters that encode which of 15 are upper case, each for five, the first as lowest bit."""
    groups = (text[start : start + 5] for start in range(0, 15, 5))
    return "".join(_CHECKSUM[sum(char.isupper() << place for place, char in enumerate(group))] for group in groups)
