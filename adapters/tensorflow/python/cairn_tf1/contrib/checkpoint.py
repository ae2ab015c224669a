"""tf.contrib.checkpoint: objects that save what they hold."""

import tensorflow.compat.v1 as tf
from tensorflow.python.trackable.data_structures import List, Mapping, NoDependency  # noqa: F401

Checkpointable = tf.Module
CheckpointableSaver = tf.train.Checkpoint
