"""The platform's embedding cache, which is not part of Cairn."""

import tensorflow.compat.v1 as tf


class LruCache:
    def __init__(self, cache_size=100000, load_factor=1, dtype=tf.uint32):
        raise NotImplementedError("LruCache: the embedding cache is not supported; use tf.nn.embedding_lookup")
