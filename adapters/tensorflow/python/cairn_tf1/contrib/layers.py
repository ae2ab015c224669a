"""tf.contrib.layers: tf_slim's layers, initialisers, regularisers, optimizers and summaries, and what tf_slim left out."""

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.init_ops import zeros_initializer  # noqa: F401
from tf_slim.layers import *  # noqa: F403
from tf_slim.layers import initializers, layers, normalization, optimizers, regularizers, summaries, utils  # noqa: F401
from tf_slim.layers.layers import *  # noqa: F403

for _part in (layers, initializers, regularizers, normalization, optimizers, summaries):
    globals().update({name: value for name, value in vars(_part).items() if not name.startswith("_")})

optimize_loss, OPTIMIZER_CLS_NAMES = optimizers.optimize_loss, optimizers.OPTIMIZER_CLS_NAMES

# The feature columns of contrib became those of tf.feature_column.
real_valued_column = tf.feature_column.numeric_column
bucketized_column = tf.feature_column.bucketized_column
embedding_column = tf.feature_column.embedding_column
one_hot_column = tf.feature_column.indicator_column
sparse_column_with_hash_bucket = tf.feature_column.categorical_column_with_hash_bucket
sparse_column_with_keys = tf.feature_column.categorical_column_with_vocabulary_list
sparse_column_with_integerized_feature = tf.feature_column.categorical_column_with_identity
crossed_column = tf.feature_column.crossed_column
safe_embedding_lookup_sparse = tf.nn.safe_embedding_lookup_sparse


def embed_sequence(ids, vocab_size=None, embed_dim=None, unique=False, initializer=None, regularizer=None, trainable=True,
                   scope=None, reuse=None):  # fmt: skip
    """Embeddings [..., embed_dim] of the symbols `ids`, from the variable `embeddings` [vocab_size, embed_dim]."""
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing. Got vocab_size="
                         f"{vocab_size} and embed_dim={embed_dim}")  # fmt: skip
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim]
        if reuse and vocab_size is None or embed_dim is None:
            shape = None
        table = tf.get_variable("embeddings", shape=shape, initializer=initializer, regularizer=regularizer,
                                trainable=trainable)  # fmt: skip
        if not unique:
            return tf.nn.embedding_lookup(table, ids)
        different, index = tf.unique(tf.reshape(ids, [-1]))
        looked_up = tf.gather(tf.nn.embedding_lookup(table, different), index)
        return tf.reshape(looked_up, tf.concat([tf.shape(ids), tf.shape(looked_up)[-1:]], 0))


def bow_encoder(ids, vocab_size, embed_dim, sparse_lookup=True, initializer=None, regularizer=None, trainable=True,
                scope=None, reuse=None):  # fmt: skip
    """The mean of the symbols' embeddings, [batch, embed_dim]."""
    if isinstance(ids, tf.SparseTensor):
        raise TypeError("ids are expected to be dense Tensor, got: a SparseTensor")
    embedded = embed_sequence(ids, vocab_size, embed_dim, False, initializer, regularizer, trainable, scope or "bow_encoder", reuse)
    return tf.reduce_mean(embedded, axis=1)
