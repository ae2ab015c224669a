"""Functions for several ranks; one rank passes everything through."""

import contextlib as _contextlib

import tensorflow as _tf

from hccl.manage.api import get_rank_id as _rank_id
from hccl.manage.api import get_rank_size as _rank_size
from npu_bridge.estimator.npu import npu_optimizer as _optimizer
from npu_bridge.hccl import collectives as _collectives

_WORLD = "hccl_world_group"


def npu_distributed_keras_optimizer_wrapper(optimizer, reduction="mean", fusion=1, fusion_id=-1, group=_WORLD):
    """The optimizer, which reduces gradients over the ranks before it applies them."""
    return _optimizer.npu_distributed_optimizer_wrapper(optimizer, reduction, group)


def all_reduce(values, reduction="mean", fusion=1, fusion_id=-1, group=_WORLD):
    return values if _rank_size(group) == 1 else _optimizer.npu_allreduce(values, reduction, fusion, fusion_id, group)


def distributed_gradient_tape(tape, reduction="mean", group=_WORLD):
    """The tape, whose gradients are reduced over the ranks."""
    if _rank_size(group) > 1:
        plain = tape.gradient

        def gradient(target, sources, *args, **kwargs):
            made = plain(target, sources, *args, **kwargs)
            flat = _tf.nest.flatten(made)
            return _tf.nest.pack_sequence_as(made, _collectives.reduce_all(flat, reduction, group))

        tape.gradient = gradient
    return tape


def broadcast(values, root_rank=0, fusion=2, fusion_id=0, group=_WORLD):
    """Gives the variables rank `root_rank`'s values; of tensors, those values are returned."""
    if _rank_size(group) == 1:
        return values
    several = isinstance(values, (list, tuple))
    items = list(values) if several else [values]
    if all(isinstance(item, _tf.Variable) for item in items):
        _collectives.assign_from(root_rank, items, group)
        return values
    made = [_collectives.broadcast(_tf.convert_to_tensor(item), root_rank, group) for item in items]
    return made if several else made[0]


def shard_and_rebatch_dataset(dataset, global_batch_size):
    """(this rank's share, its batch size)"""
    if global_batch_size % _rank_size():
        raise ValueError(f"global_batch_size is {global_batch_size}, should be a multiple of the {_rank_size()} ranks")
    return dataset.shard(_rank_size(), _rank_id()), global_batch_size // _rank_size()


def npu_broadcast_scope_wrapper(strategy):
    """Variables that the strategy's scope makes get rank 0's values when it ends."""
    if _rank_size() == 1:
        return strategy
    plain = strategy.scope

    @_contextlib.contextmanager
    def scope():
        made = []

        def note(next_creator, **kwargs):
            made.append(next_creator(**kwargs))
            return made[-1]

        with plain() as inside, _tf.variable_creator_scope(note):
            yield inside
        if _tf.executing_eagerly():
            broadcast(made)

    strategy.scope = scope
    return strategy
