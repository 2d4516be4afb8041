"""`mha_course.bert` held to transformers' BertModel, stage by stage, and to bad input."""

import copy
import dataclasses

import pytest
import torch
from torch.nn import functional as F

from mha_course.attention import scaled_dot_product_attention
from mha_course.bert import (
    ACTIVATIONS,
    BertConfig,
    BertEmbeddings,
    BertEncoder,
    BertFeedForward,
    BertLayer,
    BertModel,
    BertSelfAttention,
    BertSelfOutput,
    additive_mask,
)
from mha_course.counting import count_bert
from mha_course.interop import map_weights
from mha_course.multihead import MultiHeadAttention

# (layers, heads, width of a head, feed-forward, activation, segments): sizes that nobody uses.
ODD_SIZES = [
    (1, 1, 13, 7, "gelu", 2),
    (2, 3, 5, 11, "gelu", 3),
    (3, 5, 7, 17, "relu", 2),
    (2, 7, 3, 23, "gelu_new", 2),
    (5, 2, 11, 13, "silu", 1),
]
TINY = BertConfig(
    vocab_size=31,
    hidden_size=15,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=11,
    max_position_embeddings=17,
    type_vocab_size=2,
)


def test_a_config_has_the_function_that_its_activation_is_called_by():
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    for name, function in {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}.items():
        config = dataclasses.replace(TINY, hidden_act=name)
        assert torch.equal(config.activation(x), function(x))
        assert torch.equal(BertFeedForward(config).activation(x), function(x))


def random_config(layers, heads, head_width, wide, activation, segments):
    return BertConfig(
        vocab_size=37,
        hidden_size=heads * head_width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=wide,
        hidden_act=activation,
        max_position_embeddings=19,
        type_vocab_size=segments,
        initializer_range=0.2,
    )


def pair_of_models(config, dtype):
    """A transformers BertModel with random weights, LayerNorm's too, and the course's with them."""
    import transformers

    reference = transformers.BertModel(
        transformers.BertConfig(**dataclasses.asdict(config), attn_implementation="eager")
    ).to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in reference.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=dtype)
            parameter.add_(0.1 * noise)
    model = BertModel(config).to(dtype)
    model.load_state_dict(map_weights(reference.state_dict()))
    return model.eval(), reference.eval()


def random_batch(config, batch=3, length=13, seed=0):
    """Padded on the right, two segments where there are two, every sequence of its own length."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, config.vocab_size, (batch, length), generator=generator)
    lengths = torch.tensor([length, 2, 7, 5][:batch])
    attention_mask = (torch.arange(length) < lengths[:, None]).long()
    segments = (torch.arange(length) >= lengths[:, None] // 2).long() % config.type_vocab_size
    return {"input_ids": ids, "attention_mask": attention_mask, "token_type_ids": segments}


def stages(model, names, batch, **options):
    """What each named module returns in one run, and the run's result."""
    seen, handles = {}, []

    def keep(name):
        def hook(module, arguments, output):
            seen[name] = output[0] if isinstance(output, tuple) else output

        return hook

    for name, path in names.items():
        handles.append(model.get_submodule(path).register_forward_hook(keep(name)))
    try:
        with torch.no_grad():
            output = model(**batch, **options)
    finally:
        for handle in handles:
            handle.remove()
    return seen, output


def stage_names(config):
    """Each stage in the order of computation: its name, its module here, its module there."""
    rows = [("the embeddings", "embeddings", "embeddings")]
    for i in range(config.num_hidden_layers):
        ours, theirs = f"encoder.layers.{i}", f"encoder.layer.{i}"
        rows += [
            (f"layer {i}, self-attention", f"{ours}.self_attention", f"{theirs}.attention.self"),
            (f"layer {i}, self-output", f"{ours}.self_output", f"{theirs}.attention.output"),
            (f"layer {i}, feed-forward", f"{ours}.feed_forward", f"{theirs}.output"),
        ]
    return [*rows, ("the pooler", "pooler", "pooler")]


