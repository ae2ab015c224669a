"""A distribution strategy of one device for each rank. As under TensorFlow's strategies, the batches of a dataset that it
distributes are those of all ranks together: each rank takes its rows of every batch."""

import tensorflow.compat.v1 as tf
from tensorflow.python.distribute import distribute_lib, one_device_strategy

from hccl.manage.api import get_rank_id, get_rank_size


def _part(dataset):
    rank, size = get_rank_id(), get_rank_size()
    rows = lambda *batch: tf.nest.map_structure(lambda each: each[rank::size], batch if len(batch) > 1 else batch[0])
    return dataset if size == 1 else dataset.map(rows)


class _Extended(one_device_strategy.OneDeviceExtended):
    @property
    def _num_replicas_in_sync(self):
        return get_rank_size()

    def _experimental_distribute_dataset(self, dataset, options):
        return super()._experimental_distribute_dataset(_part(dataset), options)

    def _make_dataset_iterator(self, dataset):
        return super()._make_dataset_iterator(_part(dataset))


class NPUStrategy(distribute_lib.StrategyV1):
    """`num_replicas_in_sync` is the number of ranks; losses are divided by it, gradients of the platform's optimizers summed."""

    _npu_distributed = True

    def __init__(self, device="/cpu:0"):
        super().__init__(_Extended(self, device))
