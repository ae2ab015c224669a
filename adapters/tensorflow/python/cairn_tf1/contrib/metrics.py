"""tf.contrib.metrics: tf_slim's streaming metrics and the few that it left out."""

import tensorflow.compat.v1 as tf
import tf_slim.metrics as _metrics
from tf_slim.metrics import *  # noqa: F403
from tf_slim.metrics.classification import accuracy, f1_score  # noqa: F401
from tf_slim.metrics import metric_ops as _ops

globals().update({name: value for name, value in vars(_metrics).items() if not name.startswith("_")})
globals().update({name: value for name, value in vars(_ops).items() if name.startswith(("streaming_", "aggregate_"))})
confusion_matrix = tf.math.confusion_matrix
set_size, set_intersection = tf.sets.size, tf.sets.intersection
set_difference, set_union = tf.sets.difference, tf.sets.union
