"""Centring: removes what all vectors of a model have in common.

Some models put every text into a narrow cone: unrelated texts have a cosine of .8, related ones of .9. Such cosines say
nothing when combined with matches of words, or on a scale that is to tell whether anything fits at all. Once the mean
of unrelated texts is subtracted, they do.

Source: Mu and Viswanath, "All-but-the-Top: Simple and Effective Postprocessing for Word Representations" (2018).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.embedders.local.installed.manifest import CENTRES_FILE

if TYPE_CHECKING:
    from refdesk.embedders.local.installed.layout import Layout
    from refdesk.model import Vector

NARROW = 0.6
"""Mean cosine of unrelated texts from which on a model's vectors are centred."""

ENGLISH_TEXTS = (
    "How do I reset my password?",
    "The train to the coast leaves at nine in the morning.",
    "Photosynthesis turns light into sugar.",
    "Invoices are due within thirty days.",
    "The cluster upgrade failed with error 503.",
    "She scored twice in the second half of the final.",
    "Add the flour slowly and stir until the dough is smooth.",
    "The treaty was signed after two years of negotiations.",
    "My printer shows a paper jam, but there is none.",
    "Interest rates rose by a quarter of a point.",
    "def parse(text): return text.split()",
    "The river floods the lower valley every spring.",
)
OTHER_TEXTS = (
    "Wie ändere ich die Rechnungsadresse?",
    "Der Zug nach Wien fährt um neun Uhr ab.",
    "Im Mittelalter lag die Stadt an einer Handelsstraße.",
    "¿Cómo puedo cambiar mi contraseña?",
    "La fotosíntesis convierte la luz en azúcar.",
    "El partido terminó con empate a dos goles.",
    "Comment installer la mise à jour ?",
    "Le traité fut signé après deux ans de négociations.",
    "Come posso annullare il mio ordine?",
    "O servidor não responde desde ontem à noite.",
    "Hoe sluit ik de printer aan op het netwerk?",
    "Jak mogę odzyskać usunięte pliki?",
    "Как изменить настройки учётной записи?",
    "Поезд отправляется в девять часов утра.",
    "Şifremi nasıl değiştirebilirim?",
    "كيف أغير كلمة المرور؟",
    "नया खाता कैसे बनाएं?",
    "如何重置我的密码？",
    "这条河每年春天都会泛滥。",
    "請求書の支払期限はいつですか？",
    "프린터가 네트워크에 연결되지 않습니다.",
)

Encode: TypeAlias = Callable[[str], "Vector"]


def find_centres(questions: Sequence[Vector], passages: Sequence[Vector]) -> NDArray[np.float32] | None:
    """Return the means of a model's questions and of its passages, a row each; `None` if they have little in common.

    Args:
        questions: Vectors of unrelated texts, as questions.
        passages: Vectors of the same texts, as passages.
    """
    cosines = np.stack(questions) @ np.stack(passages).T
    unrelated = (cosines.sum() - np.trace(cosines)) / (len(questions) * (len(questions) - 1))
    if unrelated < NARROW:
        return None
    return np.stack([np.mean(questions, axis=0), np.mean(passages, axis=0)]).astype(np.float32)


def write_centres(folder: Path, layout: Layout, encode: Encode) -> dict[str, str]:
    """Write the centres of a model to its folder if its vectors are narrow; return the digest of the file by its name.

    The file has two rows: the mean of questions and the mean of passages.
    """
    texts = (*ENGLISH_TEXTS, *OTHER_TEXTS) if layout.languages == "all" else ENGLISH_TEXTS
    questions = [encode(layout.query_prefix + text) for text in texts]
    centres = find_centres(questions, [encode(layout.passage_prefix + text) for text in texts])
    if centres is None:
        return {}
    np.save(folder / CENTRES_FILE, centres)
    return {CENTRES_FILE: hashlib.sha256((folder / CENTRES_FILE).read_bytes()).hexdigest()}


def centre(vector: Vector, common: NDArray[np.float32]) -> Vector:
    """Return a vector at unit length without what all vectors have in common."""
    left = vector - common
    length = float(np.linalg.norm(left))
    if length < 1e-6:
        return vector
    left = (left / length).astype(np.float32)
    left.flags.writeable = False
    return left
