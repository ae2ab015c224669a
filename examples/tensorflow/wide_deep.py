"""Wide and deep on made records: CSV text decoded and words looked up in tables inside the input pipeline; FTRL for the wide part,
Adagrad for the deep one."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

JOBS = ["farmer", "teacher", "nurse", "driver", "clerk", "cook"]
TOWNS = ["north", "south", "east", "west"]


def records(count, seed):
    random = np.random.RandomState(seed)
    lines = []
    for _ in range(count):
        age, hours, job, town = random.randint(18, 70), random.randint(5, 60), random.randint(7), random.randint(4)
        rich = age * 0.02 + hours * 0.03 + (job in (1, 2)) - (town == 3) + random.randn() * 0.3 > 2.2
        lines.append(f"{age},{hours},{(JOBS + ['pilot'])[job]},{TOWNS[town]},{int(rich)}")
    return lines


def input_fn(lines, batch):
    jobs = tf.contrib.lookup.index_table_from_tensor(tf.constant(JOBS), num_oov_buckets=1)  # pilots are not in the table
    towns = tf.contrib.lookup.index_table_from_tensor(tf.constant(TOWNS))

    def parse(line):
        age, hours, job, town, label = tf.decode_csv(line, [[0.0], [0.0], [""], [""], [0]])
        return tf.stack([age / 70.0, hours / 60.0]), jobs.lookup(job), towns.lookup(town), tf.cast(label, tf.float32)

    data = tf.data.Dataset.from_tensor_slices(lines).map(parse).repeat().batch(batch)
    return tf.data.make_initializable_iterator(data)


def main():
    options = common.arguments(__doc__, steps=60, batch=64)
    tf.set_random_seed(options.seed)
    iterator = input_fn(records(1024, options.seed), options.batch)
    numbers, job, town, label = iterator.get_next()
    crossed = job * len(TOWNS) + town
    with tf.variable_scope("wide"):
        weights = tf.get_variable("weights", [(len(JOBS) + 1) * len(TOWNS)], initializer=tf.zeros_initializer())
        wide = tf.gather(weights, crossed)
    with tf.variable_scope("deep"):
        tables = [tf.get_variable(name, [size, 8]) for name, size in (("jobs", len(JOBS) + 1), ("towns", len(TOWNS)))]
        net = tf.concat([numbers, tf.nn.embedding_lookup(tables[0], job), tf.nn.embedding_lookup(tables[1], town)], 1)
        for units in (32, 16):
            net = tf.layers.dense(net, units, tf.nn.relu)
        deep = tf.layers.dense(net, 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=wide + deep))
    step = tf.train.get_or_create_global_step()
    train = tf.group(
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=1e-4).minimize(loss, var_list=tf.trainable_variables("wide")),
        tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=tf.trainable_variables("deep"), global_step=step),
    )
    auc, update = tf.metrics.auc(label, tf.sigmoid(wide + deep))
    record = common.Record(options)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        sess.run(iterator.initializer)
        for _ in range(options.steps):
            record.add(sess.run([loss, train, update])[0])
        print(f"AUC while training {sess.run(auc):.3f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
