"""What every engine finds: terms, phrases, orders, exact scores."""

from __future__ import annotations

from datetime import timedelta
from math import log

import pytest

from refdesk.core.search.analysis import analyse_document
from refdesk.model import BEST_FIRST, Document, FacetCount, SortBy, SortKey, State, TextQuery
from refdesk.protocols import Store
from tests.stores.samples import (
    NOTES,
    asking,
    day,
    embed,
    find_ids,
    get_ids,
    get_scores,
    make_document,
    near,
    on,
    passage,
    put,
    revise,
)

HOSTILE = [
    '"',
    '"" ""',
    "'; DROP TABLE documents; --",
    "a OR b AND NOT (c",
    "title:secret -body:x NEAR(a b)",
    "*",
    "%_\\",
    "\x00",
    "\ud800 lone",
    "(" * 3000,
    "🧭",
    "a" * 10_000,
    "{org} $where ${x} {{7*7}}",
]


async def test_any_term_matches_and_more_of_them_rank_higher(store: Store) -> None:
    await put(
        store,
        make_document("one", "reset the password"),
        make_document("two", "reset the account password today"),
        make_document("none", "billing"),
    )
    assert await find_ids(store, asking("password account")) == ["two", "one"]


async def test_words_are_compared_without_case_accents_and_endings(store: Store) -> None:
    await put(store, make_document("a", "Résumé UPLOADS were failing"), make_document("b", "nothing of it"))
    for text in ("resume", "RÉSUMÉ", "upload", "fail", "re\u0301sume\u0301"):
        assert await find_ids(store, asking(text)) == ["a"], text


async def test_scripts_without_blanks_are_found_inside_a_run(store: Store) -> None:
    await put(store, make_document("ja", "多要素認証を設定する方法"), make_document("zh", "重置密码"))
    assert await find_ids(store, asking("要素認証")) == ["ja"]
    assert await find_ids(store, asking("密码")) == ["zh"]


async def test_punctuation_parts_words_and_is_no_syntax(store: Store) -> None:
    await put(store, make_document("a", "error-code: E_1234/foo.bar (see C++)"), make_document("b", "other"))
    for text in ("code", "foo.bar", "1234", "c++", "error-code"):
        assert await find_ids(store, asking(text)) == ["a"], text


async def test_an_emoji_is_found_whatever_its_skin_tone_and_by_its_parts(store: Store) -> None:
    await put(
        store,
        make_document("rocket", "Launch day 🚀"),
        make_document("coder", "👩🏽\u200d💻 fixed it"),
        make_document("heart", "❤️ from the team"),
        make_document("flags", "🇩🇪🇫🇷"),
        make_document("none", "nothing of it"),
    )
    for text, ids in {
        "🚀": ["rocket"],
        "day🚀!": ["rocket"],
        '"day 🚀"': ["rocket"],
        "👩\u200d💻": ["coder"],
        "👩🏿\u200d💻": ["coder"],
        "💻": ["coder"],
        "❤": ["heart"],
        "🇫🇷": ["flags"],
        "🇪🇫": [],
        "🛰": [],
    }.items():
        assert await find_ids(store, asking(text)) == ids, text


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_questions_only_find_less(store: Store, text: str) -> None:
    await put(store, make_document("a", "plain words"))
    found = await store.find(asking(text, facets=("tags", "'; --"), title_contains=text))
    assert found.total <= 1


async def test_a_question_without_terms_and_phrases_matches_nothing(store: Store) -> None:
    await put(store, make_document("a", "anything"))
    assert await find_ids(store, asking("?!")) == []


async def test_a_text_in_another_language_is_found_by_other_forms_of_its_words_and_as_before(store: Store) -> None:
    await put(
        store,
        make_document(
            "de", "Wenn das Serverzertifikat abgelaufen ist, wird es mit diesem Befehl erneuert: certbot renew."
        ),
        make_document("es", "Cuando la impresora no imprime, hay que revisar las configuraciones de la bandeja."),
        make_document("en", "When a printer prints nothing, look at the tray before you call anybody about Windows."),
        make_document("few", "certbot"),
    )
    for text, ids in {
        "Wie erneuere ich abgelaufene Zertifikate?": ["de"],
        "certbot": ["few", "de"],
        "how to renew with certbot": ["de", "few"],
        "¿Cómo cambio la configuración de impresoras?": ["es"],
        "Was hilft bei Windows?": ["en"],
        "printers and trays": ["en"],
        '"wird es mit diesem"': ["de"],
        "Befehl Haus": ["de"],
    }.items():
        assert await find_ids(store, asking(text)) == ids, text


