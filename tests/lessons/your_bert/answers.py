"""Answers to the tasks of lesson 12."""

import copy

import torch
from lessons.your_bert.neighbours_and_step_answers import (
    NEIGHBOURS_RIGHT,
    NEIGHBOURS_WRONG,
    STEP_RIGHT,
    STEP_WRONG,
)
from lessons.your_bert.text_answers import (
    classify,
    classify_by_blocks,
    classify_by_dict,
    classify_by_distance,
    classify_by_loop,
    classify_by_max,
    classify_by_product,
    classify_until_truthy,
    mean,
    mean_by_loop,
    mean_by_nan,
    mean_by_product,
    mean_by_rows,
    mean_by_weights,
    search,
    search_by_argsort,
    search_by_loop,
    search_by_numpy,
    search_by_sorted,
    search_by_topk_of_ranks,
    search_one_by_one,
    softened,
    summed,
)
from torch import nn
from torch.nn import functional as F


class Embeddings(nn.Module):
    """A right answer whose parts can be replaced by wrong ones."""

    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segments = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def added(self, ids, kinds):
        kinds = torch.zeros_like(ids) if kinds is None else kinds
        places = torch.arange(ids.shape[1])
        return self.words(ids) + self.positions(places) + self.segments(kinds)

    def forward(self, input_ids, token_type_ids=None):
        return self.dropout(self.norm(self.added(input_ids, token_type_ids)))


class Buffered(Embeddings):
    """Positions in a buffer, as published code has them, and a padding index."""

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.register_buffer("position_ids", torch.arange(config.max_position_embeddings)[None])

    def added(self, ids, kinds=None):
        places = self.position_ids[:, : ids.size(1)].expand_as(ids)
        kinds = ids.new_zeros(ids.shape) if kinds is None else kinds
        return self.positions(places).add_(self.words(ids)).add_(self.segments(kinds))


class Sliced(Embeddings):
    """Rows by slices and indices, the norm by hand, functional dropout."""

    def forward(self, input_ids, token_type_ids=None):
        X = self.words.weight[input_ids] + self.positions.weight[: input_ids.shape[1]]
        X = X + self.segments.weight[0 if token_type_ids is None else token_type_ids]
        X = X - X.mean(-1, keepdim=True)
        X = X / (X.var(-1, correction=0, keepdim=True) + self.norm.eps).sqrt()
        X = X * self.norm.weight + self.norm.bias
        return F.dropout(X, self.dropout.p, self.training)


class OneHot(Embeddings):
    """Looking up a row is a product with a one-hot vector."""

    def added(self, ids, kinds):
        kinds = ids * 0 if kinds is None else kinds
        places = torch.arange(ids.shape[1]).expand(ids.shape)
        tables = (self.words, ids), (self.positions, places), (self.segments, kinds)
        return sum(
            F.one_hot(rows, len(table.weight)).to(table.weight.dtype) @ table.weight
            for table, rows in tables
        )


class WordByWord(Embeddings):
    def forward(self, input_ids, token_type_ids=None):
        columns = []
        for place in range(input_ids.shape[1]):
            word = self.words(input_ids[:, place]) + self.positions.weight[place]
            if token_type_ids is None:
                word = word + self.segments.weight[0]
            else:
                word = word + self.segments(token_type_ids[:, place])
            columns.append(word)
        return self.dropout(self.norm(torch.stack(columns, 1)))


def embeddings(added=Embeddings.added, base=Embeddings, **parts):
    return type("BertEmbeddings", (base,), {"added": added, **parts})


def embeddings_made(make):
    """Embeddings, with what __init__ makes changed."""

    class BertEmbeddings(Embeddings):
        def __init__(self, config):
            super().__init__(config)
            make(self, config)

    return BertEmbeddings


def _published_names(self, config):
    self.word_embeddings = self.words
    del self.words


def _swapped_tables(self, config):
    self.positions, self.segments = self.segments, self.positions


class Encoder(nn.Module):
    """A right answer whose flow can be replaced by wrong ones."""

    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None):
        states = [X]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states


class AppendedEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(config.num_hidden_layers):
            self.layers.append(layer(config))

    def forward(self, X, mask=None):
        states = (X,)
        for number in range(len(self.layers)):
            X = self.layers[number](X, mask=mask)
            states += (X,)
        return states


