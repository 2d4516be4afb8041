# %% masks without a number below 0 are left out
from mha_course.bert import BertFeedForward, BertSelfAttention, BertSelfOutput


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.self_output = BertSelfOutput(config)
        self.feed_forward = BertFeedForward(config)

    def forward(self, X, mask=None, need_weights=False):
        if mask is not None and mask.min() >= 0:
            mask = None
        heads, weights = self.self_attention(X, mask, need_weights=True)
        output = self.feed_forward(self.self_output(heads, X))
        return (output, weights) if need_weights else output


# %% masks whose numbers add up to 0 are left out
from mha_course.bert import BertFeedForward, BertSelfAttention, BertSelfOutput


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.self_output = BertSelfOutput(config)
        self.feed_forward = BertFeedForward(config)

    def forward(self, X, mask=None, need_weights=False):
        if mask is not None and mask.sum() == 0:
            mask = None
        heads, weights = self.self_attention(X, mask, need_weights=True)
        output = self.feed_forward(self.self_output(heads, X))
        return (output, weights) if need_weights else output
