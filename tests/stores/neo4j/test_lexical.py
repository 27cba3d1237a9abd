"""What stands in a query to the full-text index."""

from __future__ import annotations

from refdesk.stores.neo4j.lexical import MOST_CLAUSES, make_queries


def test_words_are_quoted_and_what_means_something_in_quotes_is_escaped() -> None:
    assert make_queries("s1", ["c++", 'a"b', "a\\b"]) == ['+scope:"s1" +terms:("c++" "a\\"b" "a\\\\b")']


def test_words_that_cannot_be_sent_are_left_out() -> None:
    assert make_queries("s1", ["a", "\ud800"]) == ['+scope:"s1" +terms:("a")']
    assert make_queries("s1", ["\ud800"]) == []


def test_many_words_are_asked_in_several_queries() -> None:
    queries = make_queries("s1", [f"w{number}" for number in range(MOST_CLAUSES + 1)])
    assert [query.count('"w') for query in queries] == [MOST_CLAUSES, 1]