def first_difference(model, reference, batch, tolerance, words=...):
    """The first stage in which two BERTs differ, as text, or None; `words` (B, L): looked at."""
    rows = stage_names(model.config)
    ours, our_output = stages(
        model, {r[0]: r[1] for r in rows}, batch, need_weights=True, need_hidden_states=True
    )
    theirs, their_output = stages(
        reference,
        {r[0]: r[2] for r in rows},
        batch,
        output_attentions=True,
        output_hidden_states=True,
    )
    for i, pair in enumerate(zip(our_output.attentions, their_output.attentions, strict=True)):
        ours[f"layer {i}, weights"], theirs[f"layer {i}, weights"] = pair
    for i, pair in enumerate(
        zip(our_output.hidden_states, their_output.hidden_states, strict=True)
    ):
        ours[f"hidden state {i}"], theirs[f"hidden state {i}"] = pair
    order = [row[0] for row in rows]
    order += [name for name in ours if name not in order]
    for name in order:
        if ours[name].shape != theirs[name].shape:
            return f"{name}: {tuple(ours[name].shape)} here, {tuple(theirs[name].shape)} there"
        difference = (ours[name] - theirs[name]).abs()
        if difference.dim() > 2:  # (B, L, D), or (B, H, L, L), whose rows are words too
            difference = difference.transpose(1, -2)[words]
        difference = difference.max().item()
        if not difference <= tolerance:
            return f"{name}: differs by {difference:.1e}, allowed {tolerance:.0e}"
    return None


@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_every_stage_equals_transformers_at_odd_sizes(sizes, dtype, tolerance):
    config = random_config(*sizes)
    torch.manual_seed(0)
    model, reference = pair_of_models(config, dtype)
    for batch in (random_batch(config), {"input_ids": random_batch(config, seed=1)["input_ids"]}):
        assert first_difference(model, reference, batch, tolerance) is None


@pytest.fixture(scope="module")
def real_models(pretrained):
    """The embedded model in float64, the course's and transformers'."""
    import transformers

    model, _ = pretrained
    config = transformers.BertConfig(
        **dataclasses.asdict(model.config), attn_implementation="eager"
    )
    reference = transformers.BertModel(config).double().eval()
    ours = model.state_dict()
    names = dict(zip(map_weights(reference.state_dict()), reference.state_dict(), strict=True))
    reference.load_state_dict({theirs: ours[name] for name, theirs in names.items()})
    return copy.deepcopy(model).double(), reference


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_every_stage_of_the_real_model_equals_transformers(
    real_models, pretrained, dtype, tolerance
):
    _, tokenizer = pretrained
    model, reference = (copy.deepcopy(one).to(dtype) for one in real_models)
    short = [
        "The cat sat.",
        "",
        "A bus came late, and nobody on the pavement was surprised \U0001f600",
    ]
    for batch in (tokenizer(short), tokenizer(short, ["It purred.", "我喜欢你", "Why?"])):
        words = batch["attention_mask"].bool()
        assert not words.all()
        if dtype == torch.float64:
            words[:] = True  # in float32 transformers itself is 7e-5 off at the padding
        assert first_difference(model, reference, batch, tolerance, words) is None
        with torch.no_grad():
            fused = model(**batch).last_hidden_state
            plain = reference(**batch).last_hidden_state
        torch.testing.assert_close(fused[words], plain[words], rtol=0, atol=tolerance)


def test_the_fused_path_equals_the_one_that_returns_weights():
    config = random_config(*ODD_SIZES[1])
    model, _ = pair_of_models(config, torch.float64)
    batch = random_batch(config)
    with torch.no_grad():
        fused, plain = model(**batch), model(**batch, need_weights=True)
    torch.testing.assert_close(fused.last_hidden_state, plain.last_hidden_state)
    torch.testing.assert_close(fused.pooler_output, plain.pooler_output)
    assert fused.attentions is None and fused.hidden_states is None
    assert len(plain.attentions) == config.num_hidden_layers


