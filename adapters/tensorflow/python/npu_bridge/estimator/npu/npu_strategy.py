"""A distribution strategy of one device for each rank; there is one rank."""

from tensorflow.python.distribute import one_device_strategy

from npu_bridge import environment


class NPUStrategy(one_device_strategy.OneDeviceStrategyV1):
    def __init__(self, device="/cpu:0"):
        environment.require_one_rank("NPUStrategy")
        super().__init__(device)
