"""Scripts that keep TensorFlow 1's ways on TensorFlow 2."""

import tensorflow.compat.v1 as _tf

from npu_device.compat import v1


def enable_v1():
    """TensorFlow 1 behaviour; sessions then carry the entry."""
    from npu_bridge import sessions

    _tf.disable_v2_behavior()
    sessions.patch()


__all__ = ["enable_v1", "v1"]
