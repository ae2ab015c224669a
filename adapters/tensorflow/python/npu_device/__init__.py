"""The platform's TensorFlow 2 interface: `npu.open().as_default()` hands tf.function and Keras' fit to Cairn's engine."""

from npu_device import compat, distribute, train
from npu_device.configs import global_options
from npu_device.device import NpuDeviceHandle, open

__all__ = ["NpuDeviceHandle", "compat", "distribute", "global_options", "open", "train"]
