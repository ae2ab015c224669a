"""Where names of TensorFlow 1, and of the NumPy and Python of its time, are to be found now: the lists behind the alias."""

import importlib
import sys
import types

# fmt: off
# Private modules that moved as a whole.
MODULES = {
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
    "tensorflow.python.training.tracking.base": "tensorflow.python.trackable.base",
    "tensorflow.python.training.distribute": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.distribute.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.ops.spectral_ops": "tensorflow.python.ops.signal.fft_ops",
    "tensorflow.python.keras._impl.keras.backend": "keras.api._v1.keras.backend",
    **{f"{keras}.{old}": new for keras in ("tensorflow.python.keras", "keras.src") for old, new in (
        *((f"layers.{layers}", "keras.src.layers.rnn") for layers in
          ("recurrent", "recurrent_v2", "cudnn_recurrent", "convolutional_recurrent", "wrappers")),
        ("layers.merge", "keras.src.layers.merging"),
        ("layers.advanced_activations", "keras.src.layers.activation"),
        ("layers.embeddings", "keras.src.layers.core.embedding"),
        ("layers.local", "keras.src.layers.locally_connected"),
        ("engine.topology", "keras.src.engine"),
        ("objectives", "keras.src.losses"),
        ("backend.tensorflow_backend", "keras.api._v1.keras.backend"),
    )},
}

# fmt: on
# Parts of tf.contrib that are answered by another module.
CONTRIB = {
    "slim.nets": "tf_slim.nets",
    "slim.python.slim.nets": "tf_slim.nets",
    "slim.python.slim.learning": "tf_slim.learning",
    "slim.python.slim.evaluation": "tf_slim.evaluation",
    "slim.python.slim.data": "tf_slim.data",
    "layers.python.layers": "cairn_tf1.contrib.layers",
    "layers.python.layers.utils": "tf_slim.layers.utils",
    "layers.python.layers.regularizers": "tf_slim.layers.regularizers",
    "layers.python.layers.initializers": "tf_slim.layers.initializers",
    "layers.python.layers.layers": "tf_slim.layers.layers",
    "framework.python.ops.arg_scope": "tf_slim.ops.arg_scope",
    "framework.python.ops.variables": "tf_slim.ops.variables",
    "tpu.python.tpu.tpu_config": "cairn_tf1.contrib.tpu",
    "tpu.python.tpu.tpu_estimator": "cairn_tf1.contrib.tpu",
    "tpu.python.tpu.tpu_optimizer": "cairn_tf1.contrib.tpu",
    "seq2seq.python.ops.attention_wrapper": "cairn_tf1.contrib.attention",
    "signal": "tensorflow._api.v2.compat.v1.signal",
    "tensorboard.plugins": "tensorboard.plugins",
    "tensorboard.plugins.projector": "tensorboard.plugins.projector",
    **{
        f"slim{python}.nets.{net}": f"tf_slim.nets.{net}"
        for python in ("", ".python.slim")
        for net in ("alexnet", "inception", "inception_v1", "inception_v2", "inception_v3", "overfeat", "resnet_utils",
                    "resnet_v1", "resnet_v2", "vgg")
    },
    **{
        f"slim.python.slim.data.{part}": f"tf_slim.data.{part}"
        for part in ("data_decoder", "data_provider", "dataset", "dataset_data_provider", "parallel_reader",
                     "prefetch_queue", "tfexample_decoder")
    },
}  # fmt: skip

