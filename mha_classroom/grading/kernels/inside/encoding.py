"""Write down values as JSON, whatever an answer returned."""

import base64
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch

from mha_classroom.checks.showing import describe

__all__ = ["BOTH", "ROOM", "Encoder", "bytes_of", "shorten", "tensor_from"]

ROOM = 8_000_000  # bytes for the values of one probe; what goes beyond is only described
PART = 64  # bytes that even the smallest part of a value counts for
TEXT, DIGITS, EXACT, DEPTH = 10_000, 30_000, 5_000, 20
SHORT = 300  # characters of a description
BOTH = (  # the kinds of numbers of both torch and numpy that can be sent
    *("float64", "float32", "float16", "complex64", "complex128", "bool"),
    *("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
)


class Encoder:
    """Writes values down as long as there is room.

    A value becomes a list that begins with what it is: ["int", "ff"], ["list", [...]]. Numbers are
    texts, since JSON has neither NaN nor long integers; tensors are their bytes in base64. What
    cannot be written down is described: ["object", its type, a few words].
    """

    def __init__(self, room=ROOM):
        self.room = room

    def encode(self, value, depth=0):
        """A value, of which each part that cannot be written down is described."""
        try:
            self._take(PART)
            return self._written(value, depth)
        except Exception:
            return described(value)

    def encode_some(self, tensors):
        """As many of the tensors as there is room for."""
        encoded = []
        for X in tensors:
            try:
                encoded.append(self._tensor(X))
            except Exception:
                break
        return encoded

    def _take(self, size):
        if size > self.room:
            raise ValueError("no room left")
        self.room -= size

    def _written(self, value, depth):
        if value is None or isinstance(value, bool):
            return ["none"] if value is None else ["bool", value]
        if isinstance(value, torch.Tensor):
            return self._tensor_or_shape(value)
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(value)
        if type(value) in (tuple, list, dict):
            return self._container(value, depth)
        if type(value) is str:
            self._take(min(len(value), TEXT))
            return ["str", shorten(value, TEXT)]
        if isinstance(value, torch.dtype):
            return ["dtype", _name_of(value)]
        return _number(value)

    def _container(self, value, depth):
        if depth == DEPTH or len(value) * PART > self.room:
            raise ValueError("too much")
        if isinstance(value, dict):
            below = [[self.encode(part, depth + 1) for part in pair] for pair in value.items()]
        else:
            below = [self.encode(part, depth + 1) for part in value]
        return [type(value).__name__, below]

    def _tensor_or_shape(self, X):
        """A tensor without numbers to read (sparse, on the meta device) or too large: its shape."""
        try:
            return self._tensor(X)
        except Exception:
            plain = _plain(X)
            return ["shape", _name_of(plain.dtype), [int(size) for size in plain.shape]]

    def _tensor(self, X):
        with torch.no_grad():
            plain = _plain(X)
            self._take(plain.numel() * plain.element_size() * 4 // 3)
            flat = plain.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            content = bytes_of(flat)
        return ["tensor", _name_of(plain.dtype), list(plain.shape), _base64(content)]

    def _array(self, value):
        X = np.asarray(value)
        if X.dtype.name not in BOTH:
            raise TypeError(f"an array of {X.dtype}")
        self._take(X.nbytes * 4 // 3)
        content = np.ascontiguousarray(X).astype(X.dtype.newbyteorder("<")).tobytes()
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return [kind, X.dtype.name, list(X.shape), _base64(content)]


def _number(value):
    if isinstance(value, int):
        return ["int", _short_hex(value, DIGITS)]
    if isinstance(value, float):
        return ["float", float.__repr__(value)]
    if isinstance(value, complex):
        return ["complex", repr(value.real), repr(value.imag)]
    if isinstance(value, Fraction):
        parts = value.numerator, value.denominator
        return ["fraction", *(_short_hex(part, EXACT) for part in parts)]
    if isinstance(value, Decimal) and len(str(value)) < EXACT:
        return ["decimal", str(value)]
    raise TypeError("not a number")


def _short_hex(number, digits):
    if int.bit_length(number) > 4 * digits:
        raise ValueError("too long")
    return int.__format__(number, "x")


def bytes_of(flat):
    """The numbers of a tensor with one axis as they lie in memory."""
    return flat.view(torch.uint8).numpy().tobytes()


def tensor_from(dtype, shape, strides, content):
    """The tensor whose numbers lie in memory like this."""
    if not content:
        return torch.empty_strided(shape, strides, dtype=dtype)
    return torch.frombuffer(bytearray(content), dtype=dtype).as_strided(shape, strides)


def _plain(X):
    """The tensor itself where a subclass says that it is something else."""
    if type(X) is torch.Tensor:
        return X
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.as_subclass(X, torch.Tensor)


def _name_of(dtype):
    name = str(dtype).removeprefix("torch.")
    if name not in (*BOTH, "bfloat16"):
        raise TypeError(f"a tensor of {name}")
    return name


def _base64(content):
    return base64.b64encode(content).decode()


def described(value):
    """What a value is, in a few words, where that is all that can be sent of it."""
    name = shorten(type(value).__name__, 100)
    try:
        return ["object", name, shorten(describe(value), SHORT)]
    except Exception:
        return ["object", name, f"an object of type {name}"]


def shorten(text, length):
    """The beginning of a text, without what no JSON can hold."""
    return str(text)[:length].encode("utf-8", "replace").decode()
