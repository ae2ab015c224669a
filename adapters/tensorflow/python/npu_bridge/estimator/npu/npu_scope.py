"""Context managers that stamp attributes on the nodes made inside them; the engine's passes read them."""

import contextlib
import enum

import tensorflow.compat.v1 as tf
from tensorflow.core.framework import attr_value_pb2

from npu_bridge.estimator.npu.npu_config import NpuExecutePlacement


@contextlib.contextmanager
def _stamp(**attributes):
    fields = {}
    for name, value in attributes.items():
        value = value.value if isinstance(value, enum.Enum) else value
        kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "s"
        fields[name] = attr_value_pb2.AttrValue(**{kind: value.encode() if kind == "s" else value})
    with tf.get_default_graph()._attr_scope(fields):
        yield


def without_npu_compile_scope():
    """Nodes stay with TensorFlow."""
    return _stamp(_without_npu_compile=True)


def keep_dtype_scope():
    """Nodes keep their types in a mixed precision mode."""
    return _stamp(_keep_dtype=1)


def npu_variable_scope(placement=NpuExecutePlacement.ALL):
    return _stamp(_variable_placement=placement)


def npu_stage_scope(stage):
    return _stamp(_stage_level=stage)


def npu_mem_type_scope():
    return _stamp(_output_memory_type=1)


def npu_weight_prefetch_scope(buffer_pool_id=0, buffer_pool_size=536870912):
    return _stamp(_buffer_pool_id=buffer_pool_id, _buffer_pool_size=buffer_pool_size)


def op_specified_engine_scope(engine_name, kernel_lib_name):
    return _stamp(_specified_engine_name=engine_name, _specified_kernel_lib_name=kernel_lib_name)


def npu_qos_label_scope(label):
    return _stamp(_qos_service_label=label)


def subgraph_multi_dims_scope(index):
    return _stamp(_subgraph_multi_dims_index=index)


def npu_optimizer_scope():
    return _stamp(_optimizer=True)


def npu_recompute_scope():
    return tf.name_scope("NpuRecompute")


_slices = {"next": 0}


def npu_graph_slice_scope(slice_num=None):
    number = _slices["next"]
    _slices["next"] += 1
    return tf.name_scope(f"SliceNum-{slice_num or 0}-NpuGraphSlicing{number}")
