"""tf.contrib.graph_editor: walks through a graph, choices of its tensors and operators, copies of a part, and new inputs for
consumers; what scripts that recompute activations use."""

import re

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.op_selector import (  # noqa: F401
    get_backward_walk_ops,
    get_consuming_ops,
    get_generating_ops,
    get_tensors,
    make_list_of_op,
    make_list_of_t,
)


def get_forward_walk_ops(seed_ops, inclusive=True, within_ops=None, within_ops_fn=None, stop_at_ts=(), control_outputs=None):
    """The operators that use the seeds' results, and theirs in turn. Tensors as seeds stand for their consumers."""
    if control_outputs is not None:
        raise NotImplementedError("get_forward_walk_ops: control_outputs is not supported")
    seeds = seed_ops if isinstance(seed_ops, (list, tuple)) else [seed_ops]
    if seeds and tf.is_tensor(seeds[0]):
        seeds = get_consuming_ops(make_list_of_t(seeds, allow_graph=False))
    else:
        seeds = make_list_of_op(seeds, allow_graph=False)
    stop = {id(tensor) for tensor in make_list_of_t(stop_at_ts)}
    within = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))
    allowed = lambda op: (within is None or op in within) and (within_ops_fn is None or within_ops_fn(op))
    found, waiting = dict.fromkeys(op for op in seeds if allowed(op)), [op for op in seeds if allowed(op)]
    while waiting:
        for tensor in waiting.pop(0).outputs:
            for op in () if id(tensor) in stop else tensor.consumers():
                if op not in found and allowed(op):
                    found[op] = None
                    waiting.append(op)
    return [op for op in found if inclusive or op not in seeds]


def filter_ops(ops, positive_filter):
    ops = make_list_of_op(ops)
    return ops if positive_filter is True else [op for op in ops if positive_filter(op)]


def filter_ops_from_regex(ops, regex):
    """Operators in whose names the expression is found."""
    return filter_ops(ops, lambda op: re.search(regex, op.name))


def filter_ts(ops, positive_filter):
    """Inputs and results of the operators, each once."""
    tensors = dict.fromkeys(tensor.ref() for op in make_list_of_op(ops) for tensor in (*op.inputs, *op.outputs))
    return [each.deref() for each in tensors if positive_filter is True or positive_filter(each.deref())]


def filter_ts_from_regex(ops, regex):
    return filter_ts(ops, lambda tensor: re.search(regex, tensor.op.name))


def reroute_ts(ts0, ts1, can_modify=None, cannot_modify=None):
    """Consumers of each tensor of ts1 get the one of ts0 instead; answers how many inputs were changed."""
    can = None if can_modify is None else set(make_list_of_op(can_modify))
    cannot = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
    changed = 0
    for new, old in zip(make_list_of_t(ts0), make_list_of_t(ts1)):
        for op in old.consumers():
            if op in cannot or (can is not None and op not in can):
                continue
            for index, tensor in enumerate(op.inputs):
                if tensor is old:
                    op._update_input(index, new)
                    changed += 1
    return changed


class SubGraphView:
    """Some operators of one graph; `inputs` come from outside of them, `outputs` are used outside."""

    def __init__(self, inside_ops=()):
        self.ops = list(dict.fromkeys(make_list_of_op(list(inside_ops))))
        inside = set(self.ops)
        self.inputs = [t for t in filter_ts(self.ops, True) if t.op not in inside]
        results = [t for op in self.ops for t in op.outputs]
        self.outputs = [t for t in results if not t.consumers() or any(op not in inside for op in t.consumers())]
        self.graph = self.ops[0].graph if self.ops else None


def sgv(*args, graph=None, **kwargs):
    """A view of operators, given one by one or in lists."""
    if kwargs:
        raise NotImplementedError(f"sgv: {', '.join(sorted(kwargs))} is not supported")
    return SubGraphView([op for each in args for op in make_list_of_op(each)])


make_view = sgv


class TransformerInfo:
    """What became of each operator and tensor of a copied part."""

    def __init__(self, ops):
        self._transformed_ops = ops

    def transformed(self, original, missing_fn=None):
        if isinstance(original, SubGraphView):
            return SubGraphView([self._transformed_ops[op] for op in original.ops])
        if isinstance(original, (list, tuple)):
            return [self.transformed(each, missing_fn) for each in original]
        op = self._transformed_ops.get(original.op if tf.is_tensor(original) else original)
        if op is None:
            return missing_fn(original) if missing_fn else None
        return op.outputs[original.value_index] if tf.is_tensor(original) else op


def copy_with_input_replacements(sgv, replacement_ts, dst_graph=None, dst_scope="", src_scope="", reuse_dst_scope=False):
    """(a copy of the part in the same graph, what became of what): inputs that `replacement_ts` names are others in the copy, a
    dict from tensors or their names; the rest is shared."""
    view = sgv if isinstance(sgv, SubGraphView) else SubGraphView(make_list_of_op(sgv))
    if (dst_graph is not None and dst_graph is not view.graph) or src_scope:
        raise NotImplementedError("copy_with_input_replacements: another graph, or src_scope, is not supported")
    replaced = {key if isinstance(key, str) else key.name: value for key, value in replacement_ts.items()}
    part = tf.GraphDef(versions=view.graph.as_graph_def().versions)
    part.node.extend(op.node_def for op in view.ops)
    inside = {op.name for op in view.ops}
    outside = {t.name: replaced.get(t.name, t) for t in view.inputs}
    control = {f"^{c.name}": c for op in view.ops for c in op.control_inputs if c.name not in inside}
    with view.graph.as_default():
        scope = dst_scope or view.graph.unique_name("copy", mark_as_used=False)
        made = tf.import_graph_def(part, {**outside, **control}, [op.name for op in view.ops], scope)
    copied = dict(zip(view.ops, made))
    return SubGraphView(list(copied.values())), TransformerInfo(copied)


def copy(sgv, dst_graph=None, dst_scope="", src_scope="", reuse_dst_scope=False):
    return copy_with_input_replacements(sgv, {}, dst_graph, dst_scope, src_scope, reuse_dst_scope)
