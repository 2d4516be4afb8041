"""Is `MultiHeadAttention` as fast and as small as it can be? `make bench` prints one table.

Everyone gets the same weights (with biases) and the same input, self-attention in float32, no mask,
no active dropout, and must give the same output and gradient before anything is timed.

limit     one packed Linear for Q, K and V, fused attention, one Linear: as bare as it can be
again     the limit a second time: how far this differs from 1 is the noise of the run
package   mha_course.multihead.MultiHeadAttention
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

SHAPES = [(8, 128, 768, 12), (2, 512, 768, 12), (1, 2048, 768, 12), (32, 16, 64, 4)]
MEMORY_SHAPE = (1, 2048, 768, 12)
NAMES = ["limit", "again", "package", "sdpa", "eval", "train"]
NAMES_WITH_WEIGHTS = ["package+w", "d2l", "eager", "eval+w", "train+w"]
TIME_TARGET, SMALL_TIME_TARGET, MEMORY_TARGET = 1.05, 1.15, 1.05
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
    plain, _, weights = name.partition("+")
    if plain in ("limit", "again"):
        module = call = Limit(attention)
    elif plain in ("sdpa", "eager"):
        module = call = Bert(attention, plain)
    elif plain in ("eval", "train"):
        module = to_torch(attention).train(plain == "train")
        options = dict(need_weights=bool(weights), average_attn_weights=False)

        def call(X):
            return module(X, X, X, **options)[0]
    elif plain == "d2l":
        module = to_d2l(attention)

        def call(X):
            return module(X, X, X, None)
    elif weights:
        module = attention

        def call(X):
            return module(X, X, X, need_weights=True)[0]
    else:
        module = attention

        def call(X):
            return module(X, X, X)

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

    def ahead(self):
        """Peers that beat the package at the same work by more than the noise."""
        peers = [(name, "package") for name in NAMES[3:]]
        peers += [(name, "package+w") for name in NAMES_WITH_WEIGHTS[1:]]
        return [name for name, ours in peers if self.ratio(name, ours)[2] < 1 - self.noise()]


def verdict(row, target):
    ratio, low, high = row.ratio("package")
    words = "met" if ratio <= target else "within the noise" if low <= target else "NOT met"
    text = f"{ratio:.2f} ({low:.2f}-{high:.2f}), target {target:.2f} {words}"
    ahead = row.ahead()
    return text + (f"; AHEAD: {', '.join(ahead)}" if ahead else "; no peer ahead")


def print_times(shapes, seconds, min_rounds, clock):
    names = NAMES + NAMES_WITH_WEIGHTS
    print("\nTime as a multiple of the limit's\n")
    print(f"{'shape':17} {'pass':13} {'rounds':>6} {'ms':>7}", *(f"{n:>9}" for n in names[1:]))
    verdicts = []
    for shape in shapes:
        made = {name: make(name, *shape[2:]) for name in names}
        tensors = draw(shape)
        for title, one_pass in PASSES.items():
            runs = {name: partial(one_pass, *made[name], *tensors) for name in names}
            check_equal(runs)
            times = measure(runs, seconds, min_rounds, clock)
            row = Row(names, times)
            cells = [f"{row.ratio(name)[0]:9.2f}" for name in names[1:]]
            head = f"{'x'.join(map(str, shape)):17} {title:13}"
            print(head, f"{len(times):6} {1e3 * row.medians[0]:7.2f}", *cells, flush=True)
            target = SMALL_TIME_TARGET if shape[2] < 256 else TIME_TARGET
            verdicts.append(f"{head} noise {row.noise():.2f}, package {verdict(row, target)}")
    print("\nThe package (in brackets the middle 95 % of resampled rounds)\n", *verdicts, sep="\n")


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
    limit = None
    for name in names:
        before, *peaks = np.median([_peaks_of(name) for _ in range(PROCESSES)], axis=0)
        limit = limit or peaks
        cells = [f"{p:14.0f} {p / q:7.2f}" for p, q in zip(peaks, limit, strict=True)]
        print(f"{name:9} {before:8.0f}", *cells, flush=True)
        if name == "package":
            ratio = max(p / q for p, q in zip(peaks, limit, strict=True))
    words = "met" if ratio <= MEMORY_TARGET else "NOT met"
    print(f"\npackage {ratio:.2f}, target {MEMORY_TARGET} {words}")


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
    print_memory(["limit", "package"] if options.quick else NAMES[:1] + NAMES[2:] + ["d2l"])


if __name__ == "__main__":
    main()
