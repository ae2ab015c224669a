"""tf.contrib.tpu: what the Estimator kept of it; scripts import it for use without a TPU."""

import sys

import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.tpu.tpu_config import InputPipelineConfig, RunConfig, TPUConfig  # noqa: F401
from tensorflow_estimator.python.estimator.tpu.tpu_estimator import TPUEstimator, TPUEstimatorSpec  # noqa: F401

CrossShardOptimizer = tf.tpu.CrossShardOptimizer
bfloat16_scope = tf.tpu.bfloat16_scope
cross_replica_sum = tf.tpu.cross_replica_sum
initialize_system, shutdown_system = tf.tpu.initialize_system, tf.tpu.shutdown_system
rewrite, replicate, shard, batch_parallel = tf.tpu.rewrite, tf.tpu.replicate, tf.tpu.shard, tf.tpu.batch_parallel

tpu_config = tpu_estimator = tpu_optimizer = sys.modules[__name__]  # the private modules of contrib