@pytest.mark.parametrize(
    ("parameter", "stage"),
    [
        ("embeddings.segments.weight", "the embeddings"),
        ("encoder.layers.0.self_attention.W_k.weight", "layer 0, self-attention"),
        ("encoder.layers.1.self_output.W_o.bias", "layer 1, self-output"),
        ("encoder.layers.1.feed_forward.norm.weight", "layer 1, feed-forward"),
        ("pooler.dense.bias", "the pooler"),
    ],
)
def test_a_wrong_weight_is_reported_by_its_stage(parameter, stage):
    config = random_config(*ODD_SIZES[1])
    model, reference = pair_of_models(config, torch.float64)
    with torch.no_grad():
        weight = model.get_parameter(parameter)
        weight.add_(torch.linspace(0.1, 0.4, weight.numel(), dtype=torch.float64).view_as(weight))
    report = first_difference(model, reference, random_batch(config), 1e-10)
    assert report.startswith(f"{stage}: differs by"), report


def test_the_key_bias_alone_changes_nothing():
    # It adds the same number to all scores of a query, which softmax does not see.
    config = random_config(*ODD_SIZES[1])
    model, reference = pair_of_models(config, torch.float64)
    with torch.no_grad():
        model.get_parameter("encoder.layers.0.self_attention.W_k.bias").add_(1.0)
    assert first_difference(model, reference, random_batch(config), 1e-10) is None


def test_self_attention_is_lesson_04s_module_without_its_output_projection():
    config = random_config(*ODD_SIZES[2])
    torch.manual_seed(0)
    ours = BertSelfAttention(config).double()
    D = config.hidden_size
    lesson_04 = MultiHeadAttention(D, D, D, D, config.num_attention_heads, bias=True).double()
    for name in ("W_q", "W_k", "W_v"):
        getattr(lesson_04, name).load_state_dict(getattr(ours, name).state_dict())
    with torch.no_grad():
        lesson_04.W_o.weight.copy_(torch.eye(D))
        lesson_04.W_o.bias.zero_()
    X = torch.randn(2, 11, D, dtype=torch.float64)
    attention_mask = (torch.arange(11) < torch.tensor([[11], [3]])).long()
    ours.eval(), lesson_04.eval()
    mask = additive_mask(attention_mask, torch.float64)
    for options in ({}, {"need_weights": True}):
        got = ours(X, mask, **options)
        wanted = lesson_04(X, X, X, mask=attention_mask.bool()[:, None, :], **options)
        torch.testing.assert_close(got, wanted)


def test_self_attention_by_hand():
    # Scores of width 4 and one head, all projections the identity: softmax(X X^T / 2) X.
    attention = BertSelfAttention(
        dataclasses.replace(TINY, hidden_size=4, num_attention_heads=1, intermediate_size=3)
    ).double()
    with torch.no_grad():
        for linear in (attention.W_q, attention.W_k, attention.W_v):
            linear.weight.copy_(torch.eye(4))
            linear.bias.zero_()
    X = torch.tensor([[[2.0, 0, 0, 0], [0, 2.0, 0, 0]]], dtype=torch.float64)
    output, weights = attention.eval()(X, need_weights=True)
    high = 1 / (1 + torch.exp(torch.tensor(-2.0, dtype=torch.float64)))  # 4 / 2 against 0
    torch.testing.assert_close(weights[0, 0, 0], torch.stack([high, 1 - high]))
    torch.testing.assert_close(output[0, 0, 0], 2 * high)


def test_padding_changes_no_word():
    config = random_config(*ODD_SIZES[1])
    model, _ = pair_of_models(config, torch.float64)
    batch = random_batch(config)
    alone = {name: ids[2:3, :7] for name, ids in batch.items()}
    with torch.no_grad():
        padded, short = model(**batch).last_hidden_state, model(**alone).last_hidden_state
    torch.testing.assert_close(padded[2:3, :7], short)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_head_mask_zeroes_the_heads_slice_before_the_output_projection(need_weights):
    config = random_config(*ODD_SIZES[2])
    model, _ = pair_of_models(config, torch.float64)
    batch = random_batch(config)
    head_mask = torch.ones(config.num_hidden_layers, config.num_attention_heads).double()
    head_mask[1, 3], head_mask[2, 0] = 0, 0.25
    width = config.hidden_size // config.num_attention_heads

    def scale(layer, head, factor):
        def hook(module, arguments):
            X = arguments[0].clone()
            X[..., head * width : (head + 1) * width] *= factor
            return (X, *arguments[1:])

        layer = model.encoder.layers[layer]
        return layer.self_output.register_forward_pre_hook(hook)

    with torch.no_grad():
        masked = model(**batch, head_mask=head_mask, need_weights=need_weights)
        untouched = model(**batch)
        handles = [scale(1, 3, 0), scale(2, 0, 0.25)]
        by_hand = model(**batch)
        for handle in handles:
            handle.remove()
        ones = model(**batch, head_mask=torch.ones_like(head_mask))
    torch.testing.assert_close(masked.last_hidden_state, by_hand.last_hidden_state)
    torch.testing.assert_close(ones.last_hidden_state, untouched.last_hidden_state)
    assert (masked.last_hidden_state - untouched.last_hidden_state).abs().max() > 1e-3


