"""A distribution strategy of one device for each rank: datasets that it distributes are cut among the ranks."""

from tensorflow.python.distribute import distribute_lib, one_device_strategy

from hccl.manage.api import get_rank_id, get_rank_size


class _Extended(one_device_strategy.OneDeviceExtended):
    @property
    def _num_replicas_in_sync(self):
        return get_rank_size()

    def _experimental_distribute_dataset(self, dataset, options):
        return super()._experimental_distribute_dataset(dataset.shard(get_rank_size(), get_rank_id()), options)

    def _make_dataset_iterator(self, dataset):
        return super()._make_dataset_iterator(dataset.shard(get_rank_size(), get_rank_id()))


class NPUStrategy(distribute_lib.StrategyV1):
    """`num_replicas_in_sync` is the number of ranks; losses are divided by it, gradients of the platform's optimizers summed."""

    _npu_distributed = True

    def __init__(self, device="/cpu:0"):
        super().__init__(_Extended(self, device))
