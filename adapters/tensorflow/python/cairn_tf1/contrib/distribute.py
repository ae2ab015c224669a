"""tf.contrib.distribute: the strategies of one process."""

import tensorflow.compat.v1 as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceStrategyV1
from tensorflow.python.distribute.cross_device_ops import AllReduceCrossDeviceOps as _AllReduce
from tensorflow.python.distribute.cross_device_ops import ReductionToOneDevice
from tensorflow.python.distribute.distribute_config import DistributeConfig  # noqa: F401
from tensorflow.python.distribute.mirrored_strategy import MirroredStrategyV1
from tensorflow.python.distribute.one_device_strategy import OneDeviceStrategyV1
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyV1 as ParameterServerStrategy  # noqa: F401

DistributionStrategy = Strategy = tf.distribute.Strategy
get_distribution_strategy = get_strategy = tf.distribute.get_strategy
has_distribution_strategy = has_strategy = tf.distribute.has_strategy
in_cross_tower_context = in_cross_replica_context = tf.distribute.in_cross_replica_context
get_tower_context = get_replica_context = tf.distribute.get_replica_context
ReductionToOneDeviceCrossTowerOps = ReductionToOneDeviceCrossDeviceOps = ReductionToOneDevice


class AllReduceCrossDeviceOps(_AllReduce):
    """Its second way to pack gradients, by their sizes, is gone: they are packed by their number."""

    def __init__(self, all_reduce_alg="nccl", num_packs=1, agg_small_grads_max_bytes=0, agg_small_grads_max_group=10):
        super().__init__(all_reduce_alg, num_packs)


AllReduceCrossTowerOps = AllReduceCrossDeviceOps


class OneDeviceStrategy(OneDeviceStrategyV1):
    pass


class MirroredStrategy(MirroredStrategyV1):
    """`num_gpus` beyond those there are gives the devices there are."""

    def __init__(self, devices=None, num_gpus=None, num_gpus_per_worker=None, cross_device_ops=None,
                 auto_shard_dataset=False, cross_tower_ops=None):  # fmt: skip
        count = num_gpus or num_gpus_per_worker
        gpus = tf.config.list_logical_devices("GPU")[:count] if count else []
        super().__init__(devices or [gpu.name for gpu in gpus] or None, cross_device_ops or cross_tower_ops)


class CollectiveAllReduceStrategy(CollectiveAllReduceStrategyV1):
    """`num_gpus_per_worker` is what the worker has."""

    def __init__(self, num_gpus_per_worker=0, **options):
        super().__init__(**options)
