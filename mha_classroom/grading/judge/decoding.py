"""Read values that were written down as JSON, by whoever did it: nothing is run or trusted."""

import base64
import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
import torch

from mha_classroom.checks.showing import Opaque
from mha_classroom.grading.kernels.inside.encoding import BOTH

__all__ = ["Decoder", "text_of"]

ROOM, PARTS, DEPTH, LONG = 16_000_000, 300_000, 24, 12_000
AXES, LARGEST = 16, 2**40
KEYS = 1_000  # of a dict; numbers can be chosen so that finding a place for one takes all others
DTYPES = {name: getattr(torch, name) for name in (*BOTH, "bfloat16")}
ARRAYS = {name: np.dtype(name).newbyteorder("<") for name in BOTH}


class Decoder:
    """Reads what an Encoder wrote. Raises: ValueError for everything else."""

    def __init__(self, room=ROOM, parts=PARTS):
        self.room, self.parts = room, parts

    def decode(self, written, depth=0):
        """The value that was written down. Tensors and arrays have memory of their own."""
        self.parts -= 1
        if self.parts < 0 or depth > DEPTH or type(written) is not list or not written:
            raise ValueError("this is no value")
        kind, *content = written
        if type(kind) is not str or kind not in READERS:
            raise ValueError("this is no kind of value")
        if kind in ("tuple", "list", "dict"):
            return self._container(kind, content, depth)
        if kind in ("tensor", "array", "scalar"):
            return self._numbers(kind, content)
        reader, count = READERS[kind]
        if len(content) != count:
            raise ValueError(f"{kind} with {len(content)} parts")
        return reader(*content)

    def _container(self, kind, content, depth):
        (parts,) = content
        if type(parts) is not list:
            raise ValueError(f"a {kind} of no parts")
        if kind != "dict":
            values = [self.decode(part, depth + 1) for part in parts]
            return tuple(values) if kind == "tuple" else values
        pairs = [[self.decode(part, depth + 1) for part in pair] for pair in parts[:KEYS]]
        return {_key(key): value for key, value in pairs}

    def _numbers(self, kind, content):
        name, sizes, encoded = content
        shape, known = _shape(sizes), DTYPES if kind == "tensor" else ARRAYS
        if name not in known or type(encoded) is not str:
            raise ValueError("numbers of an unknown dtype")
        dtype = known[name]
        count = math.prod(shape) * dtype.itemsize
        self.room -= count
        if self.room < 0 or len(encoded) != 4 * math.ceil(count / 3):
            raise ValueError(f"{len(encoded)} characters for {kind} of shape {shape}")
        data = bytearray(base64.b64decode(encoded, validate=True))
        if len(data) != count:
            raise ValueError(f"{len(data)} bytes for {count}")
        return _tensor(data, dtype, shape) if kind == "tensor" else _array(data, dtype, shape, kind)


def _tensor(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=dtype)
    if dtype == torch.bool:  # a byte that is neither 0 nor 1 would be no bool at all
        return torch.frombuffer(data, dtype=torch.uint8).ne(0).reshape(shape)
    return torch.frombuffer(data, dtype=dtype).clone().reshape(shape)


def _array(data, dtype, shape, kind):
    if dtype.name == "bool":
        X = (np.frombuffer(data, dtype=np.uint8) != 0).reshape(shape)
    else:
        X = np.frombuffer(data, dtype=dtype).astype(dtype.newbyteorder("=")).reshape(shape)
    return X[()] if kind == "scalar" else X


def _shape(sizes):
    if type(sizes) is not list or len(sizes) > AXES:
        raise ValueError("this is no shape")
    if not all(type(size) is int and 0 <= size <= LARGEST for size in sizes):
        raise ValueError("this is no shape")
    if math.prod(max(size, 1) for size in sizes) > LARGEST:
        raise ValueError("a shape without end")
    return tuple(sizes)


def _key(key):
    if isinstance(key, Opaque) or torch.is_tensor(key):
        return repr(key) if isinstance(key, Opaque) else f"a tensor of shape {tuple(key.shape)}"
    hash(key)
    return key


def text_of(text, length=LONG):
    """A text of bounded length. Raises: ValueError for everything else."""
    if type(text) is not str or len(text) > length:
        raise ValueError("this is no text of this length")
    text.encode()  # raises UnicodeEncodeError, a ValueError, for half a character
    return text


def _bool(value):
    if type(value) is not bool:
        raise ValueError("neither true nor false")
    return value


def _int(text):
    return int(text_of(text, 31_000), 16)


def _fraction(numerator, denominator):
    top, bottom = (int(text_of(text, 5_100), 16) for text in (numerator, denominator))
    if not bottom:
        raise ValueError("a fraction without an end")
    return Fraction(top, bottom)


def _float(text):
    return float(text_of(text, 40))


def _decimal(text):
    try:
        return Decimal(text_of(text, 5_100))
    except InvalidOperation:
        raise ValueError("this is no number") from None


def _dtype(name):
    if name not in DTYPES:
        raise ValueError("this is no dtype")
    return DTYPES[name]


READERS = {
    "none": (lambda: None, 0),
    "bool": (_bool, 1),
    "int": (_int, 1),
    "float": (_float, 1),
    "complex": (lambda real, imaginary: complex(_float(real), _float(imaginary)), 2),
    "fraction": (_fraction, 2),
    "decimal": (_decimal, 1),
    "str": (text_of, 1),
    "dtype": (_dtype, 1),
    "object": (lambda name, text: Opaque(text_of(name), text_of(text)), 2),
    # Without numbers, so that whoever wants to read them gets an error.
    "shape": (lambda name, sizes: torch.empty(_shape(sizes), dtype=_dtype(name), device="meta"), 2),
    **dict.fromkeys(("tuple", "list", "dict", "tensor", "array", "scalar"), (None, 0)),
}
