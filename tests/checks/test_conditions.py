"""Why the checks use strong inputs: without any one of these conditions known mistakes slip by."""

import itertools
import random

import pytest
import torch
from lessons import WEAK, all_draws

from mha_classroom.checks import find, tasks
from mha_classroom.checks.outcome import observe, same
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.running import quiet_state
from mha_classroom.checks.task import Case

DRAWS = all_draws()
DRAWN = 30
# What slips by if the inputs lack a strength, at the least. `pytest -s` prints the whole table.
SLIPS = {
    "batch 1": {"04-spread_valid_lens: lengths-repeated-as-a-whole"},
    "L = S": {"04-MultiHeadAttention: mask-as-long-as-queries"},
    "head count = head width": {"04-MultiHeadAttention: scaled-by-number-of-heads"},
    "no mask": {"04-MultiHeadAttention: mask-inverted", "04-MultiHeadAttention: lengths-ignored"},
    "all ones": {"04-transpose_qkv: split-without-transpose"},
}


def drawn(task, weak):
    """Give (a case, what the reference gives for it), as long as anybody asks."""
    rng = random.Random(7)
    for number in range(DRAWN):
        case = Case(f"draw {number}", DRAWS[task.id](rng, weak))
        yield case, observe(task, task.reference, case, watch=False)


def slips(task, mistake, draws):
    """Whether a mistake equals the right answer on every draw."""
    wrong = wrong_answer(task, mistake)
    return all(same(task, right, observe(task, wrong, case, watch=False)) for case, right in draws)


