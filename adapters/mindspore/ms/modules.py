"""Modules of MindSpore that hold nothing of their own here: some answer with the names of their package, the others are refused.

`from mindspore.nn.layer.math import Range` finds mindspore.nn.Range, `import mindspore.hub` says what works instead."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

from cairn.ms import names
from cairn.ms.refusal import Unsupported

# {package: (where its names are looked for, modules of MindSpore's that answer with them)}
_HOMES = {
    "mindspore.common": (
        ("mindspore", "mindspore.ops"),
        "dump jit_config jit_context lazy_inline monad mutable"),
    "mindspore.dataset": (("mindspore.dataset", "mindspore.train"), "callback"),
    "mindspore.dataset.engine": (
        ("mindspore.dataset", "mindspore.dataset.engine.datasets"),
        "datasets_audio datasets_standard_format datasets_text datasets_user_defined datasets_vision graphdata offload serializer_deserializer"),
    "mindspore.nn": (("mindspore.nn",), "sparse acc reinforcement"),
    "mindspore.nn.reinforcement": (("mindspore.nn",), "tensor_array tensors_queue _tensors_queue _batch_read_write"),
    "mindspore.nn.sparse": (("mindspore.nn",), "sparse"),
    "mindspore.nn.layer": (
        ("mindspore.nn",), "channel_shuffle combined dense flash_attention math padding quant rnn_cells rnn_utils timedistributed transformer"),
    "mindspore.nn.loss": (("mindspore.nn",), ""),
    "mindspore.nn.optim": (("mindspore.nn",), "tft_wrapper"),
    "mindspore.nn.wrap": (("mindspore.nn",), ""),
    "mindspore.nn.metrics": (
        ("mindspore.nn",),
        "accuracy auc bleu_score confusion_matrix cosine_similarity dice error fbeta hausdorff_distance loss mean_surface_distance "
        "occlusion_sensitivity perplexity precision recall roc root_mean_square_surface_distance topk"),
    "mindspore.numpy": (("mindspore.numpy",), "array_creations array_ops dtypes fft logic_ops math_ops utils utils_const"),
    "mindspore.ops": (
        ("mindspore.ops",),
        "_grad_experimental _op_impl _primitive_cache _register_for_op _vmap bprop_mindir op_info_register vm_impl_registry"),
    "mindspore.ops._op_impl": (("mindspore.ops",), "aicpu cpu tbe"),
    "mindspore.ops._grad": (("mindspore.ops",), "grad_array_ops grad_math_ops grad_nn_ops"),
    "mindspore.ops.composite": (("mindspore.ops", "mindspore.ops.functional"), "array_ops base clip_ops env_ops math_ops multitype_ops random_ops vmap_impl vmap_ops"),
    "mindspore.ops.composite.multitype_ops": (
        ("mindspore.ops.composite", "mindspore.ops", "mindspore.ops.functional"),
        "_compile_utils _constexpr_utils add_impl bitwise_and_impl bitwise_or_impl bitwise_xor_impl div_impl equal_impl floordiv_impl getitem_impl "
        "greater_equal_impl greater_impl in_impl left_shift_impl less_equal_impl less_impl logic_not_impl logical_and_impl logical_or_impl mod_impl "
        "mul_impl negative_impl not_equal_impl not_in_impl ones_like_impl pow_impl right_shift_impl setitem_impl sub_impl uadd_impl zeros_like_impl"),
    "mindspore.ops.function": (
        ("mindspore.ops",),
        "clip_func debug_func grad parameter_func sparse_unary_func spectral_func vmap_func"),
    "mindspore.ops.function.grad": (("mindspore.ops",), "grad_func"),
    "mindspore.ops.operations": (
        ("mindspore.ops.operations", "mindspore.ops.operations._grad_ops"),
        "_cache_ops _csr_ops _embedding_cache_ops _map_tensor_ops _opaque_predicate_registry _rl_inner_ops "
        "_scalar_ops _sequence_ops _tensor_array _thor_ops control_ops custom_ops debug_ops inner_ops rl_ops "
        "spectral_ops"),
    "mindspore.train": (("mindspore.train", "mindspore.nn.metrics"), "data_sink metrics"),
    "mindspore.train.callback": (
        ("mindspore.train.callback",),
        "_backup_and_restore _checkpoint _dataset_graph _early_stop _history _lambda_callback _loss_monitor _lr_scheduler_callback "
        "_reduce_lr_on_plateau _summary_collector _time_monitor"),
    "mindspore.parallel": (("mindspore", "mindspore.parallel"), "algo_parameter_config shard"),
}  # fmt: skip
_ALIASES = {f"{package}.{name}": homes for package, (homes, more) in _HOMES.items() for name in more.split()}


class MissingModule(Unsupported, ModuleNotFoundError):
    """A module that the package does not have."""


def _elsewhere(module, homes):
    """A __getattr__ for the module: the names of its homes, or the refusal of the first."""

    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)
        for home in homes:
            try:
                value = getattr(importlib.import_module(home), name)
            except (AttributeError, Unsupported):
                continue
            setattr(sys.modules[module], name, value)
            return value
        raise names.missing(homes[0], name, sys._getframe(1))

    return find


def share(package):
    """The modules of the package that are loaded find what they do not have where the package's names are."""
    homes = _HOMES[package][0]
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[0] == package and not hasattr(module, "__path__") and "__getattr__" not in vars(module):
            module.__getattr__ = _elsewhere(name, homes)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last for modules below mindspore."""

    def find_spec(self, full, path=None, target=None):
        if not full.startswith("mindspore."):
            return None
        if full not in _ALIASES:
            missing = MissingModule(names.sentence(*full.rpartition(".")[::2]))
            missing.name = full  # by which `from mindspore.nn import X` tells a module that is not there
            raise missing
        return importlib.machinery.ModuleSpec(full, self, is_package=full in _HOMES)

    def exec_module(self, module):
        module.__doc__ = "Names of " + " and ".join(_ALIASES[module.__name__]) + "."
        module.__getattr__ = _elsewhere(module.__name__, _ALIASES[module.__name__])


def exists(full):
    """Whether a module of that name can be imported."""
    parent = sys.modules.get(full.rpartition(".")[0])
    return full in _ALIASES or importlib.machinery.PathFinder.find_spec(full, getattr(parent, "__path__", None)) is not None


def activate():
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.append(_Finder())
