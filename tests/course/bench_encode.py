"""Is the course's BERT as fast as transformers'? A part of `make bench`.

Both have the weights of the embedded model and get the same sentences of unequal length, already
tokenized, in float32, without gradients, and must give the same hidden states before anything is
timed. Times are medians over rounds; in each round everyone runs once, in a new random order.

sdpa      transformers' BertModel with fused attention: what the others are a multiple of
again     the same a second time: how far this differs from 1 is the noise of the run
package   mha_course.bert.BertModel
eager     transformers' BertModel with attention written out
"""

import argparse
import dataclasses
import time
from functools import partial

import torch
from bench import BERT_TARGET, Row, measure

from mha_course.pretrained import load_pretrained

BATCHES = (1, 8, 32)
NAMES = ["sdpa", "again", "package", "eager"]
SENTENCES = (
    "The cat sat on the mat.",
    "A bus came late this morning, and nobody on the pavement was surprised.",
    "Rain is expected in the north.",
    "She wrote three letters before breakfast and posted none of them.",
    "Who left the window open?",
    "The recipe asks for two eggs, a spoon of honey, some flour and a good deal of patience.",
    "Trains to the coast run every half hour, except on Sundays.",
    "He laughed.",
)


def make(name, model):
    """What the table calls `name`, as a function of a batch that returns the hidden states."""
    if name == "package":
        return lambda batch: model(**batch).last_hidden_state
    from transformers import BertConfig, BertModel

    kind = "eager" if name == "eager" else "sdpa"
    config = BertConfig(**dataclasses.asdict(model.config), attn_implementation=kind)
    reference = BertModel(config).eval()
    load_reference(reference, model)
    return lambda batch: reference(**batch).last_hidden_state


def load_reference(reference, model):
    """Give transformers' model the weights of the course's."""
    from mha_course.interop import map_weights

    ours = model.state_dict()
    names = dict(zip(map_weights(reference.state_dict()), reference.state_dict(), strict=True))
    reference.load_state_dict({theirs: ours[name] for name, theirs in names.items()})


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, rough")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of one thread")
    options = parser.parse_args()
    seconds, min_rounds = (2, 5) if options.quick else (15, 9)
    clock = time.perf_counter
    if options.cpu_time:
        torch.set_num_threads(1)
        clock = time.thread_time
    print(__doc__)
    model, tokenizer = load_pretrained()
    calls = {name: make(name, model) for name in NAMES}
    print(f"{'sentences x tokens':20} {'rounds':>6} {'ms':>7}", *(f"{n:>9}" for n in NAMES[1:]))
    for size in BATCHES:
        batch = tokenizer([SENTENCES[(i + 1) % len(SENTENCES)] for i in range(size)])
        runs = {name: partial(call, batch) for name, call in calls.items()}
        words = batch["attention_mask"].bool()
        for name, run in runs.items():
            torch.testing.assert_close(
                run()[words], runs["sdpa"]()[words], rtol=0, atol=1e-5, msg=name
            )
        runs["limit"] = runs["sdpa"]  # what `measure` sets the length of a round by
        times = measure(runs, seconds, min_rounds, clock)
        row = Row(list(runs), times)
        cells = [f"{row.ratio(name, 'sdpa')[0]:9.2f}" for name in NAMES[1:]]
        head = f"{size} x {batch['input_ids'].shape[1]}"
        print(f"{head:20} {len(times):6} {1e3 * row.medians[0]:7.2f}", *cells, flush=True)
        ratio, low, high = row.ratio("package", "sdpa")
        met, perhaps = ratio <= BERT_TARGET, low <= BERT_TARGET
        words = "met" if met else "within the noise" if perhaps else "NOT met"
        print(f"  package {ratio:.2f} ({low:.2f}-{high:.2f}), target {BERT_TARGET:.2f} {words}")


if __name__ == "__main__":
    main()
