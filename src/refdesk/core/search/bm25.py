"""BM25 over two fields: the reference arithmetic that every engine reproduces exactly.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). Title and body form one
weighted text before saturation (their BM25F with one length normalisation), so a word in the title counts as
`TITLE_WEIGHT` words of that text, in its frequency and in its length. The constant factor k1 + 1 is left out, as in
their equation for the term weight and in Lucene since version 8: it cannot change an order, and without it a term's
score stays below its idf.
"""

from __future__ import annotations

from math import log

K1 = 1.2
"""How fast repetitions of a term stop counting."""

B = 0.4
"""How much a long text counts against a document, from 0 (not at all) to 1; below the usual 0.75 because support
articles, notes and announcements are short and uneven."""

TITLE_WEIGHT = 2
"""How many words of the body one word of the title counts as."""


def idf(documents: int, frequency: int) -> float:
    """Return the weight of a term that occurs in `frequency` of `documents`: above 0, higher for rarer terms.

    The 1 inside the logarithm, as in Lucene, keeps a term that occurs in most documents from counting against them.
    """
    return log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def term_score(weighted_tf: float, weighted_length: float, mean_weighted_length: float, idf: float) -> float:
    """Return what one term adds to a document's score, in [0, `idf`).

    Args:
        weighted_tf: Occurrences in the body plus `TITLE_WEIGHT` times those in the title; 0 or more.
        weighted_length: Terms of the body plus `TITLE_WEIGHT` times those of the title.
        mean_weighted_length: Mean of `weighted_length` over the collection; 0 only where every text is empty.
        idf: The term's `idf`.
    """
    if weighted_tf <= 0.0:
        return 0.0
    relative_length = weighted_length / mean_weighted_length if mean_weighted_length > 0.0 else 1.0
    return idf * weighted_tf / (weighted_tf + K1 * (1.0 - B + B * relative_length))
