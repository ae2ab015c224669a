"""The operator CairnCollective in graphs, functions and eager code, its gradients, and gradients reduced in buckets. In a graph
each collective has a number, by which the engine's pass gives all of them one order that all ranks share."""

import itertools
import os

import tensorflow.compat.v1 as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from hccl.manage.api import WORLD, get_rank_id, get_rank_size
from hccl.split.api import strategy
from npu_bridge import engine, environment
from npu_bridge.user_ops import _apply

_order = itertools.count(1)
_DEFAULTS = {"reduction": "sum", "root": 0, "tag": 0, "dtype": tf.float32.as_datatype_enum, "shape": [], "names": [], "order": 0,
             "fusion": 0, "fusion_id": -1, "bytes": 0, "bucket": 0}  # fmt: skip


def apply(kind, inputs, types_out, group=WORLD, name=None, **attributes):
    """The results of one collective."""
    environment.join()
    engine.load_collectives()
    attributes = {**_DEFAULTS, "kind": kind, "group": group, "ranks": get_rank_size(group), **attributes}
    if not context.executing_eagerly():
        attributes["order"] = next(_order)
    return _apply("CairnCollective", inputs, types_out, attributes, name)


def all_reduce(tensors, reduction, group=WORLD, names=(), name="HcomAllReduce", **fusion):
    """A list of tensors of one type, reduced together."""
    made = apply("all_reduce", tensors, [each.dtype for each in tensors], group, name, reduction=reduction, names=list(names), **fusion)
    return [_shaped(result, tensor.shape) for result, tensor in zip(made, tensors)]


def all_reduce_fused(tensor, reduction, group, fusion, fusion_id):
    """One tensor, which the engine's pass puts together with others of the graph."""
    bytes_ = (tensor.shape.num_elements() or 0) * tensor.dtype.size
    return all_reduce([tensor], reduction, group, fusion=fusion, fusion_id=fusion_id, bytes=bytes_, bucket=_bucket_bytes())[0]


def all_gather(tensor, group=WORLD, name="HcomAllGather"):
    (made,) = apply("all_gather", [tensor], [tensor.dtype], group, name)
    return _shaped(made, _with_rows(tensor.shape, lambda rows: rows * get_rank_size(group)))


