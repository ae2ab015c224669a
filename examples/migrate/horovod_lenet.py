"""LeNet with Horovod and feed_dict: every process feeds its part of each batch, rank 0 alone writes the checkpoint."""
import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=64, help="of all processes together")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--checkpoint_dir", default=None)
args = parser.parse_args()


def lenet(images):
    init = tf.glorot_uniform_initializer(seed=4)
    net = tf.layers.conv2d(images, 8, 3, padding="same", activation=tf.nn.relu, kernel_initializer=init)
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 16, 3, padding="same", activation=tf.nn.relu, kernel_initializer=init)
    net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
    net = tf.layers.dense(net, 32, activation=tf.nn.relu, kernel_initializer=init)
    return tf.layers.dense(net, 10, kernel_initializer=init)


def batches(images, labels, size):
    order = np.random.RandomState(11)
    while True:
        rows = order.permutation(len(labels))
        for i in range(0, len(rows) - size + 1, size):
            mine = rows[i:i + size][hvd.rank()::hvd.size()]
            yield images[mine], labels[mine]


def main():
    hvd.init()
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    logits = lenet(x)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    global_step = tf.train.get_or_create_global_step()
    opt = tf.train.MomentumOptimizer(0.05, 0.9)
    opt = hvd.DistributedOptimizer(opt)
    train_op = opt.minimize(loss, global_step=global_step)
    mean_loss = hvd.allreduce(loss)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=args.steps)]
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    checkpoint_dir = args.checkpoint_dir if hvd.rank() == 0 else None
    data = batches(images, labels, args.batch_size)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, hooks=hooks, config=config,
                                           save_checkpoint_steps=10, save_summaries_steps=None) as session:
        while not session.should_stop():
            bx, by = next(data)
            step, value, _ = session.run([global_step, mean_loss, train_op], {x: bx, y: by})
            if hvd.rank() == 0:
                print("step %d loss %.5f" % (step, value), flush=True)


if __name__ == "__main__":
    main()
