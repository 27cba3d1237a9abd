"""Terms that mean much the same, against their definition: each in turn is held against all that is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refdesk.impact.contrasts import get_reach, match_terms

_WORDS = """customer client finish close end expir run max limit most reset resets resetting rese refund refunds
    12345 12345a dock"""
_TERMS = st.sampled_from(_WORDS.split())


def are_alike(one: str, other: str) -> bool:
    groups = [{"client", "customer"}, {"expir", "end", "run"}, {"finish", "end", "close"}, {"limit", "max", "most"}]
    if any({one, other} <= group for group in groups):
        return True
    return min(len(one), len(other)) >= 5 and (one + other).isalpha() and one[:5] == other[:5]


@given(st.frozensets(_TERMS), st.frozensets(_TERMS))
def test_each_term_matches_the_first_that_is_left_and_alike(one: frozenset[str], other: frozenset[str]) -> None:
    left, right = set(one - other), set(other - one)
    shared = float(len(one & other))
    for term in sorted(left):
        like = min((each for each in right if are_alike(term, each)), default=None)
        if like is not None:
            shared += 0.8
            left.discard(term)
            right.discard(like)
    assert match_terms(one, other) == (shared, left, right)
    if shared:
        assert not get_reach(one).isdisjoint(get_reach(other))
