"""The sizes of a BERT, checked."""

import math
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real

from torch.nn import functional as F

from mha_course.multihead import check_heads

__all__ = ["ACTIVATIONS", "BertConfig"]

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
# What a config.json may say that this BERT is not, and the value that it has to have.
FIXED = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, under the names that published checkpoints use; BERT-base by default.

    Raises: TypeError or ValueError quoting the value for sizes that are not positive integers,
        probabilities outside 0..1, a width that the heads do not divide, an unknown activation.
    Source: Devlin et al. 2019, section 3. Lesson: notebooks/06_bert_attention.ipynb.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    def __post_init__(self):
        for name in (*SIZES, "pad_token_id"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise TypeError(f"{name} must be an integer, got {value!r}")
            if value < (name in SIZES):
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _check_real(name, getattr(self, name), 0, 1)
        for name in ("layer_norm_eps", "initializer_range"):
            _check_real(name, getattr(self, name), 0, math.inf)
        check_heads(self.hidden_size, self.num_attention_heads)
        if self.hidden_act not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"hidden_act must be one of {known}; got {self.hidden_act!r}")
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"pad_token_id={self.pad_token_id} is not in a vocabulary of {self.vocab_size}"
            )

    @classmethod
    def from_dict(cls, content):
        """The config that a published `config.json` describes; what it says besides is left out.

        Raises: ValueError quoting the entry if it describes a model that this BERT is not, or
            lacks one of the sizes; otherwise as the class.
        """
        if not isinstance(content, dict):
            raise TypeError(f"a config is a dictionary, got {type(content).__name__}")
        for name, value in FIXED.items():
            if content.get(name, value) != value:
                raise ValueError(f"{name} is {content[name]!r}; the course's BERT needs {value!r}")
        if lacking := [name for name in SIZES if name not in content]:
            raise ValueError(f"the config does not say {', '.join(lacking)}")
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})


def _check_real(name, value, low, high):
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low}..{high}, got {value}")
