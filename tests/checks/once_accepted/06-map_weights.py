# %% whatever begins with bert, with a dot or not, loses five letters
PUBLISHED = (
    "embeddings.word_embeddings embeddings.position_embeddings embeddings.token_type_embeddings "
    "embeddings.LayerNorm attention.self.query attention.self.key attention.self.value "
    "attention.output.dense attention.output.LayerNorm intermediate.dense output.dense "
    "output.LayerNorm pooler.dense"
).split()
OURS = (
    "embeddings.words embeddings.positions embeddings.segments embeddings.norm "
    "self_attention.W_q self_attention.W_k self_attention.W_v self_output.W_o self_output.norm "
    "feed_forward.W_1 feed_forward.W_2 feed_forward.norm pooler.dense"
).split()
TABLE = dict(zip(PUBLISHED, OURS, strict=True))


def map_weights(state_dict):
    named = {}
    for name, X in state_dict.items():
        stem, end = (name[5:] if name.startswith("bert") else name).rsplit(".", 1)
        layer = ""
        if stem.startswith("encoder.layer."):
            _, _, number, stem = stem.split(".", 3)
            layer = f"encoder.layers.{number}."
        named[f"{layer}{TABLE.get(stem, stem)}.{end}"] = X
    return named
