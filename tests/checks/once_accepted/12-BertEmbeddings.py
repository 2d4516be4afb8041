# %% keeps the segments for a call without them
class BertEmbeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.segments = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.kinds = torch.zeros(0)

    def forward(self, input_ids, token_type_ids=None):
        if token_type_ids is not None:
            self.kinds = token_type_ids
        elif self.kinds.shape != input_ids.shape:
            self.kinds = torch.zeros_like(input_ids)
        X = self.words(input_ids) + self.positions(torch.arange(input_ids.shape[1]))
        return self.dropout(self.norm(X + self.segments(self.kinds)))
