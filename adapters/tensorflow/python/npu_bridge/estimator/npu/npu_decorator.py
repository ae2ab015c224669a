"""Changes TensorFlow's session classes; importing npu_init has done it already."""

from npu_bridge import sessions


def decorator_tf_session():
    sessions.patch()