def plain(value):
    """The same in lists, which can be compared."""
    if isinstance(value, dict):
        return [(name, plain(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.tolist() if torch.is_tensor(value) else value


def weakens(task, weak):
    """Whether what is left out makes any difference to the inputs of a task."""
    one, other = (
        [plain(DRAWS[task.id](rng, lacking)) for _ in range(DRAWN)]
        for rng, lacking in ((random.Random(7), None), (random.Random(7), weak))
    )
    return weak is None or one != other


def escaped(weak, lesson=""):
    found = set()
    with quiet_state():
        for task in (find(task_id) for task_id in tasks() if task_id.startswith(lesson)):
            if not weakens(task, weak):
                continue  # as strong as ever, and tried as that
            draws = drawn(task, weak)
            for mistake in task.mistakes:
                draws, mine = itertools.tee(draws)
                if slips(task, mistake, mine):
                    found.add(f"{task.id}: {mistake.id}")
    return found


# What no random draw shows: 7 digits where scores are near 300000, a dtype, a default that no call
# gives, a name inside another, a label that is 0, scores far below 0, lengths that are all 0, keys
# on one line, a view. A case of the task is made for each of these; that it is found there is what
# test_mistakes holds.
ONLY_BY_ITS_OWN_CASE = {
    "01-additive_scores: tanh-of-powers",
    "01-attend: in-float32",
    "01-attention: scores-of-0-hidden",
    "01-kernel_regression: in-float32",
    "01-kernel_regression: nearest-only-far-away",
    "01-kernel_regression: shifted-only-where-all-round-to-0",
    "01-kernel_regression: squares-multiplied-out",
    "01-looking_matrices: weak-with-many-kinds",
    "01-query_for: constant-only-with-more-keys",
    "01-query_for: equal-keys-merged",
    "01-query_for: equations-solved-as-independent",
    "01-query_for: equations-taken-for-independent",
    "01-query_for: small-differences-ignored",
    "02-masked_softmax: fill-of-minus-1000",
    "02-masked_softmax: fill-of-minus-1000-then-zeros",
    "02-masked_softmax: length-0-for-none",
    "02-masked_softmax: lowered-by-1000",
    "02-masked_softmax: score-of-0-hidden",
    "02-packed_mask: numbers-overflow",
    "02-scaled_dot_product_attention: length-0-for-none",
    "02-without_key: divisor-kept-from-getting-small",
    "02-without_key: nearly-alone-for-alone",
    "02-without_key: output-0-for-nothing",
    "03-remove_heads: in-the-order-of-a-set",
    "03-remove_heads: zero-heads-removed-too",
    "03-strongest_head: small-differences-lost",
    "04-MultiHeadAttention: bias-by-default",
    "04-MultiHeadAttention: dropout-by-default",
    "04-MultiHeadAttention: dropout-on-the-projections",
    "04-MultiHeadAttention: dropout-on-the-weighted-sums",
    "04-MultiHeadAttention: dropped-and-made-to-sum-to-1",
    "04-MultiHeadAttention: dropped-and-not-scaled-up",
    "04-MultiHeadAttention: lengths-of-0-taken-for-none",
    "04-MultiHeadAttention: lengths-remembered",
    "04-MultiHeadAttention: residual-added-where-it-fits",
    "04-repack: strides-of-a-contiguous-tensor",
    "04-split_packed: floats-whatever-X-holds",
    "04-split_packed: strides-of-a-contiguous-tensor",
    "04-transpose_output: floats-whatever-X-holds",
    "04-transpose_output: strides-of-a-contiguous-tensor",
    "04-transpose_qkv: floats-whatever-X-holds",
    "04-transpose_qkv: strides-of-a-contiguous-tensor",
    "05-attention_flops: int32",
    "05-cache_bytes: float32",
    "05-cache_bytes: int32",
    "05-count_attention: float32",
    "05-count_bert: float32",
    "05-count_block: float32",
    "05-count_grouped_attention: float32",
    "05-count_grouped_attention: heads-share-the-width-without-groups",
    "05-length_for_share: near-misses-let-through",
    "05-length_for_share: starts-at-two",
    "05-longest_text: at-least-one-if-the-parameters-fit",
    "05-longest_text: floats",
    "05-longest_text: negative-cut-towards-0",
    "05-longest_text: parameters-tested-without-bytes-cut",
    "05-longest_text: sign-turned-before-rounding",
    "06-BertFeedForward: variance-by-difference",
    "06-BertLayer: dropout-on-heads",
    "06-BertLayer: found-dropped",
    "06-BertLayer: found-dropped-too",
    "06-BertSelfAttention: mask-clamped",
    "06-BertSelfAttention: mask-clamped-far-below",
    "06-BertSelfAttention: scores-clamped",
    "06-BertSelfOutput: variance-by-difference",
    "06-PreNormLayer: dropout-elsewhere-too",
    "06-PreNormLayer: dropout-twice",
    "06-from_tensorflow: bert-anywhere",
    "06-from_tensorflow: bert-without-slash",
    "06-from_tensorflow: prefix-anywhere",
    "06-map_weights: names-with-prefix-missed-behind-others",
    "06-map_weights: prefix-replaced-everywhere",
    "06-map_weights: prefix-replaced-where-known",
    "06-map_weights: prefix-split-off",
    "07-entropy: too-small-for-float32",
    "07-find_head: in-half-precision",
    "07-find_head: none-where-scores-are-low",
    "07-steady_head: largest-product",
    "07-steady_head: nearly-enough",
    "07-steady_head: running-mean",
    "08-choose_heads: nothing-of-none-stays",
    "08-head_importance: one-head-of-0",
    "08-mask_heads: heads-removed",
    "08-mask_heads: one-mask-if-as-long",
    "08-smallest_enough: rounded",
    "09-causal_tiles: hidden-scores-finite",
    "09-causal_tiles: largest-before-hiding",
    "09-causal_tiles: nothing-subtracted",
    "09-causal_tiles: one-largest-for-all-queries",
    "09-causal_tiles: starts-at-a-number",
    "09-group_heads: strides-of-a-contiguous-tensor",
    "09-grouped_attention: exp-too-large",
    "09-log_sum_exp: stand-in-kept",
    "09-ring_step: exp-too-small",
    "09-ring_step: largest-of-all-slots",
    "09-ring_step: slot-score-finite",
    "10-bahdanau_step: divided-again",
    "10-beam_step: log-of-softmax",
    "10-beam_step: logarithm-at-the-end",
    "10-beam_step: one-largest-for-several-beams",
    "10-shift_positions: angles-in-float32",
    "11-broken_promises: padding-set-to-0",
    "11-mended_step: float64-only",
    "11-mended_step: hidden-scores-not-low-enough",
    "11-mended_step: logarithm-of-large-scores",
    "11-mended_weights: float64-only",
    "11-mended_weights: hidden-scores-not-low-enough",
    "11-my_test: as-many-heads-as-features",
    "11-my_test: inputs-not-looked-at",
    "11-my_test: one-tensor",
    "12-classify: label-0-taken-for-nothing",
    "12-classify: norms-made-larger",
    "12-load_weights: names-within-names",
    "12-load_weights: names-within-names-copied",
    "12-mean_pool: zeros-not-counted",
    "12-search: norms-made-larger",
}


def test_with_every_strength_no_known_mistake_slips_by():
    assert escaped(None) == ONLY_BY_ITS_OWN_CASE


@pytest.mark.parametrize("weak", WEAK)
@pytest.mark.parametrize(
    "lesson", ["04", pytest.param("", marks=pytest.mark.prove, id="every lesson")]
)
def test_without_one_of_them_some_slip_by(weak, lesson, record_property):
    found = escaped(weak, lesson)
    print(f"\n{weak}: {len(found)} slip by\n  " + "\n  ".join(sorted(found)))
    record_property(f"known mistakes that slip by with {weak}", len(found))
    assert found
    assert SLIPS.get(weak, set()) <= found
