"""tf.contrib.util: protos from and to values, op libraries."""

import types

import tensorflow.compat.v1 as tf

make_tensor_proto, make_ndarray, constant_value = tf.make_tensor_proto, tf.make_ndarray, tf.get_static_value
ops_used_by_graph_def = lambda graph_def: sorted({node.op for node in graph_def.node})
loader = types.SimpleNamespace(load_op_library=tf.load_op_library)