class SequentialEncoder(Encoder):
    """nn.Sequential registers its parts under the same names."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.layers = nn.Sequential(*self.layers)

    def forward(self, X, mask=None):
        states = []
        for layer in self.layers.children():
            states += [X]
            X = layer(X, mask)
        return [*states, X]


class RecursiveEncoder(Encoder):
    def forward(self, X, mask=None, begin=0):
        if begin == len(self.layers):
            return [X]
        return [X, *self.forward(self.layers[begin](X, mask), mask, begin + 1)]


class CopiedEncoder(Encoder):
    """Copies of one layer are layers of their own."""

    def __init__(self, config, layer):
        nn.Module.__init__(self)
        first = layer(config)
        copies = [copy.deepcopy(first) for _ in range(config.num_hidden_layers - 1)]
        self.layers = nn.ModuleList([first, *copies])

    def forward(self, X, mask=None):
        states = [X]
        for layer in self.layers:
            X, _ = layer(X, mask, need_weights=True)
            states.append(X)
        return states


def encoder(forward, base=Encoder):
    return type("BertEncoder", (base,), {"forward": forward})


def _loop(step=lambda layer, X, mask: layer(X, mask), collect=list):
    def forward(self, X, mask=None):
        states = [X]
        for layer in self.layers:
            states.append(step(layer, states[-1], mask))
        return collect(states)

    return forward


class WrongLayer(Encoder):
    def __init__(self, config, layer):
        super().__init__(config, lambda config: nn.Linear(config.hidden_size, config.hidden_size))


class NamedLayers(Encoder):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.layer = self.layers
        del self.layers


class WithNorm(Encoder):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.norm = nn.LayerNorm(config.hidden_size)


class NoConfig(Encoder):
    def __init__(self, config, layer):
        nn.Module.__init__(self)
        self.layers = nn.ModuleList([layer() for _ in range(config.num_hidden_layers)])


class FixedTwo(Encoder):
    def __init__(self, config, layer):
        nn.Module.__init__(self)
        self.layers = nn.ModuleList([layer(config), layer(config)])


def look_for_parts(own, given):
    bad = [n for n in own if not any(n in other for other in given)]
    bad += [n for n in given if not any(n in other for other in own)]
    return bad + [n for n in own if n in given and own[n].shape != given[n].shape]


def unfit(own, given):
    bad = [f"missing: {n}" for n in own if n not in given]
    bad += [f"unknown: {n}" for n in given if n not in own]
    for n in own.keys() & given.keys():
        if own[n].shape != given[n].shape:
            bad.append(f"{n} is {tuple(given[n].shape)} and not {tuple(own[n].shape)}")
    return bad


def load_by_copy(model, state_dict):
    own = dict(model.named_parameters())
    bad = unfit(own, state_dict)
    if bad:
        raise ValueError("\n".join(bad))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state_dict[name])


def load_by_library(model, state_dict):
    """Look first, then leave the copying to PyTorch."""
    bad = unfit(model.state_dict(), state_dict)
    if bad:
        raise ValueError(", ".join(sorted(bad)))
    model.load_state_dict(state_dict)


def load_or_put_back(model, state_dict):
    """Half of it is copied, and taken back."""
    before = {name: X.clone() for name, X in model.state_dict().items()}
    try:
        model.load_state_dict(state_dict)
    except RuntimeError as error:
        model.load_state_dict(before)
        raise ValueError(str(error)) from None


def load_on_a_trial(model, state_dict):
    """A copy of the model has to stand it first."""
    try:
        copy.deepcopy(model).load_state_dict(state_dict)
    except RuntimeError as error:
        raise ValueError(f"the file does not fit the model: {error}") from error
    for name, X in state_dict.items():
        model.get_parameter(name).data[...] = X


class Misfit(ValueError):
    def __init__(self, names):
        super().__init__(f"{len(names)} weights do not fit", sorted(names))


def load_by_sets(model, state_dict):
    """An error of its own kind; modules and attributes walked by hand; data written in place."""
    shapes = [{(n, X.shape) for n, X in X.items()} for X in (model.state_dict(), state_dict)]
    names = {name for name, _ in shapes[0] ^ shapes[1]}
    if names:
        raise Misfit(names)
    for path, module in model.named_modules():
        for last, parameter in module.named_parameters(recurse=False):
            name = f"{path}.{last}" if path else last
            parameter.detach().flatten()[:] = state_dict[name].flatten().to(parameter.dtype)
    return model


def load(copying=None, raising=ValueError, text="\n".join, look=unfit):
    """An answer made of parts, right without any."""

    def load_weights(model, state_dict):
        own = dict(model.named_parameters())
        bad = look(own, state_dict)
        if bad:
            raise raising(text(bad))
        for name, X in state_dict.items():
            if copying:
                copying(model, own, name, X)
            elif name in own:
                own[name].data.copy_(X)

    return load_weights


def look_for(*kinds):
    def look(own, given):
        return [line for line in unfit(own, given) if line.startswith(kinds)]

    return look


def load_strictly(model, state_dict):
    try:
        model.load_state_dict(state_dict, strict=True)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def load_with_zip(model, state_dict):
    own = dict(model.named_parameters())
    if unfit(own, state_dict):
        raise ValueError(" ".join(unfit(own, state_dict)))
    for parameter, X in zip(own.values(), state_dict.values(), strict=True):
        parameter.data.copy_(X.reshape(parameter.shape) if X.numel() == parameter.numel() else 0)


def load_and_pop(model, state_dict):
    load_by_copy(model, state_dict)
    for name, _ in model.named_parameters():
        state_dict.pop(name)


def load_and_tell_all(model, state_dict):
    if unfit(dict(model.named_parameters()), state_dict):
        raise ValueError(f"{[n for n, _ in model.named_parameters()]} and {list(state_dict)}")
    load_by_copy(model, state_dict)


def load_and_print(model, state_dict):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in state_dict and state_dict[name].shape == parameter.shape:
                parameter.copy_(state_dict[name])
            else:
                print("does not fit:", name)


def load_prefix(model, state_dict):
    """layers.1.W.bias stands for layers.11.W.bias, too."""
    try:
        load_by_copy(model, state_dict)
    except ValueError as error:
        raise ValueError(str(error).replace("layers.11.", "layers.1.")) from None


def classify_by_squeezed_examples(vectors, examples, labels):
    return classify_by_loop(vectors, examples.squeeze(0), labels)


RIGHT = {
    "12-BertEmbeddings": {
        "plain": Embeddings,
        "positions in a buffer": Buffered,
        "slices, norm by hand": Sliced,
        "one-hot": OneHot,
        "word by word": WordByWord,
    },
    "12-BertEncoder": {
        "plain": Encoder,
        "appended, a tuple": AppendedEncoder,
        "nn.Sequential in a loop": SequentialEncoder,
        "recursive": RecursiveEncoder,
        "copies, weights asked for": CopiedEncoder,
    },
    "12-load_weights": {
        "copy_": load_by_copy,
        "look first, then the library": load_by_library,
        "put back what was copied": load_or_put_back,
        "on a trial": load_on_a_trial,
        "sets, an error of its own": load_by_sets,
    },
    "12-mean_pool": {
        "weights and einsum": mean_by_weights,
        "nanmean": mean_by_nan,
        "loop": mean_by_loop,
        "rows": mean_by_rows,
        "batched product": mean_by_product,
        "where": mean(
            lambda hidden, mask: torch.where(mask.bool()[..., None], hidden, 0.0).sum(dim=1)
        ),
    },
    "12-search": {
        "argsort": search_by_argsort,
        "sorted": search_by_sorted,
        "loop": search_by_loop,
        "one by one, a tuple": search_one_by_one,
        "numpy, lists for pairs": search_by_numpy,
        "topk of ranks": search_by_topk_of_ranks,
        "float32": lambda q, d, k=3: search_by_argsort(q.float(), d.float(), k),
    },
    "12-classify": {
        "sums in a dict": classify_by_dict,
        "loop": classify_by_loop,
        "product": classify_by_product,
        "distance between directions, a tuple": classify_by_distance,
        "max with a key": classify_by_max,
    },
    "12-neighbours": NEIGHBOURS_RIGHT,
    "12-training_step": STEP_RIGHT,
}


def load_by(put):
    """What fits is put into the parameters in some way."""

    def answer(model, state_dict):
        own = dict(model.named_parameters())
        bad = unfit(own, state_dict)
        if bad:
            raise ValueError(", ".join(bad))
        with torch.no_grad():
            for name, parameter in own.items():
                put(parameter, state_dict[name])

    return answer


def mean_of_what_is_not_0(hidden, attention_mask):
    words = hidden * attention_mask[..., None]
    return words.sum(1) / (words != 0).any(-1).sum(1, keepdim=True)


def mean_squeezed(hidden, attention_mask):
    total = (hidden * attention_mask[..., None]).sum(1).squeeze()
    return total / attention_mask.sum(1, keepdim=True)


def search_by_rounded(query, documents, k=3):
    cosines = F.cosine_similarity(documents, query, dim=1, eps=0).tolist()
    ranks = sorted(range(len(cosines)), key=lambda i: round(cosines[i], 5), reverse=True)
    return [(i, cosines[i]) for i in ranks[:k]]


def search_squeezed(query, documents, k=3):
    cosines = F.cosine_similarity(documents, query[None]).squeeze().tolist()
    return sorted(enumerate(cosines), key=lambda pair: -pair[1])[:k]


def classify_from_minus_1(vectors, examples, labels):
    """-1 stands for none so far, and may be a label."""
    names, found = list(dict.fromkeys(labels)), []
    means = [F.normalize(examples)[[y == x for y in labels]].mean(0) for x in names]
    for row in (F.normalize(vectors) @ F.normalize(torch.stack(means)).T).tolist():
        best = -1
        for name, value in zip(names, row, strict=True):
            if best == -1 or value > row[names.index(best)]:
                best = name
        found.append(best)
    return found


WRONG = {
    "12-BertEmbeddings": {
        "published names": embeddings_made(_published_names),
        "tables swapped": embeddings_made(_swapped_tables),
        "eps of PyTorch": embeddings_made(
            lambda self, config: setattr(self, "norm", nn.LayerNorm(config.hidden_size))
        ),
        "dropout of 0.1": embeddings_made(
            lambda self, config: setattr(self, "dropout", nn.Dropout(0.1))
        ),
        "positions as a parameter": embeddings_made(
            lambda self, config: setattr(
                self, "places", nn.Parameter(torch.arange(config.max_position_embeddings).float())
            )
        ),
        "words only": embeddings(lambda self, ids, kinds: self.words(ids)),
        "512 positions": embeddings_made(
            lambda self, config: setattr(self, "positions", nn.Embedding(512, config.hidden_size))
        ),
        "positions by ids, clamped": embeddings(
            lambda self, ids, kinds: (
                self.words(ids)
                + self.positions(ids.clamp(max=self.positions.num_embeddings - 1))
                + self.segments(ids * 0 if kinds is None else kinds)
            )
        ),
        "no positions": embeddings(
            lambda self, ids, kinds: self.words(ids) + self.segments(ids * 0)
        ),
        "sine and cosine": embeddings(
            lambda self, ids, kinds: (
                Embeddings.added(self, ids, kinds)
                + (torch.arange(ids.shape[1])[:, None] * self.positions.weight[0]).sin()
            )
        ),
        "scaled by the root of the width": embeddings(
            lambda self, ids, kinds: (
                Embeddings.added(self, ids, kinds)
                + (self.norm.weight.numel() ** 0.5 - 1) * self.words(ids)
            )
        ),
        "segment for position": embeddings(
            lambda self, ids, kinds: (
                self.words(ids)
                + self.positions(ids * 0 if kinds is None else kinds)
                + self.segments.weight[0]
            )
        ),
        "zero segment adds nothing": embeddings(
            lambda self, ids, kinds: (
                Embeddings.added(self, ids, kinds)
                - (1 if kinds is None else (kinds == 0)[..., None]) * self.segments.weight[0]
            )
        ),
        "whole words dropped": embeddings(
            forward=lambda self, ids, kinds=None: (
                self.norm(self.added(ids, kinds)) * self.dropout(torch.ones(*ids.shape, 1))
            )
        ),
        "norm over text": embeddings(
            forward=lambda self, ids, kinds=None: self.dropout(
                F.layer_norm(X := self.added(ids, kinds), X.shape[1:], eps=self.norm.eps)
                * self.norm.weight
                + self.norm.bias
            )
        ),
        "no_grad": embeddings(forward=torch.no_grad()(Embeddings.forward)),
        "segments detached": embeddings(
            lambda self, ids, kinds: (
                self.words(ids)
                + self.positions.weight[: ids.shape[1]]
                + self.segments(ids * 0 if kinds is None else kinds).detach()
            )
        ),
        "two values": embeddings(
            forward=lambda self, ids, kinds=None: (Embeddings.forward(self, ids, kinds), kinds)
        ),
        "batch in the second axis": embeddings(
            forward=lambda self, ids, kinds=None: Embeddings.forward(self, ids, kinds).mT
        ),
        "no module": type("BertEmbeddings", (), {"__init__": lambda self, config: None}),
    },
    "12-BertEncoder": {
        "layer ignored": WrongLayer,
        "named layer": NamedLayers,
        "a norm too many": WithNorm,
        "always two": FixedTwo,
        "no mask": encoder(_loop(lambda layer, X, mask: layer(X))),
        "mask squeezed": encoder(
            _loop(lambda layer, X, mask: layer(X, None if mask is None else mask[:1]))
        ),
        "a tuple kept": encoder(_loop(lambda layer, X, mask: layer(X, mask, True)[0] * 1.01)),
        "detached between": encoder(_loop(lambda layer, X, mask: layer(X.detach(), mask))),
        "without X": encoder(_loop(collect=lambda states: states[1:])),
        "no config": NoConfig,
        "dict": encoder(_loop(collect=lambda states: dict(enumerate(states)))),
        "stacked": encoder(_loop(collect=torch.stack)),
        "last and list": encoder(_loop(collect=lambda states: (states[-1], states))),
        "generator": encoder(_loop(collect=iter)),
        "numpy": encoder(_loop(collect=lambda states: [X.detach().numpy() for X in states])),
        "averaged with X": encoder(
            _loop(collect=lambda states: [(X + states[0]) / 2 for X in states])
        ),
        "same last everywhere": encoder(_loop(collect=lambda states: [states[-1]] * len(states))),
        "eval inside": encoder(
            lambda self, X, mask=None: _loop()(self.eval(), X, mask),
        ),
        "empty": encoder(lambda self, X, mask=None: []),
    },
    "12-load_weights": {
        "in float64": load_by(lambda own, X: setattr(own, "data", X.double().clone())),
        "by way of float32": load_by(lambda own, X: own.copy_(X.float())),
        "through numpy": load_by(lambda own, X: own.copy_(torch.from_numpy(X.numpy()))),
        "into a slice": load_by(lambda own, X: own[:].copy_(X)),
        "position_ids left out": lambda model, state_dict: load_with_zip(
            model, {n: X for n, X in state_dict.items() if not n.endswith("position_ids")}
        ),
        "library alone": lambda model, state_dict: model.load_state_dict(state_dict),
        "library, in other words": load_strictly,
        "printed": load_and_print,
        "strict=False": lambda model, state_dict: model.load_state_dict(state_dict, strict=False),
        "assign": load(lambda model, own, name, X: model.load_state_dict({name: X}, False, True)),
        "zip": load_with_zip,
        "pop": load_and_pop,
        "everything named": load_and_tell_all,
        "names cut": load_prefix,
        "missing only": load(look=look_for("missing")),
        "unknown only": load(look=look_for("unknown")),
        "names only": load(look=look_for("missing", "unknown")),
        "no raise": load(look=lambda own, given: []),
        "first line only": load(text=lambda bad: bad[0]),
        "number of faults": load(text=lambda bad: str(len(bad))),
        "last parts of names": load(text=lambda bad: " ".join(b.split(".")[-1] for b in bad)),
        "KeyError": load(raising=KeyError),
        "NameError": load(raising=NameError),
        "SystemExit": load(raising=SystemExit),
        "data shared": load(lambda model, own, name, X: setattr(own[name], "data", X)),
        "added instead of copied": load(lambda model, own, name, X: own[name].data.add_(X)),
        "copied twice over": load(lambda model, own, name, X: own[name].data.copy_(2 * X)),
        "name bound": load(lambda model, own, name, X: own.update({name: X})),
        "one missed": load(
            lambda model, own, name, X: name == "norm.bias" or own[name].data.copy_(X)
        ),
        "in half precision": load(lambda model, own, name, X: own[name].data.copy_(X.half())),
        "grad": load(lambda model, own, name, X: own[name].copy_(X)),
        "parts of names": load(look=look_for_parts),
    },
    "12-mean_pool": {
        "what is not 0": mean_of_what_is_not_0,
        "one mean for all": lambda hidden, mask: (
            hidden[mask.bool()].mean(0).expand(len(hidden), -1)
        ),
        "without [CLS]": lambda hidden, mask: mean_by_rows(hidden[:, 1:], mask[:, 1:]),
        "squeezed": mean_squeezed,
        "float64 whatever is given": lambda hidden, mask: (
            (mask.double()[:, None] @ hidden)[:, 0] / mask.sum(1, keepdim=True)
        ),
        "plain mean": lambda hidden, attention_mask: hidden.mean(1),
        "sum": summed,
        "divided by what is not 0": lambda hidden, mask: (
            summed(hidden, mask) / (hidden * mask[..., None] != 0).sum(1).clamp(min=1)
        ),
        "divided by L": mean(summed, lambda total, mask: total / mask.shape[1]),
        "mask inverted, divided by L": lambda hidden, mask: (
            summed(hidden, 1 - mask) / mask.shape[1]
        ),
        "divided by B": mean(summed, lambda total, mask: total / len(mask)),
        "padding in the sum": mean(lambda hidden, mask: hidden.sum(1)),
        "[CLS]": lambda hidden, attention_mask: hidden[:, 0],
        "counts kept flat": mean(summed, lambda total, mask: (total.T / mask.sum(1)).T + 0.001),
        "axis kept": lambda hidden, mask: mean_by_rows(hidden, mask)[:, None],
        "first texts only": lambda hidden, mask: mean_by_rows(hidden, mask)[:1],
        "up to the first padding": lambda hidden, mask: mean_by_rows(hidden, mask.cumprod(1)),
        "as many as there are words, from the front": lambda hidden, mask: mean_by_rows(
            hidden, torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)
        ),
        "numpy": lambda hidden, mask: mean_by_rows(hidden, mask).numpy(),
        "half": lambda hidden, mask: mean_by_rows(hidden, mask).half(),
        "softmax of the mask": lambda hidden, mask: (
            hidden * mask.double().softmax(1)[..., None]
        ).sum(1),
        "geometric": lambda hidden, mask: mean_by_rows(hidden.abs().log(), mask).exp(),
        "normalised": lambda hidden, mask: F.normalize(mean_by_rows(hidden, mask), dim=1),
        "in place": lambda hidden, mask: mean_by_rows(hidden.mul_(2), mask) / 2,
    },
    "12-search": {
        "squeezed": search_squeezed,
        "ordered by rounded cosines": search_by_rounded,
        "dot products": search(lambda query, documents: documents @ query),
        "query as it is": search(lambda query, documents: F.normalize(documents) @ query),
        "documents as they are": search(
            lambda query, documents: documents @ F.normalize(query, dim=0)
        ),
        "negative distances": search(lambda query, documents: -(documents - query).norm(dim=1)),
        "centred": search(
            lambda query, documents: F.cosine_similarity(
                documents - documents.mean(0), (query - documents.mean(0))[None]
            )
        ),
        "correlation": search(
            lambda query, documents: F.cosine_similarity(
                documents - documents.mean(1, keepdim=True), (query - query.mean())[None]
            )
        ),
        "softmax": search(
            lambda query, documents: F.cosine_similarity(documents, query[None]).softmax(0)
        ),
        "half of it": search(
            lambda query, documents: (1 + F.cosine_similarity(documents, query[None])) / 2
        ),
        "worst": search(choose=lambda cosines, k: cosines.argsort()[:k]),
        "turned round": search(choose=lambda cosines, k: cosines.argsort(stable=True).flip(0)[:k]),
        "all": search(choose=lambda cosines, k: cosines.argsort(descending=True, stable=True)),
        "topk": search(choose=lambda cosines, k: cosines.topk(min(k, len(cosines))).indices),
        "at most 10": search(
            choose=lambda cosines, k: cosines.argsort(descending=True, stable=True)[: min(k, 10)]
        ),
        "above 0 only": search(
            choose=lambda cosines, k: [
                i for i in cosines.argsort(descending=True, stable=True)[:k] if cosines[i] > 0
            ]
        ),
        "no k by default": lambda query, documents, k: search_by_argsort(query, documents, k),
        "k=5 by default": lambda query, documents, k=5: search_by_argsort(query, documents, k),
        "dict": lambda *inputs: dict(search_by_argsort(*inputs)),
        "two lists": lambda *inputs: tuple(
            map(list, zip(*search_by_argsort(*inputs), strict=True))
        ),
        "text": lambda *inputs: [(i, f"{c:.2f}") for i, c in search_by_argsort(*inputs)],
        "float for index": lambda *inputs: [(float(i), c) for i, c in search_by_argsort(*inputs)],
        **{
            f"{small} added to {norms}": search(score)
            for small in (1e-8, 1e-12)
            for norms, score in softened(small).items()
            if small > 1e-12 or norms == "the product"
        },
        "each document once": lambda query, documents, k=3: search_by_argsort(
            query, documents.unique(dim=0), k
        ),
        "triples": lambda *inputs: [(i, c, 0) for i, c in search_by_argsort(*inputs)],
    },
    "12-classify": {
        "-1 for none": classify_from_minus_1,
        "small norms made larger": classify(
            scale=lambda X: X / (X.norm(dim=1, keepdim=True) + 1e-6)
        ),
        "float64 whatever is given": classify(join=lambda own: torch.ones(len(own)).double() @ own),
        "examples as they are": classify(scale=lambda X: X),
        "scaled to unit sum": classify(scale=lambda X: X / X.abs().sum(1, keepdim=True)),
        "centred": classify(scale=lambda X: F.normalize(X - X.mean(0))),
        "first example": classify(join=lambda own: own[0]),
        "largest": classify(join=lambda own: own.amax(0)),
        "median": classify(join=lambda own: own.median(0).values),
        "dot product": classify(table=lambda vectors, means: vectors @ means.T),
        "sum, dot product": classify(
            join=lambda own: own.sum(0), table=lambda vectors, means: vectors @ means.T
        ),
        "distance": classify(table=lambda vectors, means: -torch.cdist(vectors, means)),
        "squared": classify(table=lambda vectors, means: (vectors @ F.normalize(means).T) ** 2),
        "worst": classify(
            table=lambda vectors, means: -F.normalize(vectors) @ F.normalize(means).T
        ),
        "by column": classify(
            table=lambda vectors, means: (vectors @ F.normalize(means).T).softmax(0)
        ),
        "a set": classify(end=set),
        "joined": classify(end=lambda found: " ".join(map(str, found))),
        "as text": classify(end=lambda found: [str(label) + " " for label in found]),
        "one too few": classify(end=lambda found: list(found)[1:]),
        "in reverse": classify(end=lambda found: list(found)[::-1]),
        "sorted labels": lambda vectors, examples, labels: classify_by_max(
            vectors, examples[sorted(range(len(labels)), key=lambda i: labels[i])], sorted(labels)
        ),
        "numbers": lambda vectors, examples, labels: [
            list(dict.fromkeys(labels)).index(label)
            for label in classify_by_max(vectors, examples, labels)
        ],
        "the first always": lambda vectors, examples, labels: [labels[0]] * len(vectors),
        "most frequent": lambda vectors, examples, labels: (
            [max(dict.fromkeys(labels), key=labels.count)] * len(vectors)
        ),
        "labels sorted in place": lambda vectors, examples, labels: (
            labels.sort() or classify_by_max(vectors, examples, labels)
        ),
        "0 taken for no label": classify_until_truthy,
        "blocks of equal length": classify_by_blocks,
        "nearest example": lambda vectors, examples, labels: [
            labels[int(i)] for i in (F.normalize(vectors) @ F.normalize(examples).T).argmax(1)
        ],
        "examples squeezed": classify_by_squeezed_examples,
    },
    "12-neighbours": NEIGHBOURS_WRONG,
    "12-training_step": STEP_WRONG,
}
