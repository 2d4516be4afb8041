"""What attention costs: parameters, floating-point operations (FLOPs) and cache bytes.

Closed forms, in exact whole numbers. No model is built: the tests hold every formula to real ones.
"""

__all__ = [
    "head_width",
    "count_linear",
    "count_attention",
    "count_feed_forward",
    "count_block",
    "bert_parts",
    "count_bert",
    "matmul_flops",
    "projection_flops",
    "pairwise_flops",
    "attention_flops",
    "feed_forward_flops",
    "crossing_length",
    "cache_bytes",
]


def _check_sizes(**sizes):
    """Raise TypeError or ValueError, quoting the value, unless each size is an int of 1 or more."""
    for name, size in sizes.items():
        # bool counts as int in Python; NumPy's integers can overflow without a word.
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"{name} must be a Python int, got {size!r} ({type(size).__name__})")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def _check_bias(bias):
    """Raise TypeError unless bias is a bool: a head count may have been given in its place."""
    if not isinstance(bias, bool):
        raise TypeError(f"bias must be True or False, got {bias!r} ({type(bias).__name__})")


def head_width(num_hiddens, num_heads):
    """The width d_k of each head when num_heads heads share num_hiddens features.

    Raises: ValueError quoting both if the heads do not divide the width; a size below 1;
        TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_hiddens=num_hiddens, num_heads=num_heads)
    if num_hiddens % num_heads:
        raise ValueError(
            f"num_hiddens={num_hiddens} cannot be split evenly into num_heads={num_heads}: "
            f"{num_hiddens % num_heads} left over"
        )
    return num_hiddens // num_heads


def count_linear(num_inputs, num_outputs, bias=True):
    """Parameters of one linear layer: a weight for each pair of input and output, and the biases.

    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int or a bias
        that is not a bool.
    Source: torch.nn.Linear. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_inputs=num_inputs, num_outputs=num_outputs)
    _check_bias(bias)
    return num_inputs * num_outputs + (num_outputs if bias else 0)


def count_attention(num_hiddens, bias=True):
    """Parameters of a multi-head attention layer: W_q, W_k, W_v and W_o, so 4·d² (+ 4·d biases).

    Properties: there is no num_heads argument, because all heads together are as wide as one.
    Raises: ValueError for a width below 1; TypeError for a width that is not a Python int or a
        bias that is not a bool.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_hiddens=num_hiddens)
    return 4 * count_linear(num_hiddens, num_hiddens, bias)


def count_feed_forward(num_hiddens, ffn_num_hiddens):
    """Parameters of a feed-forward network: one linear layer up, one back down, with biases.

    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, eq. 2. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_hiddens=num_hiddens, ffn_num_hiddens=ffn_num_hiddens)
    up = count_linear(num_hiddens, ffn_num_hiddens)
    down = count_linear(ffn_num_hiddens, num_hiddens)
    return up + down


def count_block(num_hiddens, ffn_num_hiddens):
    """Parameters of one BERT block: attention and feed-forward with biases, and two LayerNorms.

    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Devlin et al. 2019, section 3. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_hiddens=num_hiddens, ffn_num_hiddens=ffn_num_hiddens)
    layer_norm = 2 * num_hiddens  # a scale and a shift for each feature
    attention = count_attention(num_hiddens)
    return attention + count_feed_forward(num_hiddens, ffn_num_hiddens) + 2 * layer_norm


def bert_parts(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, num_segments=2):
    """Parameters of a BERT encoder by part, as a dict whose values add up to `count_bert`.

    Keys: "embeddings" (word, position and segment tables and the LayerNorm after them), then the
    blocks' "attention", "feed_forward" and "layer_norms", each over all layers, and "pooler".
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Devlin et al. 2019, section 3. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(vocab_size=vocab_size, num_hiddens=num_hiddens, num_layers=num_layers)
    _check_sizes(ffn_num_hiddens=ffn_num_hiddens, max_len=max_len, num_segments=num_segments)
    layer_norm = 2 * num_hiddens
    return {
        "embeddings": (vocab_size + max_len + num_segments) * num_hiddens + layer_norm,
        "attention": num_layers * count_attention(num_hiddens),
        "feed_forward": num_layers * count_feed_forward(num_hiddens, ffn_num_hiddens),
        "layer_norms": num_layers * 2 * layer_norm,
        "pooler": count_linear(num_hiddens, num_hiddens),
    }


