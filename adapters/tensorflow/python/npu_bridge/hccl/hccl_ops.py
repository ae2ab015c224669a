"""Collectives as graph operations, exact for one rank: a reduction of one value is that value, a gather of one is itself."""

import tensorflow.compat.v1 as tf

from hccl.manage.api import WORLD, get_rank_size
from npu_bridge import environment

REDUCTIONS = ("sum", "max", "min", "prod")


def _alone(what, group):
    if get_rank_size(group) > 1:
        environment.require_one_rank(what)


def _check_fusion(what, fusion, fusion_id):
    if fusion not in (0, 1, 2):
        raise ValueError(f"{what}: fusion is {fusion}, should be 0, 1 or 2")
    if fusion == 2 and fusion_id < 0:
        raise ValueError(f"{what}: fusion 2 needs a fusion_id of at least 0, found {fusion_id}")


def _check_reduction(what, reduction):
    if reduction not in REDUCTIONS:
        raise ValueError(f"{what}: reduction is {reduction}, should be one of: {', '.join(REDUCTIONS)}")


def _check_root(what, root_rank, group):
    if not 0 <= root_rank < get_rank_size(group):
        raise ValueError(f"{what}: root_rank is {root_rank}, there are {get_rank_size(group)} ranks")


def allreduce(tensor, reduction, fusion=1, fusion_id=-1, group=WORLD):
    _check_reduction("allreduce", reduction)
    _check_fusion("allreduce", fusion, fusion_id)
    _alone("allreduce", group)
    return tf.identity(tensor, name="HcomAllReduce")


def allgather(tensor, rank_size, group=WORLD, fusion=0, fusion_id=-1):
    if rank_size != get_rank_size(group):
        raise ValueError(f"allgather: rank_size is {rank_size}, there are {get_rank_size(group)} ranks")
    _check_fusion("allgather", fusion, fusion_id)
    _alone("allgather", group)
    return tf.identity(tensor, name="HcomAllGather")


def broadcast(tensor, root_rank, fusion=2, fusion_id=0, group=WORLD):
    """`tensor` is a list, the result too."""
    _check_root("broadcast", root_rank, group)
    _check_fusion("broadcast", fusion, fusion_id)
    _alone("broadcast", group)
    if not isinstance(tensor, (list, tuple)):
        raise TypeError(f"broadcast: tensor should be a list of tensors, found {type(tensor).__name__}")
    return [tf.identity(item, name="HcomBroadcast") for item in tensor]


def reduce(tensor, reduction, root_rank, fusion=0, fusion_id=-1, group=WORLD):
    _check_reduction("reduce", reduction)
    _check_root("reduce", root_rank, group)
    _check_fusion("reduce", fusion, fusion_id)
    _alone("reduce", group)
    return tf.identity(tensor, name="HcomReduce")


def reduce_scatter(tensor, reduction, rank_size, group=WORLD, fusion=0, fusion_id=-1):
    _check_reduction("reduce_scatter", reduction)
    if rank_size != get_rank_size(group):
        raise ValueError(f"reduce_scatter: rank_size is {rank_size}, there are {get_rank_size(group)} ranks")
    _alone("reduce_scatter", group)
    return tf.identity(tensor, name="HcomReduceScatter")


def send(tensor, sr_tag, dest_rank, group=WORLD):
    raise RuntimeError(f"send: rank {dest_rank} cannot be reached, there is one rank here")


def receive(shape, data_type, sr_tag, src_rank, group=WORLD):
    raise RuntimeError(f"receive: rank {src_rank} cannot be reached, there is one rank here")


def _moved(data, count, send_offset, receive_offset, received):
    """What one rank receives from itself: `count` elements, placed at an offset among `received` ones."""
    part = tf.reshape(data, [-1])[send_offset : send_offset + count]
    after = tf.maximum(received - receive_offset - count, 0)
    return tf.concat([tf.zeros([receive_offset], part.dtype), part, tf.zeros([after], part.dtype)], 0)


def all_to_all_v(send_data, send_counts, send_displacements, recv_counts, recv_displacements, group=WORLD):
    _alone("all_to_all_v", group)
    first = lambda values: tf.cast(tf.reshape(tf.convert_to_tensor(values), [-1])[0], tf.int32)
    count, offset = first(send_counts), first(recv_displacements)
    return _moved(send_data, count, first(send_displacements), offset, first(recv_counts) + offset)


def all_to_all_v_c(send_data, send_count_matrix, rank, fusion=0, fusion_id=-1, group=WORLD):
    _alone("all_to_all_v_c", group)
    count = tf.cast(tf.reshape(tf.convert_to_tensor(send_count_matrix), [-1])[0], tf.int32)
    return tf.reshape(send_data, [-1])[:count]


def gather_all_to_all_v(*args, **kwargs):
    raise NotImplementedError("gather_all_to_all_v: remote memory is not supported")


def remote_read(*args, **kwargs):
    raise NotImplementedError("remote_read: remote memory is not supported")


def remote_ref_read(*args, **kwargs):
    raise NotImplementedError("remote_ref_read: remote memory is not supported")


def remote_write(*args, **kwargs):
    raise NotImplementedError("remote_write: remote memory is not supported")


def remote_scatter_write(*args, **kwargs):
    raise NotImplementedError("remote_scatter_write: remote memory is not supported")