async def test_an_identifier_a_code_and_a_quantity_are_found_however_their_parts_are_joined(store: Store) -> None:
    await put(
        store,
        make_document("camel", "The pods are in CrashLoopBackOff since calculateTotals fails."),
        make_document("snake", "Raise max_connections_per_host, or the crawler starves."),
        make_document("quantity", "Each attachment has at most 25MB."),
        make_document("ticket", "Paid twice: see PAY-1234."),
        make_document("code", "Access is denied: 0x80070005."),
        make_document("name", "The repository moved to GitHub."),
    )
    for text, ids in {
        "crash loop back off": ["camel"],
        "calculate_totals": ["camel"],
        '"crashloopbackoff since"': ["camel"],
        "maxConnectionsPerHost": ["snake"],
        "25 MB": ["quantity"],
        "PAY1234": ["ticket"],
        "80070005": ["code"],
        "git": [],
    }.items():
        assert await find_ids(store, asking(text)) == ids, text


async def test_a_question_of_one_word_in_letters_of_one_language_is_matched_by_its_forms(store: Store) -> None:
    await put(
        store,
        make_document("ar", "يمكن للعميل طلب استرداد المبلغ خلال أسبوع"),
        make_document("el", "Πολιτική επιστροφών"),
        make_document("hi", "ग्राहक धनवापसी का अनुरोध कर सकता है"),
        make_document("ru", "Сброс пароля сотрудника"),
    )
    for text, ids in {"الاسترداد": ["ar"], "επιστροφή": ["el"], "ग्राहकों": ["hi"], "пароль": ["ru"]}.items():
        assert await find_ids(store, asking(text)) == ids, text


async def test_where_a_text_changes_its_language_each_part_is_found_by_the_forms_of_its_own(store: Store) -> None:
    english = "The command prints what it does while it runs, and the options below say how much of that is shown. " * 3
    german = (
        "Wenn das Serverzertifikat abgelaufen ist, wird es mit diesem Befehl und ohne eine Nachfrage erneuert. " * 3
    )
    spanish = "Cuando la impresora no imprime, hay que revisar las configuraciones de la bandeja y de los cables. " * 3
    await put(
        store,
        make_document("half", f"{english}\n{german}\n{english}"),
        make_document("both", f"{german}\n{spanish}"),
        make_document("en", english),
    )
    for text, ids in {
        "Wie erneuere ich abgelaufene Zertifikate?": ["both", "half"],
        "¿Cómo cambio la configuración de impresoras?": ["both"],
        "printing commands": ["en", "half"],
        f"{english} {spanish.replace('impresora', 'impresoras')}": ["both", "en", "half"],
    }.items():
        assert sorted(await find_ids(store, asking(text))) == ids, text


async def test_a_phrase_must_stand_in_order_within_title_or_body(store: Store) -> None:
    await put(
        store,
        make_document("body", "use managed identity here"),
        make_document("title", "x", title="Managed identities"),
        make_document("apart", "managed by identity"),
        make_document("reversed", "identity managed"),
        make_document("across", "identity first", title="managed"),
    )
    assert await find_ids(store, asking('"managed identity"', order=(SortKey("id"),))) == ["body", "title"]


async def test_every_phrase_must_occur_and_one_term_besides(store: Store) -> None:
    await put(
        store,
        make_document("all", "red apple green pear plum"),
        make_document("phrases", "red apple green pear"),
        make_document("one", "red apple plum"),
    )
    assert await find_ids(store, asking('"red apple" "green pear" plum')) == ["all"]
    assert await find_ids(store, asking('"red apple" "green pear"', order=(SortKey("id"),))) == ["all", "phrases"]


async def test_a_phrase_with_a_repeated_word_needs_the_repetition(store: Store) -> None:
    await put(store, make_document("thrice", "very very very good"), make_document("once", "very good"))
    assert await find_ids(store, asking('"very very"')) == ["thrice"]


async def test_a_title_word_counts_as_two(store: Store) -> None:
    await put(
        store, make_document("body", "apple pear", title="plum"), make_document("title", "pear plum", title="apple")
    )
    assert await find_ids(store, asking("apple")) == ["title", "body"]


