"""Reads how a sentence encoder is meant to be used from the files that come with it.

The files are those of Sentence Transformers: `1_Pooling/config.json`, `config_sentence_transformers.json`,
`sentence_bert_config.json`, `config.json`. Archives with only the model and its tokenizer do not say: then the model's
name decides, if it is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import yaml

if TYPE_CHECKING:
    from refdesk.embedders.local.installed.manifest import Kind, Languages, Pooling

POOLING_CONFIG = "1_Pooling/config.json"
PROMPTS_CONFIG = "config_sentence_transformers.json"
LENGTH_CONFIG = "sentence_bert_config.json"
MODEL_CONFIG = "config.json"
CARD = "README.md"
CONFIGS = (POOLING_CONFIG, PROMPTS_CONFIG, LENGTH_CONFIG, MODEL_CONFIG, CARD)

MOST_PIECES = 512
"""Most pieces read of a text; passages are cut so that they have fewer in nearly every language."""

MULTILINGUAL_VOCABULARY = 100_000
"""Number of pieces from which on a vocabulary counts as one for many scripts."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is used; see `Manifest`."""

    pooling: Pooling
    most_pieces: int
    query_prefix: str
    passage_prefix: str
    languages: Languages
    known: list[str] | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class _Known:
    pooling: Pooling
    query_prefix: str = ""
    passage_prefix: str = ""


_CARD_HEAD = re.compile(r"\ufeff?---\r?\n(.*?)\r?\n---", re.DOTALL)

_BGE = "Represent this sentence for searching relevant passages: "

# From the models' own cards. Longer names come first: multilingual-e5 is also an e5.
_KNOWN: Mapping[str, _Known] = {
    "multilingual-e5": _Known("mean", "query: ", "passage: "),
    "e5-": _Known("mean", "query: ", "passage: "),
    "bge-m3": _Known("cls"),
    "bge-small-zh": _Known("cls", "为这个句子生成表示以用于检索相关文章："),
    "bge-": _Known("cls", _BGE),
    "arctic-embed": _Known("cls", _BGE),
    "mxbai-embed": _Known("cls", _BGE),
    "gte-": _Known("mean"),
    "minilm": _Known("mean"),
    "mpnet": _Known("mean"),
}


def read_layout(name: str, configs: Mapping[str, str], pieces: int) -> Layout:
    """Return how a model is used.

    Args:
        name: The name of the model or its source, which decides what the files do not say.
        configs: The texts of those of `CONFIGS` that exist.
        pieces: The number of pieces in its vocabulary.
    """
    known = next((use for part, use in _KNOWN.items() if part in name.casefold()), _Known("mean"))
    read = {file: _parse(text) for file, text in configs.items() if file != CARD}
    query, passage = _read_prompts(read.get(PROMPTS_CONFIG, {}), known)
    return Layout(
        _read_pooling(read.get(POOLING_CONFIG, {})) or known.pooling,
        _read_length(read),
        query,
        passage,
        "all" if pieces >= MULTILINGUAL_VOCABULARY or "multilingual" in name.casefold() else "latin",
        _read_languages(configs.get(CARD, "")),
        _read_kind(name, read.get(MODEL_CONFIG, {})),
    )


def _read_kind(name: str, config: Mapping[str, object]) -> Kind:
    """Return the kind of a model according to its configuration or, without one, its name."""
    made_for = config.get("architectures")
    if isinstance(made_for, list) and made_for:
        is_reranker = str(cast("list[object]", made_for)[0]).endswith("ForSequenceClassification")
    else:
        is_reranker = any(part in name.casefold() for part in ("rerank", "cross-encoder"))
    return "reranker" if is_reranker else "encoder"


def _read_languages(card: str) -> list[str] | None:
    """Return the languages in the header of a model card; `None` if it names none or says it is multilingual."""
    head = _CARD_HEAD.match(card)
    try:
        said = yaml.safe_load(head[1]) if head else None
    except yaml.YAMLError:
        return None
    named = cast("dict[str, object]", said).get("language") if isinstance(said, dict) else None
    codes = [named] if isinstance(named, str) else cast("list[object]", named) if isinstance(named, list) else []
    # YAML reads the code of Norwegian, `no`, as false.
    known = ["no" if code is False else str(code).casefold() for code in codes]
    return None if not known or "multilingual" in known else known


def _parse(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _read_pooling(config: Mapping[str, object]) -> Pooling | None:
    ways: dict[str, Pooling] = {
        "pooling_mode_cls_token": "cls",
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_lasttoken": "last",
    }
    return next((way for key, way in ways.items() if config.get(key) is True), None)


def _read_prompts(config: Mapping[str, object], known: _Known) -> tuple[str, str]:
    prompts = config.get("prompts")
    if not isinstance(prompts, dict) or not prompts:
        return known.query_prefix, known.passage_prefix
    said = cast("Mapping[str, object]", prompts)
    query = next((said[name] for name in ("query", "search_query") if name in said), known.query_prefix)
    names = ("passage", "document", "search_document")
    passage = next((said[name] for name in names if name in said), known.passage_prefix)
    return str(query), str(passage)


def _read_length(read: Mapping[str, Mapping[str, object]]) -> int:
    said = read.get(LENGTH_CONFIG, {}).get("max_seq_length") or read.get(MODEL_CONFIG, {}).get(
        "max_position_embeddings"
    )
    return min(MOST_PIECES, said) if isinstance(said, int) and said > 2 else MOST_PIECES
