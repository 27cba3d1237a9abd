from __future__ import annotations

import pytest
import Stemmer

from refdesk.core.search.inflection import MARK, STEMMERS, get_language, inflect
from refdesk.core.search.languages import ENGLISH, LANGUAGES, get_stop_words, recognise


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cs", "Jak obnovím heslo, které jsem zapomněl?"),
        ("da", "Hvordan nulstiller jeg min adgangskode, når jeg har glemt den?"),
        ("de", "Wie setze ich mein vergessenes Passwort zurück?"),
        ("de", "Drucker druckt nicht"),
        ("de", "Serverzertifikat abgelaufen"),
        ("el", "Πώς μπορώ να αλλάξω τον κωδικό μου;"),
        ("es", "¿Cómo puedo restablecer la contraseña que he olvidado?"),
        ("fi", "Miten voin vaihtaa salasanan, jonka olen unohtanut?"),
        ("fr", "Comment réinitialiser le mot de passe que j'ai oublié ?"),
        ("hu", "Hogyan tudom visszaállítani az elfelejtett jelszót?"),
        ("it", "Come posso reimpostare la password che ho dimenticato?"),
        ("nl", "Hoe kan ik het wachtwoord dat ik vergeten ben opnieuw instellen?"),
        ("pl", "Jak mogę zmienić hasło, którego nie pamiętam?"),
        ("pt", "Como posso redefinir a senha que não lembro mais?"),
        ("ar", "استرداد المبلغ"),
        ("el", "επιστροφή χρημάτων"),
        ("hi", "ग्राहक धनवापसी"),
        ("ru", "Как мне восстановить пароль, который я забыл?"),
        ("ru", "сброс пароля"),
        ("ru", "ошибка PostgreSQL"),
        ("sv", "Hur återställer jag mitt lösenord när jag har glömt det?"),
        ("tr", "Şifremi nasıl değiştirebilirim ve bu ne kadar sürer?"),
    ],
)
def test_a_question_tells_its_language(language: str, text: str) -> None:
    assert recognise(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "How do I reset my password?",
        "reset password",
        "Azure Kubernetes Service",
        "General Purpose Programming Systems",
        "Parallel languages; languages for parallel computation",
        "a b c d e",
        "TLS 1.2",
        "w1 w2 w3 w4",
        "Error: connection refused (ECONNREFUSED)",
        "数据库连接失败",
        "パスワードを忘れました",
        "데이터베이스 연결 실패",
    ],
)
def test_neither_english_nor_names_nor_unspaced_scripts_are_taken_for_another_language(text: str) -> None:
    assert recognise(text) in (None, ENGLISH)


def test_the_language_of_most_of_the_text_counts() -> None:
    english = "The printer stops when the tray is open, and the display says why. "
    assert recognise(english + "„Bitte Papierfach schließen“") == ENGLISH
    assert recognise("Der Drucker hält an, wenn das Fach offen ist, und meldet: “Please close the tray”.") == "de"


def test_where_a_long_text_is_cut_no_half_word_is_taken_for_a_word() -> None:
    for before in range(280, 310):
        assert recognise("x" * before + " word4 word5 " + "word6 " * 20) is None


def test_every_language_that_is_recognised_has_a_stemmer_and_stop_words() -> None:
    assert {*STEMMERS, ENGLISH} == {*LANGUAGES}
    assert all(Stemmer.Stemmer(name).stemWord("a") for name in STEMMERS.values())
    assert all(get_stop_words(language) for language in STEMMERS)
    assert not get_stop_words(ENGLISH)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ["Häuser", "Haus", "Hauses"]),
        ("de", ["Zertifikat", "Zertifikate", "Zertifikats"]),
        ("es", ["configuración", "configuraciones", "configuracion"]),
        ("fr", ["imprimante", "imprimantes"]),
        ("fi", ["talossa", "talon"]),
        ("ru", ["пароль", "пароля", "паролем"]),
    ],
)
def test_the_forms_of_a_word_meet(language: str, forms: list[str]) -> None:
    assert len({inflect(form, language) for form in forms}) == 1


@pytest.mark.parametrize(
    ("compound", "parts"),
    [
        ("Serverzertifikat", ["Server", "Zertifikat"]),
        ("Kapitelnummern", ["Kapitel", "Nummer"]),
        ("Versicherungsgesellschaft", ["Versicherung", "Gesellschaft"]),
        ("Kubernetescluster", ["Cluster"]),
        ("Seitenumbruch", ["Seite", "Umbruch"]),
    ],
)
def test_a_german_compound_is_found_by_its_parts_of_which_one_may_be_unknown(compound: str, parts: list[str]) -> None:
    assert {term for part in parts for term in inflect(part, "de")} < {*inflect(compound, "de")}


@pytest.mark.parametrize("word", ["Menschen", "Beschriftungen", "Internet", "ABCDEFGHIJK", "x86_64er", "ß" * 200])
def test_other_words_stay_whole(word: str) -> None:
    assert len(inflect(word, "de")) == 1


def test_a_term_of_a_language_is_none_of_those_that_every_text_gives() -> None:
    assert [get_language(term) for term in (*inflect("Haus", "de"), "haus", "c#", f"xx{MARK}haus", "de")] == [
        "de",
        None,
        None,
        None,
        None,
    ]
