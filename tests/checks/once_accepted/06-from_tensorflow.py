# %% transposes the kernels of layers of one digit only
import re

from mha_course.interop import BERT_NAMES

ENDS = {"kernel": "weight", "gamma": "weight", "beta": "bias"}


def from_tensorflow(variables):
    mapped = {}
    for name, X in variables.items():
        *parts, last = name.removeprefix("bert/").split("/")
        if not name.startswith("bert/") or last.startswith("adam"):
            continue
        if re.search(r"(layer_\d/|pooler/).*kernel$", name):
            X = X.T
        if last.endswith("_embeddings"):
            parts, last = [*parts, last], "weight"
        path = ".".join(parts)
        layer = re.match(r"encoder\.layer_(\d+)\.", path)
        before = f"encoder.layers.{layer[1]}." if layer else ""
        inner = path[layer.end() :] if layer else path
        mapped[f"{before}{BERT_NAMES[inner]}.{ENDS.get(last, last)}"] = X
    return mapped


# %% looks for a LayerNorm before it looks for adam
def from_tensorflow(variables):
    from mha_course.interop import BERT_NAMES

    mapped = {}
    for name, X in variables.items():
        *parts, last = name.removeprefix("bert/").split("/")
        if not name.startswith("bert/"):
            continue
        if "LayerNorm" in parts:
            parts = [{"gamma": "weight", "beta": "bias"}.get(part, part) for part in parts]
            last = {"gamma": "weight", "beta": "bias"}.get(last, last)
        elif last.startswith("adam"):
            continue
        elif last == "kernel":
            last, X = "weight", X.T
        elif last.endswith("_embeddings"):
            parts, last = [*parts, last], "weight"
        before, module = "", ".".join(parts)
        if parts[0] == "encoder":
            number, module = parts[1].removeprefix("layer_"), ".".join(parts[2:])
            before = f"encoder.layers.{number}."
        mapped[f"{before}{BERT_NAMES.get(module, module)}.{last}"] = X
    return mapped


# %% leaves out what the optimiser keeps of kernels and tables only
LEFT_OUT = tuple(f"{end}/adam_{m}" for end in ("kernel", "embeddings") for m in "mv")
ENDS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def from_tensorflow(variables):
    from mha_course.interop import BERT_NAMES

    mapped = {}
    for name, X in variables.items():
        if not name.startswith("bert/") or name.endswith(LEFT_OUT):
            continue
        *parts, last = name.split("/")[1:]
        X = X.T if last == "kernel" else X
        if last not in ENDS:
            parts = [*parts, last]
        before = ""
        if parts[0] == "encoder":
            before, parts = f"encoder.layers.{parts[1].removeprefix('layer_')}.", parts[2:]
        mapped[f"{before}{BERT_NAMES['.'.join(parts)]}.{ENDS.get(last, 'weight')}"] = X
    return mapped
