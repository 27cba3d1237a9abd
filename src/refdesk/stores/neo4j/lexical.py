"""Builds Lucene queries in which caller input is always escaped as terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from refdesk.core.keeping.encoding import is_encodable

MOST_CLAUSES = 512
"""Most words in one query; Lucene refuses queries of more than 1024 clauses."""

_SYNTAX_IN_QUOTES = re.compile(r'[\\"]')


def make_queries(scope: str, terms: Iterable[str]) -> list[str]:
    """Return queries that together find all documents of a scope with any of the terms, and perhaps others too.

    Args:
        scope: As `rows.get_scope` returns it.
        terms: Any texts. Within double quotes, only a backslash and a double quote are special to Lucene.
    """
    words = [f'"{_SYNTAX_IN_QUOTES.sub(_escape, term)}"' for term in terms if is_encodable(term)]
    return [f'+scope:"{scope}" +terms:({" ".join(part)})' for part in _cut(words)]


def _escape(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


def _cut(words: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(words)
    while part := list(islice(rest, MOST_CLAUSES)):
        yield part
