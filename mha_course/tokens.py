"""From texts to the ids that a BERT reads: WordPiece, as `tokenizers` does it."""

import json
import threading
import warnings
from pathlib import Path

import torch

from mha_course.embedded import ModelError

__all__ = ["Tokenizer"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class Tokenizer:
    """Cuts texts into the pieces of a vocabulary, and gives the tensors that a BERT reads.

    `model(**tokenizer(texts))` works for one text or a list, and for pairs.
    Shapes: returns input_ids, attention_mask (1 = a token, 0 = padding) and token_type_ids (0 and
        1: the first and the second text), each (B, L), padded to the longest text of the batch.
    Properties: the ids are those of transformers' tokenizer for the same files. Texts longer than
        `max_length` tokens are cut as there: of a pair, the longer text first. A cut that was not
        asked for is told in a warning; `count` says beforehand how long a text is.
    Raises: TypeError naming what is not a string; ValueError for an empty list, for texts and
        pairs of different number and for a max_length that the model cannot read.
    Source: Wu et al. 2016, section 4.1 (WordPiece); Devlin et al. 2019, figure 2.
    Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, pieces, max_length=512):
        self.max_length = max_length
        self.vocab_size = 1 + max(pieces.get_vocab().values(), default=-1)
        lacking = [token for token in SPECIAL if pieces.token_to_id(token) is None]
        if lacking:
            raise ModelError(f"the vocabulary lacks {', '.join(lacking)}")
        # Published files bring a padding and a cut of their own, such as always 128 tokens.
        pieces.no_padding()
        pieces.no_truncation()
        pieces.enable_padding(pad_id=pieces.token_to_id("[PAD]"), pad_token="[PAD]")
        self._pieces = pieces
        self._lock = threading.Lock()  # where to cut is a setting of the one object

    @classmethod
    def from_folder(cls, folder, max_length=512):
        """The tokenizer of a model's folder: its tokenizer.json, else made from its vocab.txt.

        Properties: whether letters are lowered and accents dropped is what the files say.
        Raises: ModelError naming the file that is missing or cannot be read.
        """
        from tokenizers import Tokenizer as Pieces

        folder = Path(folder)
        file = folder / "tokenizer.json"
        if not file.is_file():
            return cls(_from_vocabulary(folder), max_length)
        try:
            return cls(Pieces.from_file(str(file)), max_length)
        except Exception as error:  # the library raises nothing more special
            raise ModelError(f"{file} is not a tokenizer: {error}") from None

    def __call__(self, texts, pairs=None, max_length=None):
        """Encode one text or a list of texts, or pairs; see the class for shapes."""
        texts, pairs = _as_lists(texts, pairs)
        length = self._length(max_length, pairs is not None)
        inputs = texts if pairs is None else list(zip(texts, pairs, strict=True))
        with self._lock:
            self._pieces.enable_truncation(length)
            encodings = self._pieces.encode_batch(inputs)
        cut = sum(bool(encoding.overflowing) for encoding in encodings)
        if cut and max_length is None:
            message = (
                f"{cut} of {len(texts)} texts cut to the {length} tokens that the model reads; "
                "tokenizer.count says how many a text has, max_length= cuts without this warning"
            )
            warnings.warn(message, stacklevel=2)
        return {
            "input_ids": torch.tensor([encoding.ids for encoding in encodings]),
            "attention_mask": torch.tensor([encoding.attention_mask for encoding in encodings]),
            "token_type_ids": torch.tensor([encoding.type_ids for encoding in encodings]),
        }

    def tokenize(self, text):
        """The pieces of a text, as strings, without [CLS] and [SEP], however many they are."""
        return self._encode_whole(text, None, special=False).tokens

    def count(self, text, pair=None):
        """How many tokens a text or a pair has, [CLS] and [SEP] included, before any cut."""
        return len(self._encode_whole(text, pair, special=True).ids)

    def tokens(self, ids):
        """The strings of ids: (L,) gives a list, (B, L) a list of lists.

        Raises: ValueError for an id that the vocabulary does not have.
        """
        if torch.is_tensor(ids):
            ids = ids.tolist()
        if ids and isinstance(ids[0], list | tuple):
            return [self.tokens(row) for row in ids]
        found = [self._pieces.id_to_token(number) if number >= 0 else None for number in ids]
        if None in found:
            number = ids[found.index(None)]
            raise ValueError(f"ids must lie in 0..{self.vocab_size - 1}, got {number}")
        return found

    def decode(self, ids, skip_special_tokens=True):
        """The text of ids (L,); what the tokenizer dropped, such as capitals, stays lost."""
        ids = ids.tolist() if torch.is_tensor(ids) else list(ids)
        self.tokens(ids)
        return self._pieces.decode(ids, skip_special_tokens=skip_special_tokens)

    def _encode_whole(self, text, pair, special):
        (text,), pairs = _as_lists(_one(text), None if pair is None else _one(pair))
        with self._lock:
            self._pieces.no_truncation()
            return self._pieces.encode(text, pairs and pairs[0], add_special_tokens=special)

    def _length(self, wanted, pair):
        least = self._pieces.num_special_tokens_to_add(pair)
        if wanted is None:
            return self.max_length
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            raise TypeError(f"max_length must be an integer, got {wanted!r}")
        if not least <= wanted <= self.max_length:
            raise ValueError(f"max_length must lie in {least}..{self.max_length}, got {wanted}")
        return wanted


def _one(text):
    return [text] if isinstance(text, list | tuple) else text


def _as_lists(texts, pairs):
    """Texts and pairs as lists of strings, of one length."""
    one = isinstance(texts, str)
    if pairs is not None and one != isinstance(pairs, str):
        raise TypeError("texts and pairs must be two strings or two lists of strings")
    texts = _strings("texts", texts)
    if pairs is None:
        return texts, None
    pairs = _strings("pairs", pairs)
    if len(texts) != len(pairs):
        raise ValueError(f"there are {len(texts)} texts and {len(pairs)} pairs")
    return texts, pairs


def _strings(name, texts):
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list | tuple):
        raise TypeError(f"{name} must be a string or a list of strings, got {_kind(texts)}")
    if not texts:
        raise ValueError(f"{name} must not be an empty list")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}] must be a string, got {_kind(text)}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{name}[{index}] is no text that can be written: {error}") from None
    return list(texts)


def _kind(value):
    return type(value).__name__


def _from_vocabulary(folder):
    """A BERT tokenizer made from vocab.txt, with the settings of tokenizer_config.json."""
    from tokenizers import Tokenizer as Pieces
    from tokenizers.implementations import BertWordPieceTokenizer

    file = folder / "vocab.txt"
    if not file.is_file():
        raise ModelError(f"{folder} has neither tokenizer.json nor vocab.txt")
    settings = {}
    try:
        lines = file.read_text("utf-8").removesuffix("\n").split("\n")
        if (folder / "tokenizer_config.json").is_file():
            file = folder / "tokenizer_config.json"
            settings = dict(json.loads(file.read_text("utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from None
    vocabulary = {token: index for index, token in enumerate(lines)}
    if lacking := [token for token in SPECIAL if token not in vocabulary]:
        raise ModelError(f"{folder / 'vocab.txt'} lacks {', '.join(lacking)}")
    made = BertWordPieceTokenizer(
        vocabulary,
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    return Pieces.from_str(made.to_str())
