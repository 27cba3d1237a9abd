from __future__ import annotations

import numpy as np

from refdesk.core.search.analysis import analyse
from refdesk.stores.sqlite.index import encode_terms
from refdesk.stores.sqlite.index.terms import hash_term


def test_encoded_terms_keep_order_and_repetitions_and_tell_title_from_body() -> None:
    title, body = "Router reset", "Reset the router, then the router restarts"
    numbers = np.frombuffer(encode_terms(title, body), "<u8").tolist()
    assert numbers[0] == 2
    assert numbers[1:] == [hash_term(term) for term in (*analyse(title), *analyse(body))]


def test_an_empty_text_has_no_terms() -> None:
    assert encode_terms("", "") == bytes(8)


def test_a_term_has_the_same_number_in_every_process() -> None:
    assert hash_term("router") == 16694144902022646744
