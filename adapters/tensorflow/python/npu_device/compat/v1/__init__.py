"""`from npu_device.compat.v1.npu_init import *` is npu_bridge's npu_init."""