def bm25(documents: list[Document], query: TextQuery, document: Document) -> float:
    """The formula as the port states it, written again: k1 1.2, b 0.4, a title word counts as two."""
    analysed = {each.id: analyse_document(each.title, each.body) for each in documents}
    texts = {id: in_title * 2 + in_body for id, (in_title, in_body) in analysed.items()}
    mean = sum(map(len, texts.values())) / len(texts)
    mine, score = texts[document.id], 0.0
    for term in {*query.terms, *(term for phrase in query.phrases for term in phrase)}:
        holders = sum(term in text for text in texts.values())
        weight = log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        tf = mine.count(term)
        score += weight * tf / (tf + 1.2 * (1 - 0.4 + 0.4 * len(mine) / mean))
    return score


@pytest.mark.parametrize("text", ["apple", "apple pear", "apple apple", '"red apple"', '"red apple" pear', "the apple"])
async def test_scores_are_exact_bm25(store: Store, text: str) -> None:
    documents = [
        make_document("a", "red apple, green pear", title="Fruit"),
        make_document("b", "apple " * 7 + "red apple", title="Red apples"),
        make_document("c", "a pear and the rest of a much longer text " * 3),
        make_document("d", "", title="Apple"),
        make_document("e", "", title=""),
    ]
    await put(store, *documents)
    request = asking(text)
    assert request.text is not None
    scores = get_scores(await store.find(request))
    assert scores
    for document in documents:
        if document.id in scores:
            assert scores[document.id] == pytest.approx(bm25(documents, request.text, document), rel=1e-9)


async def test_scores_come_from_all_living_documents_whatever_the_filter(store: Store) -> None:
    gone = make_document("gone", "apple apple apple")
    superseded = make_document("old", "apple pie", state=State.SUPERSEDED)
    current = make_document("new", "apple tart and more", title="Tart")
    await put(store, gone, superseded, current)
    await store.find(asking("apple"))
    await put(store, revise(gone, state=State.WITHDRAWN))
    request = asking("apple", where=None)
    assert request.text is not None
    scores = get_scores(await store.find(request))
    for document in (superseded, current):
        assert scores[document.id] == pytest.approx(bm25([superseded, current], request.text, document), rel=1e-9)


async def test_a_withdrawn_document_is_never_found(store: Store) -> None:
    document = make_document("a", "apple", facets={"tags": ("x",)})
    await put(store, document)
    assert await find_ids(store, asking("apple")) == ["a"]
    await put(store, revise(document, state=State.WITHDRAWN))
    found = await store.find(asking("apple", facets=("tags",), title_contains=""))
    assert (get_ids(found), found.total, found.facets) == ([], 0, {"tags": ()})


async def test_a_replaced_document_is_found_by_its_new_text_only(store: Store) -> None:
    document = make_document("a", "apple")
    await put(store, document)
    assert await find_ids(store, asking("apple")) == ["a"]
    await put(store, revise(document, body="pear"))
    assert await find_ids(store, asking("apple")) == []
    assert await find_ids(store, asking("pear")) == ["a"]


async def test_without_a_question_everything_matches(store: Store) -> None:
    await put(store, make_document("b"), make_document("a"), make_document("gone", state=State.WITHDRAWN))
    found = await store.find(asking())
    assert (get_ids(found), found.total) == (["a", "b"], 2)
    assert [(each.lexical, each.cosine, each.passage) for each in found.candidates] == [(0.0, None, None)] * 2


async def test_total_counts_past_the_depth(store: Store) -> None:
    await put(store, *(make_document(f"{n:02}", "apple") for n in range(30)))
    found = await store.find(asking("apple", depth=7))
    assert (len(found.candidates), found.total) == (7, 30)


async def test_equal_scores_come_newest_first_then_by_id(store: Store) -> None:
    await put(
        store,
        make_document("b", "apple"),
        make_document("a", "apple"),
        make_document("new", "apple", modified_at=day(1)),
    )
    assert await find_ids(store, asking("apple")) == ["new", "a", "b"]


async def test_whether_every_term_occurs_is_told_and_sorted_by(store: Store) -> None:
    await put(
        store,
        make_document("many", "apple " * 9 + "apple"),
        make_document("all", "apple pear " + "and other words of a long text " * 9),
        make_document("split", "pear", title="apple"),
    )
    order = (SortKey("all_terms", descending=True), *BEST_FIRST)
    found = await store.find(asking("apple pear", order=order))
    assert [each.all_terms for each in found.candidates] == [True, True, False]
    assert get_ids(found)[-1] == "many"


