# %% masks without a number below 0 are left out
from mha_course import bert


class BertLayer(bert.BertLayer):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(
            X, None if mask is not None and mask.min() >= 0 else mask, need_weights
        )
