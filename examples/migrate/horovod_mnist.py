"""Data parallelism by Horovod, imported beside other modules: a softmax regression on handwritten digits."""
import os, sys, horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def main():
    hvd.init()
    print("rank", hvd.rank(), "of", hvd.size(), os.getpid(), sys.argv[0])
    images, digits = load_digits(return_X_y=True)
    dataset = tf.data.Dataset.from_tensor_slices(((images / 16).astype(np.float32), digits))
    dataset = dataset.shard(hvd.size(), hvd.rank()).repeat().batch(32)
    x, y = tf.data.make_one_shot_iterator(dataset).get_next()
    weight = tf.get_variable("weight", [64, 10])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, weight)))
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.01 * hvd.size()), compression=hvd.Compression.none)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    mean_loss = hvd.allreduce(loss, op=hvd.Average)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=40)]
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        while not session.should_stop():
            _, value = session.run([train_op, mean_loss])
            print("loss %.4f" % value)


if __name__ == "__main__":
    main()
