"""tf.contrib.util: protos from and to values, op libraries."""

import types

import tensorflow.compat.v1 as tf
from tensorflow.python.framework.tensor_util import constant_value, make_ndarray, make_tensor_proto  # noqa: F401

ops_used_by_graph_def = lambda graph_def: sorted({node.op for node in graph_def.node})
loader = types.SimpleNamespace(load_op_library=tf.load_op_library)
