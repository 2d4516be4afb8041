"""Lesson 05: parameters of a layer, a block, a BERT; FLOPs, cache bytes, head width."""
