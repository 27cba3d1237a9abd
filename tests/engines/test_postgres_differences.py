"""PostgreSQL beside the embedded engine, asked the same at random in many languages: what differs, and nothing else.

The one difference is by contract: what `plainto_tsquery('simple', …)` matches is marked, and comes first in the keyword
list of `search_knowledge`. Without the marks both give the same documents in the same order with the same scores.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.search.analysis import parse_query
from refdesk.model import Document, EmbeddedPassage, FindRequest, Found, Vector, VectorQuery
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.toolsets.knowledge.ranking import rank
from tests.engines.postgres import get_store_url
from tests.stores.conftest import open_sqlite
from tests.stores.samples import NOTES, NOW, day, make_document, put
from tests.stores.walks import FACETS, MODELS, VALUES, assert_same

pytestmark = pytest.mark.engines

DOCUMENTS, QUESTIONS = 80, 50
SENTENCES = (
    "How do I print the invoices of last month? Printers jam while printing.",
    "Wie kann ich die Rechnungen des letzten Monats drucken? Der Drucker im Großraumbüro streikt.",
    "¿Cómo se imprimen las facturas del mes pasado en la oficina?",
    "Comment imprimer les factures de l'été dernier ? L'imprimante ne répond plus.",
    "Как распечатать счета за прошлый месяц? Принтер не отвечает.",
    "上个月的发票怎么打印？打印机卡纸了。",
    "先月の請求書を印刷するには、プリンターの電源を入れます。",
    "지난달 청구서를 인쇄하는 방법은 무엇입니까?",
    "พิมพ์ใบแจ้งหนี้อย่างไร",
    "पिछले महीने का बीजक कैसे छापें?",
    "كيف أطبع فواتير الشهر الماضي؟",
    "Πώς εκτυπώνω τα τιμολόγια του προηγούμενου μήνα;",
    "Geçen ayın faturalarını nasıl yazdırırım? İstanbul ofisi",
)
SIGNS = (
    "ERR-4711 KB5034441 get_user_id() foo::bar x86_64 v1.2.3 10.0.0.1 2026-01-05 12:30 1.5 -7 +49 10,000 50% C++ "
    "C# .NET a.b a_b a&b & | ! ( ) : * <b> </b> &amp; \\ ' '' \" \"drucken\" “invoices” https://example.com/a/b?c=d "
    "example.com /etc/passwd C:\\Windows ann@example.com mother-in-law in-law e.g. it's don't don’t l'été naïve ﬁne Ⅷ "
    "½ 🔥 🔥🔥 🖨️ 🇩🇪 straße STRASSE ß resume Résumé foo\u00a0bar zero\u200bwidth x\u0301 REFUND Refunds refunded s t"
)


def draw_text(random: Random, most: int) -> str:
    """Return words of some languages and signs, side by side."""
    words = list[str]()
    while len(words) < most:
        if random.random() < 0.4:
            words.append(random.choice(SIGNS.split(" ")))
        else:
            sentence = random.choice(SENTENCES).split()
            start = random.randrange(len(sentence))
            words += sentence[start : start + random.randrange(1, 6)]
    return " ".join(words[:most])


def draw_vector(random: Random) -> Vector:
    """Return one of length one, exact in half precision, so that no tie depends on rounding."""
    return np.array([random.choice((-0.5, 0.5)) for _ in range(4)], np.float32)


def draw_document(random: Random, number: int) -> Document:
    return make_document(
        f"d{number:02}",
        draw_text(random, random.randrange(3, 60)),
        title=draw_text(random, random.randrange(1, 5)),
        facets={name: tuple(random.choices(VALUES, k=random.randrange(3))) for name in FACETS},
        # Few, so that scores that tie are told apart by the age or the id.
        modified_at=day(random.randrange(3)),
    )


def draw_request(random: Random, documents: list[Document]) -> FindRequest:
    if random.random() < 0.5:
        query = draw_text(random, random.randrange(1, 8))
    else:
        words = random.choice(documents).body.split(" ")
        start = random.randrange(len(words))
        query = " ".join(words[start : start + random.randrange(1, 5)])
    return FindRequest(
        NOTES,
        parse_query(query, quotes_bind=True),
        vector=VectorQuery(draw_vector(random), MODELS[0].name) if random.random() < 0.4 else None,
        depth=random.choice((5, 100)),
        facets=FACETS,
        title_contains=query.strip() if random.random() < 0.5 else None,
        as_written=query,
    )


@asynccontextmanager
async def open_both(folder: Path, documents: list[Document], random: Random) -> AsyncGenerator[tuple[Store, Store]]:
    vectors = [[EmbeddedPassage(0, 1, draw_vector(random))] * random.randrange(2) for _ in documents]
    async with open_sqlite(folder, FixedClock(NOW)) as embedded, open_store(get_store_url(folder)) as store:
        for each in (embedded, store):
            await put(each, *documents)
            async with each.transaction() as transaction:
                for document, passages in zip(documents, vectors, strict=True):
                    place = (document.collection, document.id, MODELS[0], document.text_digest)
                    await transaction.put_vectors(*place, passages)
        yield embedded, store


def assert_differs_by_marks_alone(found: Found, expected: Found, request: FindRequest) -> int:
    """Return how many are marked: what is found, and in which order, follows from the marks and the other answer."""
    listed, known = found.candidates[: request.depth], [each.id for each in expected.candidates]
    marked = [each for each in listed if each.as_written]
    best_first = sorted(marked, key=lambda each: each.id)
    best_first.sort(key=lambda each: (each.lexical, each.modified_at), reverse=True)
    assert list(listed[: len(marked)]) == marked == best_first, request
    # Behind those the other engine's list goes on in its own order.
    ids = {each.id for each in marked}
    rest = [each.id for each in listed if each.id not in ids]
    assert rest == [id for id in known if id not in ids][: len(rest)], request
    if request.depth > DOCUMENTS:
        more = [each for each in found.candidates if each.id not in known]
        # What no term of the question finds is found for its marks.
        assert all(each.as_written and each.lexical == 0.0 for each in more), request
        assert set(known) <= {each.id for each in found.candidates}, request
    return len(marked)


async def compare(folder: Path, seed: int) -> None:
    random = Random(seed)
    documents = [draw_document(random, number) for number in range(DOCUMENTS)]
    marked = found = 0
    async with open_both(folder, documents, random) as (embedded, store):
        for _ in range(QUESTIONS):
            request = draw_request(random, documents)
            plain = replace(request, as_written=None)
            expected, same = await embedded.find(plain), await store.find(plain)
            assert_same(same, expected, request)
            assert [each.lexical for each in same.candidates] == [each.lexical for each in expected.candidates]
            text = request.text
            assert text is not None
            assert [each.id for each, _ in rank(same.candidates, text)] == [
                each.id for each, _ in rank(expected.candidates, text)
            ]
            assert await embedded.find(request) == expected
            marked += assert_differs_by_marks_alone(await store.find(request), expected, request)
            found += len(expected.candidates)
    # Were nothing found or marked, the test would show nothing.
    assert marked > QUESTIONS
    assert found > QUESTIONS


@pytest.mark.parametrize("seed", range(4))
async def test_in_many_languages_the_engines_differ_by_what_is_marked_alone(tmp_path: Path, seed: int) -> None:
    await compare(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1100))
async def test_in_many_more_questions_the_engines_differ_by_what_is_marked_alone(tmp_path: Path, seed: int) -> None:
    await compare(tmp_path, seed)