def test_gradients_reach_every_parameter_and_the_head_mask():
    torch.manual_seed(0)
    model = BertModel(TINY).double()
    head_mask = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    output = model(**random_batch(TINY), head_mask=head_mask)
    (output.last_hidden_state.square().sum() + output.pooler_output.sum()).backward()
    lacking = [name for name, p in model.named_parameters() if p.grad is None]
    assert not lacking and (head_mask.grad != 0).all()


def test_dropout_acts_while_training_only():
    torch.manual_seed(0)
    model = BertModel(TINY)
    batch = random_batch(TINY)
    with torch.no_grad():
        assert not torch.equal(model(**batch)[0], model(**batch)[0])
        model.eval()
        assert torch.equal(model(**batch)[0], model(**batch)[0])
    # Weights are returned as they are before dropout: rows sum to 1 while training, too.
    weights = model.train()(**batch, need_weights=True).attentions[0]
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


def test_new_weights_have_the_spread_that_the_config_asks_for():
    torch.manual_seed(0)
    config = dataclasses.replace(TINY, vocab_size=997, hidden_size=96, initializer_range=0.3)
    model = BertModel(config)
    assert model.embeddings.words.weight[0].abs().max() == 0  # padding
    assert abs(model.embeddings.words.weight[1:].std().item() - 0.3) < 0.01
    assert model.encoder.layers[0].self_attention.W_q.bias.abs().max() == 0


@pytest.mark.parametrize(
    ("sizes", "total"),
    [((768, 12, 12, 3072), 109_482_240), ((1024, 24, 16, 4096), 335_141_888)],
)
def test_published_sizes_have_the_published_number_of_parameters(sizes, total):
    width, layers, heads, wide = sizes
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=wide,
    )
    with torch.device("meta"):
        model = BertModel(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == total
    assert count_bert(config.vocab_size, width, layers, wide) == total
    attention = [
        p.numel()
        for name, p in model.named_parameters()
        if "self_attention" in name or "self_output.W_o" in name
    ]
    if width == 768:
        assert sum(attention) == 28_348_416 and round(100 * sum(attention) / total, 1) == 25.9


# The mask


def test_the_additive_mask_is_the_boolean_one_in_another_form():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 5, generator=generator).double() for n in (7, 11, 11))
    attention_mask = (torch.arange(11) < torch.tensor([[11], [4]])).long()
    mask = additive_mask(attention_mask, torch.float64)
    assert mask.shape == (2, 1, 1, 11)
    got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    wanted, _ = scaled_dot_product_attention(q, k, v, mask=attention_mask.bool()[:, None, None, :])
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_additive_mask_is_finite_in_every_dtype(dtype):
    mask = additive_mask(torch.tensor([[1, 0]]), dtype)
    assert mask.dtype == dtype and mask.isfinite().all()
    assert mask.flatten().tolist() == [0, torch.finfo(dtype).min]
    assert torch.equal(additive_mask(torch.tensor([[True, False]]), dtype), mask)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([[1, 0]],), TypeError, "got list"),
        ((torch.ones(3),), ValueError, r"\(3,\)"),
        ((torch.ones(2, 1, 1, 3),), ValueError, r"\(2, 1, 1, 3\)"),
        ((torch.tensor([[1, 2]]),), ValueError, "got 2"),
        ((torch.tensor([[1.0, -1e9]]),), ValueError, "got -1000000000.0"),
        ((torch.ones(2, 3), torch.int64), TypeError, "torch.int64"),
    ],
)
def test_additive_mask_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        additive_mask(*arguments)


