"""Small helpers that scripts call through `util.`: steps per run, per-graph options, checks of values."""

import os

import tensorflow.compat.v1 as tf
from tensorflow.core.framework import attr_value_pb2

from npu_bridge import environment, sessions

_RUN_CONFIG = "npu_runconfig"
_values = {}


def check_not_none(value, name):
    if value is None:
        raise ValueError(f"{name} must not be None")


def _check_integer(value, name):
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be int, got {type(value)}")


def check_positive_integer(value, name):
    _check_integer(value, name)
    if value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")


def check_nonnegative_integer(value, name):
    _check_integer(value, name)
    if value < 0:
        raise ValueError(f"{name} must be nonnegative, got {value}")


def check_bool_type(value, name):
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value}")


def convert_bool_to_int(value):
    return int(value) if isinstance(value, bool) else -1


def format_string(value, name):
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be string, got {type(value)}")
    return value


def check_profiling_options(profiling_options=()):
    """The options joined by ":"."""
    known = ("training_trace", "task_trace", "op_trace")
    if not profiling_options or any(option not in known for option in profiling_options):
        raise ValueError("profiling options must be in `training_trace`, `task_trace` or `op_trace`")
    return ":".join(profiling_options)


def check_path(path):
    """The real path of an existing folder that can be read and written."""
    if path is None:
        raise ValueError("if use dump function, dump_path must be set.")
    if not os.path.exists(path):
        raise ValueError(f"path:{path} is not exists.")
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise ValueError(f"path:{path} is not directory.")
    if not os.access(real, os.R_OK | os.W_OK):
        raise ValueError(f"path:{path} is not read and write permissions.")
    return real


def check_mstune_mode(mstune_mode):
    if mstune_mode not in ("1", "2", "3", "4"):
        raise ValueError("mstune_mode is valid, should be in ['1', '2', '3', '4']")


def create_or_get_var(var_name):
    """One of the int64 local variables that carry the number of steps on the platform."""
    collection = f"{_RUN_CONFIG}_{var_name}"
    found = tf.get_default_graph().get_collection(collection)
    if len(found) > 1:
        raise RuntimeError("Multiple var in collection.")
    if found:
        return found[0]
    with tf.variable_scope(_RUN_CONFIG, reuse=tf.AUTO_REUSE), tf.control_dependencies(None):
        return tf.get_variable(var_name, shape=[], dtype=tf.int64, initializer=tf.zeros_initializer(), trainable=False,
                               collections=[collection, tf.GraphKeys.LOCAL_VARIABLES], use_resource=True)  # fmt: skip


def _loop_variables():
    return [create_or_get_var(name) for name in ("iterations_per_loop", "loop_cond", "zero", "one")]


def _check_train_op(train_op):
    if not isinstance(train_op, tf.Operation):
        raise ValueError(f"The incoming 'train_op' type is '{train_op.dtype.name}', and the need type is 'Operation'")


class IterationPerLoop:
    """Several training steps in one run, in two calls: make the op with the graph, load the number with the session."""

    def create_iteration_per_loop_var(self, train_op):
        _check_train_op(train_op)
        self._variables = _loop_variables()
        self._operation = tf.group(train_op, name="IterationOp")
        return self._operation

    def load_iteration_per_loop_var(self, sess, iterations_per_loop=1):
        check_positive_integer(iterations_per_loop, "iterations_per_loop")
        for variable, value in zip(self._variables, (iterations_per_loop - 1, 0, 0, 1)):
            variable.load(value, session=sess)
        sessions.set_steps(self._operation, iterations_per_loop)


def set_iteration_per_loop(sess, train_op, iterations_per_loop=1):
    """An op that runs `train_op` that many times in each run. A train op that is to run once is returned as it is."""
    _check_train_op(train_op)
    check_positive_integer(iterations_per_loop, "iterations_per_loop")
    if iterations_per_loop == 1:
        return train_op
    loop = IterationPerLoop()
    operation = loop.create_iteration_per_loop_var(train_op)
    loop.load_iteration_per_loop_var(sess, iterations_per_loop)
    return operation


def variable_initializer_in_host(var_list):
    return tf.initializers.variables(var_list, name="var_in_host")


def set_graph_exec_config(fetch, dynamic_input=False, dynamic_graph_execute_mode="dynamic_execute",
                          dynamic_inputs_shape_range=None, is_train_graph=False, experimental_config=None):  # fmt: skip
    """Stamps options of one graph on what is fetched from it: an op, a tensor, a list or tuple of them, a tensor's name."""
    if dynamic_graph_execute_mode not in ("lazy_recompile", "dynamic_execute"):
        raise ValueError("dynamic_graph_execute_mode should be lazy_recompile or dynamic_execute")
    if isinstance(fetch, (list, tuple)):
        for item in fetch:
            set_graph_exec_config(item, dynamic_input, dynamic_graph_execute_mode, dynamic_inputs_shape_range,
                                  is_train_graph, experimental_config)  # fmt: skip
        return fetch
    if isinstance(fetch, str):
        fetch = tf.get_default_graph().get_tensor_by_name(fetch)
    if not isinstance(fetch, (tf.Operation, tf.Tensor)):
        raise ValueError("fetch is invalid, should be op, tensor, list, tuple or tensor name.")
    memory = getattr(experimental_config, "_graph_memory_optimize_config", None)
    _set_attributes(
        fetch if isinstance(fetch, tf.Operation) else fetch.op,
        _graph_dynamic_input=dynamic_input,
        _graph_dynamic_graph_execute_mode=dynamic_graph_execute_mode,
        _graph_dynamic_inputs_shape_range=dynamic_inputs_shape_range or "",
        _is_train_graph=is_train_graph,
        _recompute_mode=getattr(memory, "_recompute", None) or "",
    )
    return fetch


def _set_attributes(operation, **attributes):
    for name, value in attributes.items():
        kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "s"
        field = attr_value_pb2.AttrValue(**{kind: value.encode() if kind == "s" else value})
        operation._set_attr(name, field)


def npu_compile(sess, *fetches):
    sess.run(fetches)


def keep_tensors_dtypes(graph, input_tensors):
    """The ops that make these tensors (or have these names) keep their types in a mixed precision mode."""
    for item in input_tensors:
        tensor = graph.get_tensor_by_name(item) if isinstance(item, str) else item
        _set_attributes(tensor.op, _keep_dtype=1)


def set_op_input_tensor_multi_dims(tensor, input_shape, input_dims):
    _set_attributes(tensor.op, _subgraph_multi_dims_input_shape=input_shape, _subgraph_multi_dims_input_dims=input_dims)


def set_op_tensor_max_range(tensor, max_shape):
    _set_attributes(tensor.op, _op_max_shape=max_shape)


def set_op_tensor_max_size(tensor, max_size):
    _set_attributes(tensor.op, _op_max_size=str(max_size))


def get_ranksize():
    """The number of ranks, as a string."""
    return str(environment.rank_size())


def global_dict_init():
    _values.clear()


def set_value(key, value):
    _values[key] = value


def get_value(key, def_value=None):
    return _values.get(key, def_value)
