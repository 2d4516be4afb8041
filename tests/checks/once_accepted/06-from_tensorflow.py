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
