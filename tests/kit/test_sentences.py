"""What of a sentence is a greeting or an assent, and what it says."""

from __future__ import annotations

import pytest

from refdesk.kit import sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "No internet.",
        "No refund is possible after 30 days.",
        "No one answers.",
        "No longer possible.",
        "No problem found.",
        "Right speaker is silent.",
        "Welcome email was never sent.",
        "So far it is dark.",
        "hello-world fails",
        "Well-known hosts are refused.",
    ],
)
def test_a_word_that_belongs_to_what_is_said_is_no_greeting(sentence: str) -> None:
    assert sentences.split(sentence) == (sentence,)


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("No, it is still dark", "it is still dark"),
        ("No it is still dark", "it is still dark"),
        ("No - still dark", "still dark"),
        ("Right, the lamp is dark", "the lamp is dark"),
        ("No problem, the lamp is sent.", "the lamp is sent."),
        ("Guten Tag, die Lampe ist dunkel", "die Lampe ist dunkel"),
        ("Buenos días, la lámpara no funciona", "la lámpara no funciona"),
        ("こんにちは。電源が入りません。", "電源が入りません。"),
        ("No thanks!", ""),
        ("no worries", ""),
    ],
)
def test_a_greeting_and_an_assent_are_left_out(sentence: str, left: str) -> None:
    assert " ".join(sentences.split(sentence)) == left


@pytest.mark.parametrize(
    "sentence",
    [
        *("Kind regards,", "Best regards", "I hope you're doing well.", "Lovely, thank you", "cool thx", "Great find!"),
        *("Phew!", "Good luck with your essay!", "Let's see.", "Let's start with the VAT number.", "Here is how:"),
        "Hi Support,",
    ],
)
def test_a_pleasantry_says_nothing(sentence: str) -> None:
    assert sentences.split(sentence) == ()


@pytest.mark.parametrize("sentence", ["Fine dust blocks the fan.", "Great Plains fails to import.", "Let's reset it."])
def test_what_only_begins_like_a_pleasantry_says_something(sentence: str) -> None:
    assert sentences.says_something(sentence)