def reduce_scatter(tensor, reduction, group=WORLD, name="HcomReduceScatter"):
    (made,) = apply("reduce_scatter", [tensor], [tensor.dtype], group, name, reduction=reduction)
    return _shaped(made, _with_rows(tensor.shape, lambda rows: rows // get_rank_size(group)))


def broadcast(tensor, root, group=WORLD, name="HcomBroadcast"):
    (made,) = apply("broadcast_from", [tensor], [tensor.dtype], group, name, root=root)
    return _shaped(made, tensor.shape)


def reduce(tensor, reduction, root, group=WORLD, name="HcomReduce"):
    (made,) = apply("reduce_to", [tensor], [tensor.dtype], group, name, reduction=reduction, root=root)
    return _shaped(made, tensor.shape)


def all_to_all_v(tensor, counts, group=WORLD, name="HcomAllToAllV"):
    """`counts`: how many elements are sent and from where, how many received and to where, for each rank."""
    (made,) = apply("all_to_all_v", [tensor, *counts], [tensor.dtype], group, name)
    return _shaped(made, tf.TensorShape([None]))


def gather_rows(tensor, group=WORLD):
    """The rows of all ranks, whose numbers may differ, in the order of ranks."""
    if tensor.shape.rank and tensor.shape[0] is not None and not context.executing_eagerly():
        return all_gather(tensor, group)
    counts = all_gather(tf.shape(tensor)[:1], group)
    most = tf.reduce_max(counts)
    padding = tf.concat([[[0, most - tf.shape(tensor)[0]]], tf.zeros([tf.rank(tensor) - 1, 2], tf.int32)], 0)
    gathered = all_gather(tf.pad(tensor, padding), group)
    kept = tf.reshape(tf.sequence_mask(counts, most), [-1])
    return tf.boolean_mask(_shaped(gathered, _with_rows(tensor.shape, lambda rows: None)), kept)


def _shaped(tensor, shape):
    if not context.executing_eagerly():
        tensor.set_shape(shape)
    return tensor


def _with_rows(shape, change):
    if not shape.rank:
        return shape
    rows = shape.as_list()[0]
    return tf.TensorShape([None if rows is None else change(rows), *shape.as_list()[1:]])


# Gradients.


def _all_reduce_gradient(op, group, dys):
    reduction = tf.compat.as_str(op.get_attr("reduction"))
    dys = [tf.zeros_like(y) if dy is None else dy for y, dy in zip(op.outputs, dys)]
    if reduction in ("sum", "mean"):
        return all_reduce(dys, reduction, group)
    sums = all_reduce(dys, "sum", group)
    if reduction in ("max", "min"):
        return [tf.where(tf.equal(x, y), dy, tf.zeros_like(dy)) for x, y, dy in zip(op.inputs, op.outputs, sums)]
    return [_product_of_others(x, group) * dy for x, dy in zip(op.inputs, sums)]


def _product_of_others(x, group):
    every, rank = all_gather(x[tf.newaxis], group), get_rank_id(group)
    return tf.reduce_prod(tf.concat([every[:rank], every[rank + 1 :]], 0), 0)


def _reduced_gradient(op, gathered, group):
    reduction = tf.compat.as_str(op.get_attr("reduction"))
    if reduction not in ("sum", "mean"):
        raise LookupError(f"{op.name}: {reduction} has no gradient here, only sum and mean")
    return gathered if reduction == "sum" else gathered / tf.cast(get_rank_size(group), gathered.dtype)


def _root(op):
    return op.get_attr("root")


_GRADIENTS = {
    "all_gather": lambda op, group, dy: [reduce_scatter(dy, "sum", group)],
    "reduce_scatter": lambda op, group, dy: [_reduced_gradient(op, all_gather(dy, group), group)],
    "broadcast_from": lambda op, group, dy: [reduce(dy, "sum", _root(op), group)],
    "reduce_to": lambda op, group, dy: [_reduced_gradient(op, broadcast(dy, _root(op), group), group)],
    "all_to_all": lambda op, group, dy: apply("all_to_all", [dy], [dy.dtype], group),
    "all_to_all_v": lambda op, group, dy: [_all_to_all_v_gradient(op, group, dy), None, None, None, None],
}


def _all_to_all_v_gradient(op, group, dy):
    data, *counts = op.inputs
    back = all_to_all_v(dy, [counts[2], counts[3], counts[0], counts[1]], group)
    return tf.pad(back, [[0, tf.size(data) - tf.size(back)]])


@ops.RegisterGradient("CairnCollective")
def _gradient(op, *dys):
    kind, group = tf.compat.as_str(op.get_attr("kind")), tf.compat.as_str(op.get_attr("group"))
    if kind == "all_reduce":
        return _all_reduce_gradient(op, group, dys)
    if kind not in _GRADIENTS:
        raise LookupError(f"{op.name}: {kind} has no gradient")
    return _GRADIENTS[kind](op, group, dys[0])


# Gradients of variables.


def reduce_all(tensors, reduction="mean", group=WORLD, names=None):
    """Each tensor reduced over the ranks; None stays None, and of IndexedSlices the slices of all ranks are gathered. The last
    gradients, which the backward pass makes first, are reduced first, those of embeddings, which it makes last, after all others."""
    results = list(tensors)
    names = names or [""] * len(results)
    dense, sparse = {}, []
    for i in reversed(range(len(results))):
        if isinstance(results[i], tf.IndexedSlices):
            sparse.append(i)
        elif results[i] is not None:
            results[i] = tf.convert_to_tensor(results[i])
            dense.setdefault(results[i].dtype, []).append(i)
    for indices in dense.values():
        for bucket in _buckets(indices, results, group):
            made = all_reduce([results[i] for i in bucket], reduction, group, [names[i] for i in bucket])
            for i, tensor in zip(bucket, made):
                results[i] = tensor
    for i in sparse:
        results[i] = _gather_slices(results[i], reduction, group)
    return results


def _gather_slices(slices, reduction, group):
    if reduction not in ("sum", "mean"):
        raise ValueError(f"sparse gradients are reduced by sum or mean, not by {reduction}")
    values, indices = gather_rows(slices.values, group), gather_rows(slices.indices, group)
    if reduction == "mean":
        values = values / tf.cast(get_rank_size(group), values.dtype)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def _buckets(indices, tensors, group):
    """Cuts the list by hccl.split.api's strategy for the group, else by bytes."""
    sizes = [(tensors[i].shape.num_elements() or 0) * tensors[i].dtype.size for i in indices]
    kind, numbers = strategy(group) or ("bytes", [_bucket_bytes()])
    buckets, held, before, borders = [[]], 0, 0, list(numbers)
    for place, (index, size) in enumerate(zip(indices, sizes)):
        if kind == "bytes" and buckets[-1] and held + size > borders[0]:
            buckets.append([])
            held = 0
        buckets[-1].append(index)
        held, before = held + size, before + size
        if kind == "index" and borders and place >= borders[0]:
            borders.pop(0)
            buckets.append([])
        elif kind == "size" and borders and before * 100 >= sum(numbers[: len(numbers) - len(borders) + 1]) * sum(sizes):
            borders.pop(0)
            buckets.append([])
    return [bucket for bucket in buckets if bucket]


def _bucket_bytes():
    text = os.getenv("FUSION_TENSOR_SIZE")
    if text:
        return environment.natural("FUSION_TENSOR_SIZE", text)
    from cairn import job

    return job.describe()["bucket_bytes"]


def all_agree(verdict):
    """True where it is on every rank: what one rank leaves out, all leave out."""
    return all_reduce([verdict], "min", name="AllRanksAgree")[0] if get_rank_size() > 1 else verdict


def assign_from(root, variables, group=WORLD):
    """An op that gives the variables rank `root`'s values."""
    parts = [part for v in variables for part in getattr(v, "values", (v,))]  # of a strategy's variable: one a replica
    taken = [v for v in parts if v.dtype.base_dtype not in (tf.string, tf.resource, tf.variant)]
    values = [broadcast(v.read_value(), root, group) for v in taken]
    return tf.group(*[v.assign(value, read_value=False) if hasattr(v, "handle") else tf.assign(v, value)
                      for v, value in zip(taken, values)])  # fmt: skip
