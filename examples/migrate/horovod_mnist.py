"""Data parallelism by Horovod, imported beside other modules and under a short name."""
import os, sys, horovod.tensorflow as hvd
import tensorflow as tf


def main():
    hvd.init()
    print("rank", hvd.rank(), "of", hvd.size(), os.getpid(), sys.argv[0])
    x = tf.random_normal([16, 10], seed=hvd.rank())
    weight = tf.get_variable("weight", [10, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - 1.0))
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.01 * hvd.size()), compression=hvd.Compression.none)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    mean_loss = hvd.allreduce(loss, op=hvd.Average)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=20)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            _, value = session.run([train_op, mean_loss])
            print("loss %.4f" % value)


if __name__ == "__main__":
    main()
