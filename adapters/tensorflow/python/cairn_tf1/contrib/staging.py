"""tf.contrib.staging: a buffer between steps."""

from tensorflow.python.ops.data_flow_ops import StagingArea  # noqa: F401
