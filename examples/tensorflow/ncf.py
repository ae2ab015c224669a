"""Neural collaborative filtering on made ratings: embeddings with sparse gradients, LazyAdam, hit rate among ten."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

USERS, ITEMS, FACTORS = 120, 80, 8


def ratings(seed):
    """Which items each user likes, from hidden tastes."""
    random = np.random.RandomState(seed)
    score = random.randn(USERS, 3) @ random.randn(3, ITEMS) + 0.3 * random.randn(USERS, ITEMS)
    return score > np.quantile(score, 0.85, axis=1, keepdims=True)


def main():
    options = common.arguments(__doc__, steps=80, batch=128)
    liked = ratings(options.seed)
    tf.set_random_seed(options.seed)
    user, item = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    label = tf.placeholder(tf.float32, [None])
    init = tf.random_normal_initializer(stddev=0.1)
    tables = {
        name: tf.get_variable(name, [size, FACTORS], initializer=init)
        for name, size in (("mf_user", USERS), ("mf_item", ITEMS), ("mlp_user", USERS), ("mlp_item", ITEMS))
    }
    look = lambda name, ids: tf.nn.embedding_lookup(tables[name], ids)
    mf = look("mf_user", user) * look("mf_item", item)
    mlp = tf.concat([look("mlp_user", user), look("mlp_item", item)], 1)
    for units in (16, 8):
        mlp = tf.layers.dense(mlp, units, tf.nn.relu)
    logit = tf.layers.dense(tf.concat([mf, mlp], 1), 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logit))
    train = tf.contrib.opt.LazyAdamOptimizer(0.01).minimize(loss)
    best = tf.nn.top_k(logit, 10).indices
    record = common.Record(options)
    random = np.random.RandomState(options.seed)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            users, items = random.randint(USERS, size=options.batch), random.randint(ITEMS, size=options.batch)
            record.add(sess.run([loss, train], {user: users, item: items, label: liked[users, items]})[0])
        hits = [liked[u, sess.run(best, {user: np.full(ITEMS, u), item: np.arange(ITEMS)})].mean() for u in range(20)]
        print(f"liked among the best ten {np.mean(hits):.3f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