# The config


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"num_attention_heads": 4}, ValueError, "num_hiddens=15.*num_heads=4"),
        ({"hidden_size": 0}, ValueError, "hidden_size must be positive, got 0"),
        ({"hidden_size": 15.0}, TypeError, "hidden_size must be an integer, got 15.0"),
        ({"vocab_size": True}, TypeError, "vocab_size must be an integer, got True"),
        ({"num_hidden_layers": -1}, ValueError, "num_hidden_layers must be positive, got -1"),
        ({"hidden_act": "swish2"}, ValueError, "one of gelu, gelu_new, relu, silu; got 'swish2'"),
        ({"hidden_act": None}, ValueError, "got None"),
        ({"hidden_dropout_prob": 1.5}, ValueError, "0..1, got 1.5"),
        ({"attention_probs_dropout_prob": "0.1"}, TypeError, "got '0.1'"),
        ({"layer_norm_eps": -1e-12}, ValueError, "layer_norm_eps must lie in 0..inf"),
        ({"pad_token_id": 31}, ValueError, "pad_token_id=31 is not in a vocabulary of 31"),
        ({"pad_token_id": -1}, ValueError, "pad_token_id must be positive"),
    ],
)
def test_config_refuses(changes, error, words):
    with pytest.raises(error, match=words):
        dataclasses.replace(TINY, **changes)


def test_config_reads_what_transformers_writes():
    import transformers

    content = transformers.BertConfig(**dataclasses.asdict(TINY)).to_dict()
    assert BertConfig.from_dict(content) == TINY
    assert BertConfig.from_dict(dataclasses.asdict(TINY)) == TINY


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"model_type": "roberta"}, ValueError, "model_type is 'roberta'"),
        ({"position_embedding_type": "relative_key"}, ValueError, "relative_key.*'absolute'"),
        ({"is_decoder": True}, ValueError, "is_decoder is True"),
        ({"add_cross_attention": True}, ValueError, "add_cross_attention is True"),
        ({"vocab_size": "31"}, TypeError, "vocab_size must be an integer, got '31'"),
    ],
)
def test_config_refuses_other_models(changes, error, words):
    with pytest.raises(error, match=words):
        BertConfig.from_dict(dataclasses.asdict(TINY) | changes)


def test_config_names_what_a_file_does_not_say():
    with pytest.raises(ValueError, match="does not say hidden_size, num_attention_heads"):
        content = dataclasses.asdict(TINY)
        del content["hidden_size"], content["num_attention_heads"]
        BertConfig.from_dict(content)
    with pytest.raises(TypeError, match="got list"):
        BertConfig.from_dict([])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_the_one_that_transformers_means(name):
    from transformers.activations import ACT2FN

    X = torch.linspace(-5, 5, 31, dtype=torch.float64)
    torch.testing.assert_close(ACTIVATIONS[name](X), ACT2FN[name](X))


# Bad input


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        ({"input_ids": [[1, 2]]}, TypeError, "input_ids must be an integer tensor.*list"),
        ({"input_ids": torch.ones(2, 3)}, TypeError, "input_ids.*float32"),
        ({"input_ids": torch.ones(3, dtype=int)}, ValueError, r"\(3,\)"),
        ({"input_ids": torch.ones(2, 0, dtype=int)}, ValueError, r"\(2, 0\)"),
        ({"input_ids": torch.full((1, 2), 31)}, ValueError, "0..30, got 31"),
        ({"input_ids": torch.full((1, 2), -1)}, ValueError, "0..30, got -1"),
        ({"input_ids": torch.ones(1, 18, dtype=int)}, ValueError, "reads 17 tokens, got 18"),
        ({"attention_mask": torch.ones(2, 4)}, ValueError, r"attention_mask.*\(2, 3\).*\(2, 4\)"),
        ({"attention_mask": torch.full((2, 3), 7)}, ValueError, "0 and 1, got 7"),
        ({"token_type_ids": torch.ones(1, 3, dtype=int)}, ValueError, r"\(2, 3\).*\(1, 3\)"),
        ({"token_type_ids": torch.full((2, 3), 2)}, ValueError, "0..1, got 2"),
        ({"token_type_ids": torch.ones(2, 3)}, TypeError, "token_type_ids.*float32"),
        ({"head_mask": torch.ones(3)}, ValueError, r"\(2, 3\), got \(3,\)"),
        ({"head_mask": torch.ones(3, 2)}, ValueError, r"\(2, 3\), got \(3, 2\)"),
    ],
)
def test_model_refuses(batch, error, words):
    good = {"input_ids": torch.ones(2, 3, dtype=int)}
    with pytest.raises(error, match=words):
        BertModel(TINY)(**good | batch)