# module: {name: where it is now}, "module:name".
NAMES = {
    "tensorflow.python.framework.ops": {
        "Tensor": "tensorflow.python.framework.tensor:Tensor",
        "IndexedSlices": "tensorflow.python.framework.indexed_slices:IndexedSlices",
        "convert_to_tensor_or_indexed_slices":
            "tensorflow.python.framework.indexed_slices:convert_to_tensor_or_indexed_slices",
        "internal_convert_n_to_tensor_or_indexed_slices":
            "tensorflow.python.framework.indexed_slices:internal_convert_n_to_tensor_or_indexed_slices",
    },
    "tensorflow.python.framework.graph_util": {
        "convert_variables_to_constants": "tensorflow.compat.v1.graph_util:convert_variables_to_constants",
    },
    "tensorflow.python.ops.control_flow_ops": {
        "cond": "tensorflow.python.ops.cond:cond",
        "while_loop": "tensorflow.python.ops.while_loop:while_loop",
        "case": "tensorflow.python.ops.control_flow_case:case",
        "Assert": "tensorflow.python.ops.control_flow_assert:Assert",
        "identity": "tensorflow.python.ops.array_ops:identity",
    },
    "tensorflow.python.ops.variables": {
        "VariableV1": "tensorflow.python.ops.variable_v1:VariableV1",
        "RefVariable": "tensorflow.python.ops.ref_variable:RefVariable",
    },
    "tensorflow.python.ops.functional_ops": {"map_fn": "tensorflow.python.ops.map_fn:map_fn"},
    "tensorflow.python.ops.rnn_cell_impl": {
        "_linear": "cairn_tf1.contrib.rnn:_linear",
        "_Linear": "cairn_tf1.contrib.rnn:_Linear",
        "_like_rnncell": "cairn_tf1.contrib.rnn:_like_rnncell",
    },
    "tensorflow.python.ops.metrics_impl": {"_safe_div": "tensorflow.compat.v1:div_no_nan"},
    "tensorflow.python.util.nest": {"is_sequence": "tensorflow.python.util.nest:is_nested"},
    "tensorflow.python.pywrap_tensorflow": {
        "NewCheckpointReader": "tensorflow.compat.v1.train:NewCheckpointReader",
    },
    "tensorflow.python.keras.utils.tf_utils": {
        "smart_cond": "tensorflow.python.framework.smart_cond:smart_cond",
    },
    "keras.src.engine": {
        **{name: f"keras.api._v1.keras.layers:{name}" for name in ("Input", "InputLayer", "InputSpec", "Layer")},
        **{name: "keras.api._v1.keras:Model" for name in ("Model", "Network", "Container")},
        "get_source_inputs": "keras.src.utils.layer_utils:get_source_inputs",
    },
    "keras.src.utils.generic_utils": {
        name: f"keras.api._v1.keras.utils:{name}"
        for name in ("CustomObjectScope", "custom_object_scope", "deserialize_keras_object", "get_custom_objects", "serialize_keras_object")
    },
    "keras.src.layers.normalization": {"BatchNormalization": "keras.api._v1.keras.layers:BatchNormalization"},
}  # fmt: skip

# Written only where they are gone: names that scripts of that time use of other libraries.
NUMPY = {"int": int, "float": float, "bool": bool, "object": object, "str": str, "complex": complex}
COLLECTIONS = ("Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "MutableSequence", "Callable", "Hashable", "Set")

restored = []  # "module.name", for the report


def restore(v1):
    for module, names in NAMES.items():
        owner = importlib.import_module(module)
        for name, place in names.items():
            if not hasattr(owner, name):
                _restore_lazily(owner, name, place)
    _restore_libraries()


def _restore_lazily(owner, name, place):
    """Names answered by modules that need the alias itself are found when first asked for."""
    module, _, attribute = place.partition(":")
    if module.startswith("cairn_tf1."):
        plain = getattr(owner, "__getattr__", None)

        def find(asked):
            if asked == name:
                return getattr(importlib.import_module(module), attribute)
            if plain:
                return plain(asked)
            raise AttributeError(f"module '{owner.__name__}' has no attribute '{asked}'")

        owner.__getattr__ = find
    else:
        setattr(owner, name, getattr(importlib.import_module(module), attribute))
    restored.append(f"{owner.__name__}.{name}")


def _restore_libraries():
    import collections
    import inspect
    import time
    import warnings

    import numpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # asking NumPy for a name of its past warns
        for name, value in NUMPY.items():
            if not hasattr(numpy, name):
                _set(numpy, name, value)
    for name in COLLECTIONS:
        if not hasattr(collections, name):
            _set(collections, name, getattr(collections.abc, name))
    if not hasattr(inspect, "getargspec"):
        fields = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
        _set(inspect, "getargspec", lambda function: fields(*inspect.getfullargspec(function)[:4]))
    if not hasattr(time, "clock"):
        _set(time, "clock", time.perf_counter)


def _set(owner, name, value):
    setattr(owner, name, value)
    restored.append(f"{owner.__name__}.{name}")


def module_of(name, members):
    """A module made of these members, in sys.modules under `name`; for parts of contrib too small for a file."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module