@pytest.mark.parametrize(
    ("by", "ids"),
    [
        ("modified", ["c", "a", "b"]),
        ("created", ["b", "c", "a"]),
        ("title", ["b", "a", "c"]),
        ("id", ["a", "b", "c"]),
        ("lexical", ["a", "b", "c"]),
    ],
)
async def test_documents_can_be_sorted_either_way(store: Store, by: SortBy, ids: list[str]) -> None:
    await put(
        store,
        make_document("a", title="ÉCLAIR b", created_at=day(3), modified_at=day(2)),
        make_document("b", title="Apple", created_at=day(1), modified_at=day(3)),
        make_document("c", title="éclair ｃ", created_at=day(2), modified_at=day(1)),
    )
    assert await find_ids(store, asking(order=(SortKey(by),))) == ids
    if by != "lexical":
        assert await find_ids(store, asking(order=(SortKey(by, descending=True),))) == ids[::-1]
        assert await find_ids(store, asking(order=(SortKey(by),), depth=2)) == ids[:2]


async def test_documents_are_sorted_by_the_first_start_of_a_named_range_and_those_without_come_last(
    store: Store,
) -> None:
    await put(
        store,
        make_document("late", date_ranges={"due": on(9), "other": on(0)}),
        make_document("none", date_ranges={"other": on(-9)}),
        make_document("twice", date_ranges={"due": on(12, 3)}),
        make_document("early", date_ranges={"due": on(-1)}),
        make_document("nothing"),
    )
    assert await find_ids(store, asking(order=(SortKey("date_range", name="due"),))) == [
        "early",
        "twice",
        "late",
        "none",
        "nothing",
    ]
    backwards = (SortKey("date_range", descending=True, name="due"), SortKey("id", descending=True))
    assert await find_ids(store, asking(order=backwards)) == ["late", "twice", "early", "nothing", "none"]
    assert await find_ids(store, asking(order=backwards, depth=2)) == ["late", "twice"]
    assert await find_ids(store, asking(order=(SortKey("date_range", name="unheard of"),), depth=1)) == ["early"]


async def test_ids_decide_where_an_order_leaves_ties(store: Store) -> None:
    await put(store, *(make_document(id, title="same") for id in "cab"))
    assert await find_ids(store, asking(order=(SortKey("title", descending=True),))) == ["a", "b", "c"]


async def test_instants_are_sorted_to_the_microsecond(store: Store) -> None:
    await put(store, *(make_document(id, modified_at=day(0) + timedelta(microseconds=n)) for n, id in enumerate("cab")))
    assert await find_ids(store, asking(order=(SortKey("modified"),))) == ["c", "a", "b"]


async def test_a_collection_nobody_wrote_to_finds_nothing(store: Store) -> None:
    found = await store.find(asking("apple", facets=("tags",)))
    assert (found.candidates, found.total, found.facets) == ((), 0, {"tags": ()})


async def test_facets_are_counted_over_all_that_matches_without_regard_to_case(store: Store) -> None:
    await put(
        store,
        make_document("a", "apple", facets={"tags": ("VPN", "Email"), "ring": ("GA",)}),
        make_document("b", "apple", facets={"tags": ("vpn", "Vpn")}),
        make_document("c", "apple", facets={"tags": ("VPN",)}),
        make_document("d", "apple", facets={"tags": ("auth",)}),
        make_document("e", "pear", facets={"tags": ("auth", "email")}),
    )
    found = await store.find(asking("apple", facets=("tags", "ring", "nobody"), depth=1))
    assert found.facets == {
        "tags": (FacetCount("VPN", 3), FacetCount("Email", 1), FacetCount("auth", 1)),
        "ring": (FacetCount("GA", 1),),
        "nobody": (),
    }


async def test_what_comes_along_with_what_is_found_is_what_would_be_read(store: Store) -> None:
    facets, title = {"tags": ("t", "ü,\n")}, '"quoted", \\ and {more}'
    written = [make_document(f"d{number}", "apple " * (number + 1), title, facets=facets) for number in range(8)]
    await put(store, *written, make_document("long", f"apple {'pear ' * 4000}"))
    await embed(store, written[0], passage([1, 0, 0, 0]))
    for vector in (None, near([1, 0, 0, 0])):
        found = await store.find(asking("apple", vector=vector, shown=6))
        ids = list(found.documents)
        assert set(ids) <= {candidate.id for candidate in found.candidates}
        assert [found.documents[id] for id in ids] == await store.get_documents(NOTES, ids)
    assert (await store.find(asking("apple"))).documents == {}
