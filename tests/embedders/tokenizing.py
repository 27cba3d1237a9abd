"""The packaged model's tokenizer in the form in which the tokenizers library keeps one."""

from __future__ import annotations

import gzip
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from refdesk.embedders.local.wordpiece import VOCABULARY


def save_tokenizer(folder: Path) -> None:
    """Write `tokenizer.json` into a folder."""
    words = gzip.decompress(VOCABULARY.read_bytes()).decode().split("\n")
    numbers = {word: number for number, word in enumerate(words) if word}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", numbers["[SEP]"]), ("[CLS]", numbers["[CLS]"]))
    tokenizer.save(str(folder / "tokenizer.json"))