def count_bert(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, num_segments=2):
    """Parameters of a whole BERT encoder: embeddings, num_layers blocks and the pooler.

    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Devlin et al. 2019, section 3. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    parts = bert_parts(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments)
    return sum(parts.values())


def matmul_flops(num_rows, num_inner, num_columns):
    """FLOPs of one matrix product (num_rows, num_inner) @ (num_inner, num_columns).

    Units: FLOPs, 2 per multiply-add (half as many if a tool reports multiply-adds, "MACs").
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: torch.utils.flop_counter. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_rows=num_rows, num_inner=num_inner, num_columns=num_columns)
    return 2 * num_rows * num_inner * num_columns


def projection_flops(num_tokens, num_hiddens):
    """FLOPs of the four projections W_q, W_k, W_v and W_o of one sequence: 8·n·d².

    Units: FLOPs, 2 per multiply-add; the additions of biases are left out.
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_tokens=num_tokens, num_hiddens=num_hiddens)
    return 4 * matmul_flops(num_tokens, num_hiddens, num_hiddens)


def pairwise_flops(num_tokens, num_hiddens):
    """FLOPs of the products over all pairs of tokens, QKᵀ and AV, of one sequence: 4·n²·d.

    Properties: the same for any number of heads, since h heads of width d/h do h · 2·n²·(d/h).
    Units: FLOPs, 2 per multiply-add; softmax, scaling and mask are left out.
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, eq. 1. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_tokens=num_tokens, num_hiddens=num_hiddens)
    scores = matmul_flops(num_tokens, num_hiddens, num_tokens)
    averages = matmul_flops(num_tokens, num_tokens, num_hiddens)
    return scores + averages


def attention_flops(num_tokens, num_hiddens):
    """FLOPs of multi-head self-attention over one sequence, forward: 8·n·d² + 4·n²·d.

    Units: FLOPs, 2 per multiply-add, matrix products only; a batch of B costs B times as much.
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, section 3.2 and table 1.
    Lesson: notebooks/05_parameter_counting.ipynb.
    """
    return projection_flops(num_tokens, num_hiddens) + pairwise_flops(num_tokens, num_hiddens)


def feed_forward_flops(num_tokens, num_hiddens, ffn_num_hiddens):
    """FLOPs of a feed-forward network over one sequence, forward: 4·n·d·f.

    Units: FLOPs, 2 per multiply-add; biases and the activation are left out.
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Vaswani et al. 2017, eq. 2. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_tokens=num_tokens, num_hiddens=num_hiddens, ffn_num_hiddens=ffn_num_hiddens)
    up = matmul_flops(num_tokens, num_hiddens, ffn_num_hiddens)
    down = matmul_flops(num_tokens, ffn_num_hiddens, num_hiddens)
    return up + down


def crossing_length(num_hiddens, ffn_num_hiddens=None):
    """Number of tokens at which pairs of tokens cost as much as everything else.

    Everything else is the projections, 8·n·d², and where `ffn_num_hiddens` is given also the
    feed-forward network of the block, 4·n·d·f.
    Properties: n = 2·d, or 2·d + f, so 6·d where f = 4·d; in shorter sequences the pairs cost
        less, in longer ones more.
    Raises: ValueError for a width below 1; TypeError for a width that is not a Python int.
    Source: derived in the lesson. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_hiddens=num_hiddens)
    if ffn_num_hiddens is None:
        return 2 * num_hiddens
    _check_sizes(ffn_num_hiddens=ffn_num_hiddens)
    return 2 * num_hiddens + ffn_num_hiddens


def cache_bytes(num_tokens, num_layers, num_kv_heads, head_width, bytes_per_number=2, batch_size=1):
    """Bytes of a KV cache: for each token, layer and KV head, one key and one value.

    Units: bytes; 2 per number for float16 and bfloat16, 4 for float32.
    Raises: ValueError for a size below 1; TypeError for a size that is not a Python int.
    Source: Shazeer 2019 (multi-query attention). Lesson: notebooks/05_parameter_counting.ipynb.
    """
    _check_sizes(num_tokens=num_tokens, num_layers=num_layers, num_kv_heads=num_kv_heads)
    _check_sizes(head_width=head_width, bytes_per_number=bytes_per_number, batch_size=batch_size)
    numbers = 2 * num_layers * num_kv_heads * head_width  # per token; 2: a key and a value
    return batch_size * num_tokens * numbers * bytes_per_number
