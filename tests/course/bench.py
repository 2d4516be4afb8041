"""Are the course's modules as fast and as small as they are to be? `make bench` prints one table.

Everyone gets the same weights (with biases) and the same input, self-attention in float32, no mask,
no active dropout, and must give the same output and gradient before anything is timed.

limit     one packed Linear for Q, K and V, fused attention, one Linear: as bare as it can be
again     the limit a second time: how far this differs from 1 is the noise of the run
packed    mha_course.packed.PackedMultiHeadAttention
plain     mha_course.multihead.MultiHeadAttention
d2l       d2l.torch.MultiHeadAttention
eval      torch.nn.MultiheadAttention in eval mode (its fast path, where no gradient is asked for)
train     the same module in training mode
sdpa      transformers' BertSelfAttention and the dense layer of BertSelfOutput; what else
          BertSelfOutput does (dropout, residual, LayerNorm) is left out, the others lack it
eager     the same with attention written out
+w        with the weights of each head returned; eager and d2l always make them

Forward runs without gradients. Backward asks for the gradients of the input and all parameters.
Times are medians over rounds; in each round everyone runs once, in a new random order.
On a machine where others work too, --cpu-time counts what one thread computes, not what it waits.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import time
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_course.interop import to_d2l, to_torch
from mha_course.multihead import MultiHeadAttention
from mha_course.packed import PackedMultiHeadAttention

SHAPES = [(8, 128, 768, 12), (2, 512, 768, 12), (1, 2048, 768, 12), (32, 16, 64, 4)]
MEMORY_SHAPE = (1, 2048, 768, 12)
NAMES = ["limit", "again", "packed", "plain", "sdpa", "eval", "train"]
NAMES_WITH_WEIGHTS = ["packed+w", "plain+w", "d2l", "eager", "eval+w", "train+w"]

# The targets, all of them. Time forward and with backward, as multiples of the limit's.
SMALL_WIDTH = 256  # a layer narrower than this is a small one
TIME_TARGETS = {
    ("packed", "large"): (1.03, 1.03),
    ("packed", "small"): (1.03, 1.03),
    ("plain", "large"): (1.08, 1.08),
    ("plain", "small"): (1.25, 1.10),
}
NOT_AHEAD = {  # by more than the noise
    "packed": ["sdpa", "eval", "train", "d2l", "eager"],
    "plain": ["train", "d2l", "eager"],
}
MEMORY_TARGET = 1.05  # the peak, as a multiple of the limit's
BERT_TARGET = 1.02  # bench_encode.py: the course's BERT, as a multiple of transformers' time

PROCESSES = 5  # one in five is off by a tenth, whoever it measures


class Limit(nn.Module):
    """Packed projections around fused attention, and nothing else."""

    def __init__(self, attention):
        super().__init__()
        num_hiddens, self.num_heads = attention.W_o.in_features, attention.num_heads
        parts = (attention.W_q, attention.W_k, attention.W_v)
        self.qkv = nn.Linear(num_hiddens, 3 * num_hiddens)
        self.out = nn.Linear(num_hiddens, num_hiddens)
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat([linear.weight for linear in parts]))
            self.qkv.bias.copy_(torch.cat([linear.bias for linear in parts]))
        self.out.load_state_dict(attention.W_o.state_dict())

    def forward(self, X):
        B, L, D = X.shape
        qkv = self.qkv(X).view(B, L, 3, self.num_heads, D // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, L, d) each
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, L, D))


class Bert(nn.Module):
    """Self-attention of transformers' BERT with its output projection."""

    def __init__(self, attention, implementation):
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertSelfAttention

        super().__init__()
        config = BertConfig(
            hidden_size=attention.W_o.in_features,
            num_attention_heads=attention.num_heads,
            attention_probs_dropout_prob=0.0,
            attn_implementation=implementation,
        )
        self.attention = BertSelfAttention(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.attention.query.load_state_dict(attention.W_q.state_dict())
        self.attention.key.load_state_dict(attention.W_k.state_dict())
        self.attention.value.load_state_dict(attention.W_v.state_dict())
        self.dense.load_state_dict(attention.W_o.state_dict())

    def forward(self, X):
        return self.dense(self.attention(X)[0])


def make(name, num_hiddens, num_heads):
    """Return what the table calls `name`, as a function of the input, and its parameters."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(*[num_hiddens] * 4, num_heads, bias=True)
    kind, _, weights = name.partition("+")
    if kind in ("limit", "again"):
        module = call = Limit(attention)
    elif kind in ("sdpa", "eager"):
        module = call = Bert(attention, kind)
    elif kind in ("eval", "train"):
        module = to_torch(attention).train(kind == "train")
        options = dict(need_weights=bool(weights), average_attn_weights=False)

        def call(X):
            return module(X, X, X, **options)[0]
    elif kind == "d2l":
        module = to_d2l(attention)

        def call(X):
            return module(X, X, X, None)
    elif kind == "packed":
        module = PackedMultiHeadAttention.from_plain(attention)

        def call(X):
            return module(X, need_weights=True)[0] if weights else module(X)
    else:
        module = attention

        def call(X):
            return module(X, X, X, need_weights=True)[0] if weights else module(X, X, X)

    return call, list(module.parameters())


def draw(shape):
    """The input, and the gradient that comes back to the output."""
    generator = torch.Generator().manual_seed(1)
    X, gradient = torch.randn(2, *shape[:3], generator=generator)
    return X.requires_grad_(), gradient.contiguous()


def forward(call, parameters, X, gradient):
    with torch.no_grad():
        return call(X)


def forward_backward(call, parameters, X, gradient):
    return torch.autograd.grad(call(X), [X, *parameters], gradient)[0]


PASSES = {"forward": forward, "with backward": forward_backward}


def check_equal(runs):
    """Everyone gives what the limit gives, to float32's precision."""
    expected = runs["limit"]()
    for name, run in runs.items():
        torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-5, msg=name)


