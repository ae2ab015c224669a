"""A small BERT fine-tuned on made sentences: AdamW with warm-up, gelu, dropout, dynamic loss scaling, gradient clipping."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

VOCABULARY, LENGTH, HIDDEN, HEADS, LAYERS = 200, 24, 64, 4, 2


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without bias correction and with decay of the weights themselves, as BERT's code has it."""

    def __init__(self, learning_rate, weight_decay_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6,
                 exclude=("LayerNorm", "bias"), name="AdamWeightDecayOptimizer"):  # fmt: skip
        super().__init__(False, name)
        self.rate, self.decay, self.beta_1, self.beta_2 = learning_rate, weight_decay_rate, beta_1, beta_2
        self.epsilon, self.exclude = epsilon, exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None:
                continue
            kept = tf.get_variable(param.op.name + "/adam_m", param.shape, trainable=False, initializer=tf.zeros_initializer())
            seen = tf.get_variable(param.op.name + "/adam_v", param.shape, trainable=False, initializer=tf.zeros_initializer())
            m = self.beta_1 * kept + tf.multiply(1.0 - self.beta_1, grad)
            v = self.beta_2 * seen + (1.0 - self.beta_2) * tf.square(grad)
            update = m / (tf.sqrt(v) + self.epsilon)
            if not any(word in param.op.name for word in self.exclude):
                update += self.decay * param
            assignments += [param.assign(param - self.rate * update), kept.assign(m), seen.assign(v)]
        if global_step is not None:
            assignments.append(tf.assign_add(global_step, 1))
        return tf.group(*assignments, name=name)


def layer_norm(x, name="LayerNorm"):
    with tf.variable_scope(name):
        gamma = tf.get_variable("gamma", [HIDDEN], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [HIDDEN], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def dense(x, units, name, activation=None):
    return tf.layers.dense(x, units, activation, kernel_initializer=tf.truncated_normal_initializer(stddev=0.02), name=name)


def attention(x, mask):
    split = lambda t: tf.transpose(tf.reshape(t, [-1, LENGTH, HEADS, HIDDEN // HEADS]), [0, 2, 1, 3])
    query, key, value = (split(dense(x, HIDDEN, name)) for name in ("query", "key", "value"))
    scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(HIDDEN / HEADS)
    scores += (1.0 - mask[:, None, None, :]) * -10000.0
    probabilities = npu_ops.dropout(tf.nn.softmax(scores), keep_prob=0.9)
    return tf.reshape(tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3]), [-1, LENGTH, HIDDEN])


def bert(ids, mask):
    with tf.variable_scope("embeddings"):
        words = tf.get_variable("word_embeddings", [VOCABULARY, HIDDEN], initializer=tf.truncated_normal_initializer(stddev=0.02))
        places = tf.get_variable("position_embeddings", [LENGTH, HIDDEN], initializer=tf.truncated_normal_initializer(stddev=0.02))
        x = npu_ops.dropout(layer_norm(tf.gather(words, ids) + places), keep_prob=0.9)
    for index in range(LAYERS):
        with tf.variable_scope(f"layer_{index}"):
            with tf.variable_scope("attention"):
                x = layer_norm(x + npu_ops.dropout(dense(attention(x, mask), HIDDEN, "output"), keep_prob=0.9))
            inner = dense(x, 4 * HIDDEN, "intermediate", npu_unary_ops.gelu)
            x = layer_norm(x + npu_ops.dropout(dense(inner, HIDDEN, "output"), keep_prob=0.9), "LayerNorm_output")
    return dense(x[:, 0], HIDDEN, "pooler", tf.tanh)


def sentences(count, seed):
    """Word numbers; a sentence is of class 1 when it holds more words below 100 than above."""
    random = np.random.RandomState(seed)
    ids = random.randint(2, VOCABULARY, [count, LENGTH])
    mask = (np.arange(LENGTH) < random.randint(LENGTH // 2, LENGTH + 1, [count, 1])).astype(np.float32)
    ids = np.where(mask > 0, ids, 0)
    ids[:, 0] = 1
    return ids.astype(np.int32), mask, ((((ids < 100) * 2 - 1) * mask).sum(1) > 0).astype(np.int64)


def main():
    options = common.arguments(__doc__, steps=50, batch=16)
    ids, mask, labels = sentences(512, options.seed)
    tf.set_random_seed(options.seed)
    data = tf.data.Dataset.from_tensor_slices((ids, mask, labels)).repeat().batch(options.batch, drop_remainder=True)
    features, weights, classes = tf.data.make_one_shot_iterator(data).get_next()
    logits = dense(bert(features, weights), 2, "classifier")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits))
    step = tf.train.get_or_create_global_step()
    warm = tf.minimum(1.0, tf.cast(step + 1, tf.float32) / 10.0)
    optimizer = AdamWeightDecayOptimizer(warm * tf.train.polynomial_decay(1e-3, step, options.steps, 0.0))
    manager = ExponentialUpdateLossScaleManager(init_loss_scale=2**16, incr_every_n_steps=20, decr_every_n_nan_or_inf=2,
                                                decr_ratio=0.5)  # fmt: skip
    scaled = NPULossScaleOptimizer(optimizer, manager)
    gradients, variables = zip(*scaled.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train = scaled.apply_gradients(zip(gradients, variables), global_step=step)
    record = common.Record(options)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            value, _ = sess.run([loss, train])
            record.add(value)
        print("loss scale", sess.run(manager.get_loss_scale()))
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
