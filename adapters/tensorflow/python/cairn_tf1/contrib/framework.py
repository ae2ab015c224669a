"""tf.contrib.framework: variables, argument scopes, checkpoints."""

import tensorflow.compat.v1 as tf
import tf_slim
from tensorflow.python.framework.smart_cond import smart_cond, smart_constant_value  # noqa: F401
from tensorflow.python.ops.control_flow_case import case as smart_case  # noqa: F401
from tensorflow.python.training.checkpoint_utils import (  # noqa: F401
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tensorflow.python.util import nest  # noqa: F401
from tensorflow.python.util.deprecation import (  # noqa: F401
    deprecated,
    deprecated_arg_values,
    deprecated_args,
)
from tf_slim.ops.arg_scope import (  # noqa: F401
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tf_slim.ops.framework_ops import get_graph_from_inputs, get_name_scope  # noqa: F401
from tf_slim.ops import variables  # noqa: F401
from tf_slim.ops.variables import *  # noqa: F403

arg_scope_func_key = tf_slim.arg_scope_func_key
sort, argsort = tf.sort, tf.argsort
is_tensor, is_strictly_increasing, is_non_decreasing = tf.is_tensor, tf.is_strictly_increasing, tf.is_non_decreasing
is_numeric_tensor = tf.is_numeric_tensor
assert_scalar = tf.assert_scalar
assert_same_float_dtype = tf.assert_same_float_dtype


def convolutional_delta_orthogonal(gain=1.0, seed=None, dtype=tf.float32):
    raise NotImplementedError("tf.contrib.framework.convolutional_delta_orthogonal is not supported")


def with_shape(expected_shape, tensor):
    """The tensor, after a check of its shape."""
    tensor = tf.convert_to_tensor(tensor)
    static = tf.get_static_value(expected_shape) if tf.is_tensor(expected_shape) else expected_shape
    if static is not None and tensor.shape.is_fully_defined():
        tensor.shape.assert_is_compatible_with(static)
        return tensor
    with tf.control_dependencies([tf.assert_equal(tf.shape(tensor), expected_shape)]):
        return tf.identity(tensor)


def with_same_shape(expected_tensor, tensor):
    return with_shape(tf.shape(expected_tensor), tensor)


def reduce_sum_n(tensors, name=None):
    """The sum of all elements of all tensors."""
    with tf.name_scope(name, "reduce_sum_n", tensors):
        return tf.add_n([tf.reduce_sum(tensor) for tensor in tensors])


def remove_squeezable_dimensions(predictions, labels, name=None):
    """Drops the last dimension of the one that has one more than the other, when it is 1."""
    with tf.name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        more = (predictions.shape.rank or 0) - (labels.shape.rank or 0)
        if more == 1:
            return tf.squeeze(predictions, [-1]), labels
        return (predictions, tf.squeeze(labels, [-1])) if more == -1 else (predictions, labels)


def zero_initializer(ref, use_locking=True, name="zero_initializer"):
    """An op that sets a variable to zeros."""
    return tf.assign(ref, tf.zeros(ref.shape, ref.dtype.base_dtype), use_locking=use_locking, name=name)