def measure(runs, seconds, min_rounds, clock):
    """Seconds a call, (rounds, runs): everyone once a round, in random order."""
    single = min(timeit.repeat(runs["limit"], number=1, repeat=3))
    repeats = max(1, round(0.005 / single))  # short calls: several at once
    names, order, rounds = list(runs), list(runs), []
    shuffle = random.Random(0).shuffle
    end = time.perf_counter() + seconds
    while len(rounds) < min_rounds or time.perf_counter() < end:
        shuffle(order)
        times = {}
        for name in order:
            start = clock()
            for _ in range(repeats):
                runs[name]()
            times[name] = (clock() - start) / repeats
        rounds.append([times[name] for name in names])
    return np.array(rounds)


class Row:
    """One shape and pass: ratios of medians, and how far another run might find them."""

    def __init__(self, names, times):
        self.names = names
        self.medians = np.median(times, axis=0)
        again = np.random.default_rng(0).integers(len(times), size=(2000, len(times)))
        self.resampled = np.median(times[again], axis=1)  # (2000, names)

    def ratio(self, one, other="limit"):
        """The ratio, and the interval that holds 95 % of the resampled rounds' ratios."""
        i, j = self.names.index(one), self.names.index(other)
        spread = np.percentile(self.resampled[:, i] / self.resampled[:, j], [2.5, 97.5])
        return self.medians[i] / self.medians[j], *spread

    def noise(self):
        """How far the limit is from itself: the larger end of its interval."""
        _, low, high = self.ratio("again")
        return max(high - 1, 1 - low)

    def ahead(self, ours, peers):
        """Those of the peers that beat one of ours by more than the noise."""
        bound = 1 - self.noise()
        return [name for name in peers if self.ratio(name, ours)[2] < bound]


def verdict(row, ours, target):
    """Whether one of ours meets its targets; and, as no target, who is ahead with weights."""
    ratio, low, high = row.ratio(ours)
    words = "met" if ratio <= target else "within the noise" if low <= target else "NOT met"
    ahead = row.ahead(ours, NOT_AHEAD[ours])
    peers = f"AHEAD: {', '.join(ahead)}" if ahead else "no peer ahead"
    ahead = row.ahead(f"{ours}+w", NAMES_WITH_WEIGHTS[2:])
    note = f" (with weights: {', '.join(ahead)})" if ahead else ""
    return (
        f"{ours:6} {ratio:.2f} ({low:.2f}-{high:.2f}), target {target:.2f} {words}; {peers}{note}"
    )


