"""Collectives by the platform's names, in graphs and eager code. One rank has what it gives."""

import tensorflow.compat.v1 as tf

from hccl.manage.api import WORLD, get_rank_id, get_rank_size
from npu_bridge.hccl import collectives

REDUCTIONS = ("sum", "max", "min", "prod")


def _check_fusion(what, fusion, fusion_id):
    if fusion not in (0, 1, 2):
        raise ValueError(f"{what}: fusion is {fusion}, should be 0, 1 or 2")
    if fusion == 2 and fusion_id < 0:
        raise ValueError(f"{what}: fusion 2 needs a fusion_id of at least 0, found {fusion_id}")


def _check_reduction(what, reduction):
    if reduction not in REDUCTIONS:
        raise ValueError(f"{what}: reduction is {reduction}, should be one of: {', '.join(REDUCTIONS)}")


def _check_rank(what, name, rank, group):
    if not 0 <= rank < get_rank_size(group):
        raise ValueError(f"{what}: {name} is {rank}, there are {get_rank_size(group)} ranks")


def _check_size(what, rank_size, group):
    if rank_size != get_rank_size(group):
        raise ValueError(f"{what}: rank_size is {rank_size}, there are {get_rank_size(group)} ranks")


def _alone(group):
    get_rank_id(group)  # this rank is a member
    return get_rank_size(group) == 1


def allreduce(tensor, reduction, fusion=1, fusion_id=-1, group=WORLD):
    """In graphs those of equal fusion_id (fusion 2), and as many as fill a bucket (fusion 1), are one exchange, wherever none depends on
    another; 0: each by itself. Other collectives are exchanged one by one, whatever their `fusion`."""
    _check_reduction("allreduce", reduction)
    _check_fusion("allreduce", fusion, fusion_id)
    if _alone(group):
        return tf.identity(tensor, name="HcomAllReduce")
    return collectives.all_reduce_fused(tf.convert_to_tensor(tensor), reduction, group, fusion, fusion_id)


def allgather(tensor, rank_size, group=WORLD, fusion=0, fusion_id=-1):
    """Joined along axis 0, of which every rank gives the same number of rows."""
    _check_size("allgather", rank_size, group)
    _check_fusion("allgather", fusion, fusion_id)
    if _alone(group):
        return tf.identity(tensor, name="HcomAllGather")
    return collectives.all_gather(tf.convert_to_tensor(tensor), group)


def broadcast(tensor, root_rank, fusion=2, fusion_id=0, group=WORLD):
    """`tensor` is a list, the result too."""
    _check_rank("broadcast", "root_rank", root_rank, group)
    _check_fusion("broadcast", fusion, fusion_id)
    if not isinstance(tensor, (list, tuple)):
        raise TypeError(f"broadcast: tensor should be a list of tensors, found {type(tensor).__name__}")
    if _alone(group):
        return [tf.identity(item, name="HcomBroadcast") for item in tensor]
    return [collectives.broadcast(tf.convert_to_tensor(item), root_rank, group) for item in tensor]


def reduce(tensor, reduction, root_rank, fusion=0, fusion_id=-1, group=WORLD):
    """The reduction on rank `root_rank`, zeros on the others."""
    _check_reduction("reduce", reduction)
    _check_rank("reduce", "root_rank", root_rank, group)
    if _alone(group):
        return tf.identity(tensor, name="HcomReduce")
    return collectives.reduce(tf.convert_to_tensor(tensor), reduction, root_rank, group)


def reduce_scatter(tensor, reduction, rank_size, group=WORLD, fusion=0, fusion_id=-1):
    _check_reduction("reduce_scatter", reduction)
    _check_size("reduce_scatter", rank_size, group)
    if _alone(group):
        return tf.identity(tensor, name="HcomReduceScatter")
    return collectives.reduce_scatter(tf.convert_to_tensor(tensor), reduction, group)


def send(tensor, sr_tag, dest_rank, group=WORLD):
    """Rank `dest_rank` receives it with the same tag. Messages and collectives of a rank come in the order in which the script
    makes them."""
    if _alone(group):
        raise RuntimeError(f"send: rank {dest_rank} cannot be reached, there is one rank here")
    _check_rank("send", "dest_rank", dest_rank, group)
    collectives.apply("send", [tf.convert_to_tensor(tensor)], [], group, "HcomSend", root=dest_rank, tag=sr_tag)
    return None if tf.executing_eagerly() else tf.get_default_graph().get_operations()[-1]


def receive(shape, data_type, sr_tag, src_rank, group=WORLD):
    if _alone(group):
        raise RuntimeError(f"receive: rank {src_rank} cannot be reached, there is one rank here")
    _check_rank("receive", "src_rank", src_rank, group)
    shape, dtype = tf.TensorShape(shape), tf.as_dtype(data_type)
    (made,) = collectives.apply("receive", [], [dtype], group, "HcomReceive", root=src_rank, tag=sr_tag,
                                shape=shape.as_list(), dtype=dtype.as_datatype_enum)  # fmt: skip
    if not tf.executing_eagerly():
        made.set_shape(shape)
    return made


def _moved(data, count, send_offset, receive_offset, received):
    """What one rank receives from itself: `count` elements, placed at an offset among `received` ones."""
    part = tf.reshape(data, [-1])[send_offset : send_offset + count]
    after = tf.maximum(received - receive_offset - count, 0)
    return tf.concat([tf.zeros([receive_offset], part.dtype), part, tf.zeros([after], part.dtype)], 0)


def all_to_all_v(send_data, send_counts, send_displacements, recv_counts, recv_displacements, group=WORLD):
    lists = [tf.cast(tf.reshape(tf.convert_to_tensor(each), [-1]), tf.int64)
             for each in (send_counts, send_displacements, recv_counts, recv_displacements)]  # fmt: skip
    if not _alone(group):
        return collectives.all_to_all_v(tf.reshape(send_data, [-1]), lists, group)
    count, offset, received, place = (tf.cast(each[0], tf.int32) for each in lists)
    return _moved(send_data, count, offset, place, received + place)


def all_to_all_v_c(send_data, send_count_matrix, rank, fusion=0, fusion_id=-1, group=WORLD):
    """Row i of the matrix: how many elements rank i sends to each; they lie one behind the other."""
    size = get_rank_size(group)
    matrix = tf.reshape(tf.cast(tf.convert_to_tensor(send_count_matrix), tf.int64), [size, size])
    if _alone(group):
        return tf.reshape(send_data, [-1])[: matrix[0, 0]]
    _check_rank("all_to_all_v_c", "rank", rank, group)
    sent, received = matrix[rank], matrix[:, rank]
    places = [tf.cumsum(each, exclusive=True) for each in (sent, received)]
    return collectives.all_to_all_v(tf.reshape(send_data, [-1]), [sent, places[0], received, places[1]], group)


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
