"""The names of npu_bridge.npu_init under the path that scripts for TensorFlow 2 use."""

from npu_bridge.npu_init import *  # noqa: F403