def print_times(shapes, seconds, min_rounds, clock):
    names = NAMES + NAMES_WITH_WEIGHTS
    print("\nTime as a multiple of the limit's\n")
    print(f"{'shape':17} {'pass':13} {'rounds':>6} {'ms':>7}", *(f"{n:>9}" for n in names[1:]))
    verdicts = []
    for shape in shapes:
        made = {name: make(name, *shape[2:]) for name in names}
        tensors = draw(shape)
        size = "small" if shape[2] < SMALL_WIDTH else "large"
        for number, (title, one_pass) in enumerate(PASSES.items()):
            runs = {name: partial(one_pass, *made[name], *tensors) for name in names}
            check_equal(runs)
            times = measure(runs, seconds, min_rounds, clock)
            row = Row(names, times)
            cells = [f"{row.ratio(name)[0]:9.2f}" for name in names[1:]]
            head = f"{'x'.join(map(str, shape)):17} {title:13}"
            print(head, f"{len(times):6} {1e3 * row.medians[0]:7.2f}", *cells, flush=True)
            for ours in ("packed", "plain"):
                words = verdict(row, ours, TIME_TARGETS[ours, size][number])
                verdicts.append(f"{head} noise {row.noise():.2f}, {words}")
    print("\nThe course's (in brackets the middle 95 % of resampled rounds; at the end, without a")
    print("target, who is ahead where both make weights)\n", *verdicts, sep="\n")


def peak():
    """The largest resident memory this process had, in MB.

    Not `resource.getrusage`: there a child process starts from its parent's peak.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024 / 1e6


def report_memory(name):
    """Run both passes once and print the peaks; called in a process of its own."""
    made, tensors = make(name, *MEMORY_SHAPE[2:]), draw(MEMORY_SHAPE)
    peaks = [peak()]
    for one_pass in PASSES.values():
        one_pass(*made, *tensors)
        peaks.append(peak())
    print(json.dumps(peaks))


def _peaks_of(name):
    command = [sys.executable, __file__, "--memory-of", name]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_memory(names):
    if not Path("/proc/self/status").exists():
        return print("\nPeak resident memory: only measured on Linux")
    shape = "x".join(map(str, MEMORY_SHAPE))
    print(f"\nPeak resident memory at {shape}, medians of {PROCESSES} processes each, in MB\n")
    print(f"{'':9} {'before':>8}", *(f"{title:>14} {'/limit':>7}" for title in PASSES))
    limit, verdicts = None, []
    for name in names:
        before, *peaks = np.median([_peaks_of(name) for _ in range(PROCESSES)], axis=0)
        limit = limit or peaks
        cells = [f"{p:14.0f} {p / q:7.2f}" for p, q in zip(peaks, limit, strict=True)]
        print(f"{name:9} {before:8.0f}", *cells, flush=True)
        if name in ("packed", "plain"):
            ratio = max(p / q for p, q in zip(peaks, limit, strict=True))
            words = "met" if ratio <= MEMORY_TARGET else "NOT met"
            verdicts.append(f"{name} {ratio:.2f}, target {MEMORY_TARGET} {words}")
    print("", *verdicts, sep="\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, half a minute, rough")
    parser.add_argument(
        "--shape",
        action="append",
        type=lambda text: tuple(int(size) for size in text.split(",")),
        help="batch,tokens,width,heads; may be given again (default: the four of the docstring)",
    )
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of one thread")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        return report_memory(options.memory_of)
    clock = time.perf_counter
    if options.cpu_time:
        torch.set_num_threads(1)
        clock = time.thread_time
    print(__doc__)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print_times(options.shape or SHAPES, *((1, 3) if options.quick else (12, 5)), clock)
    print_memory(["limit", "packed", "plain"] if options.quick else NAMES[:1] + NAMES[2:] + ["d2l"])


if __name__ == "__main__":
    main()
