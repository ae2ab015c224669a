"""tf.contrib.distribute: the strategies of one process."""

import tensorflow.compat.v1 as tf
from tensorflow.python.distribute.distribute_config import DistributeConfig  # noqa: F401
from tensorflow.python.distribute.mirrored_strategy import MirroredStrategyV1
from tensorflow.python.distribute.one_device_strategy import OneDeviceStrategyV1
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyV1 as ParameterServerStrategy  # noqa: F401

DistributionStrategy = Strategy = tf.distribute.Strategy


class OneDeviceStrategy(OneDeviceStrategyV1):
    pass


class MirroredStrategy(MirroredStrategyV1):
    """`num_gpus` beyond those there are gives the devices there are."""

    def __init__(self, devices=None, num_gpus=None, num_gpus_per_worker=None, cross_device_ops=None,
                 auto_shard_dataset=False, cross_tower_ops=None):  # fmt: skip
        count = num_gpus or num_gpus_per_worker
        gpus = tf.config.list_logical_devices("GPU")[:count] if count else []
        super().__init__(devices or [gpu.name for gpu in gpus] or None, cross_device_ops or cross_tower_ops)