@pytest.mark.parametrize(
    ("module", "arguments", "error", "words"),
    [
        (BertSelfAttention, (torch.ones(2, 3),), ValueError, r"\(2, 3\)"),
        (BertSelfAttention, (torch.ones(2, 3, 14),), ValueError, "width 15, got 14"),
        (BertSelfAttention, (torch.ones(2, 3, 15).double(),), TypeError, "float64.*float32"),
        (BertSelfAttention, ("words",), TypeError, "got str"),
        (BertFeedForward, (torch.ones(2, 3, 14),), ValueError, "width 15, got 14"),
        (
            BertSelfOutput,
            (torch.ones(2, 3, 15), torch.ones(1, 3, 15)),
            ValueError,
            r"\(1, 3, 15\) and \(2, 3, 15\)",
        ),
        (
            lambda config: BertLayer(config),
            (torch.ones(2, 3, 15), None, False, torch.ones(2)),
            ValueError,
            r"\(3,\), got \(2,\)",
        ),
    ],
)
def test_layers_refuse(module, arguments, error, words):
    with pytest.raises(error, match=words):
        module(TINY)(*arguments)


def test_a_layer_of_ones_own_runs_in_the_model():
    class Mine(BertLayer):
        def forward(self, X, mask=None, need_weights=False):
            return super().forward(X, mask, need_weights)

    torch.manual_seed(0)
    package, own = BertModel(TINY).eval(), BertModel(TINY, layer=Mine).eval()
    own.load_state_dict(package.state_dict())
    batch = random_batch(TINY)
    with torch.no_grad():
        assert torch.equal(own(**batch)[0], package(**batch)[0])
    assert isinstance(own.encoder, BertEncoder) and isinstance(own.embeddings, BertEmbeddings)


def test_a_copy_and_a_saved_state_give_the_same_results(tmp_path):
    torch.manual_seed(0)
    model = BertModel(TINY).eval()
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = BertModel(TINY).eval()
    other.load_state_dict(torch.load(tmp_path / "weights.pt"))
    batch = random_batch(TINY)
    with torch.no_grad():
        wanted = model(**batch)[0]
        assert torch.equal(other(**batch)[0], wanted)
        assert torch.equal(copy.deepcopy(model)(**batch)[0], wanted)


# The names of the weights


def test_map_weights_takes_published_and_old_names():
    names = {
        "bert.embeddings.word_embeddings.weight": "embeddings.words.weight",
        "bert.encoder.layer.11.attention.self.value.bias": (
            "encoder.layers.11.self_attention.W_v.bias"
        ),
        "encoder.layer.0.output.LayerNorm.gamma": "encoder.layers.0.feed_forward.norm.weight",
        "embeddings.LayerNorm.beta": "embeddings.norm.bias",
        "cls.predictions.bias": "cls.predictions.bias",
        "pooler.dense.weight": "pooler.dense.weight",
        "encoder.layer.0.pooler.dense.weight": "encoder.layer.0.pooler.dense.weight",
        "attention.self.query.weight": "attention.self.query.weight",
    }
    tensors = {name: torch.tensor(float(i)) for i, name in enumerate(names)}
    mapped = map_weights(tensors)
    assert list(mapped) == list(names.values())
    assert all(mapped[new] is tensors[old] for old, new in names.items())


def test_map_weights_refuses_two_weights_of_one_name():
    twice = {"bert.pooler.dense.bias": torch.ones(1), "pooler.dense.bias": torch.ones(1)}
    with pytest.raises(ValueError, match="bert.pooler.dense.bias and pooler.dense.bias are both"):
        map_weights(twice)
