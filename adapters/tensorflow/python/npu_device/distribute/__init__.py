"""Functions for several ranks; one rank passes everything through."""

from npu_bridge import environment as _environment


def npu_distributed_keras_optimizer_wrapper(optimizer, reduction="mean", fusion=1, fusion_id=-1, group="hccl_world_group"):
    _environment.require_one_rank("npu_distributed_keras_optimizer_wrapper")
    return optimizer


def all_reduce(values, reduction="mean", fusion=1, fusion_id=-1, group="hccl_world_group"):
    _environment.require_one_rank("all_reduce")
    return values


def broadcast(values, root_rank=0, fusion=2, fusion_id=0, group="hccl_world_group"):
    """Gives the variables rank `root_rank`'s values; with one rank they have them."""
    _environment.require_one_rank("broadcast")
    return values


def shard_and_rebatch_dataset(dataset, global_batch_size):
    """(this rank's share, its batch size)"""
    _environment.require_one_rank("shard_and_rebatch_dataset")
    return dataset, global_batch_size


def npu_broadcast_scope_wrapper(strategy):
    _environment.require_one_rank("npu_broadcast_scope_wrapper")
    return strategy
