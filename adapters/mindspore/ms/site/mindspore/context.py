"""Settings of scripts: mode, device, and keys of all releases, of which most are accepted and do nothing."""

import functools
import os
import sys
import warnings

from cairn import job
from cairn.ms import modes, ranks, refuse

GRAPH_MODE, PYNATIVE_MODE = modes.GRAPH, modes.PYNATIVE

_DEVICES = ("Ascend", "GPU", "CPU", "Davinci")
_DEFAULTS = {
    "device_target": "CPU", "device_id": int(os.environ.get("DEVICE_ID", 0)), "save_graphs": False,
    "save_graphs_path": ".", "enable_auto_mixed_precision": False, "enable_reduce_precision": True, "enable_dump": False,
    "save_dump_path": ".", "enable_profiling": False, "profiling_options": "", "check_bprop": False,
    "max_device_memory": "1024GB", "variable_memory_max_size": "30GB", "print_file_path": "",
    "enable_graph_kernel": False, "enable_sparse": False, "max_call_depth": 1000, "auto_tune_mode": "",
    "env_config_path": "", "graph_kernel_flags": "", "save_compile_cache": False, "load_compile_cache": False,
    "grad_for_scalar": False, "enable_compile_cache": False, "compile_cache_path": "", "runtime_num_threads": 30,
    "pynative_synchronize": False, "mempool_block_size": "1GB", "op_timeout": 1900,
    "reserve_class_name_in_scope": True, "disable_format_transform": False, "support_binary": False,
    "memory_optimize_level": "O0", "memory_offload": "OFF", "ascend_config": {}, "deterministic": "OFF",
}  # fmt: skip
_OLD = (
    "enable_hccl", "enable_task_sink", "enable_loop_sink", "enable_mem_reuse", "enable_ir_fusion", "precompile_only",
    "save_ms_model", "save_ms_model_path", "enable_gpu_summary", "enable_dynamic_memory", "graph_memory_max_size",
)  # fmt: skip
_settings = dict(_DEFAULTS)
_k_context = None  # in MindSpore what holds the settings, once it is made; here they are always there
_told = set()


class ParallelMode:
    """How several ranks share the work."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


def _once(text, notice=False):
    if text in _told:
        return
    _told.add(text)
    if notice:
        print(f"cairn ms: {text}", file=sys.stderr)
    else:
        warnings.warn(text, stacklevel=3)


def _context():
    """What holds the settings."""
    return _settings


def _wrapped(function):
    @functools.wraps(function)
    def call(**keywords):
        return function(**keywords)

    return call


@_wrapped
def set_context(**keywords):
    """Sets mode, device_target, device_id and the other keys; an unknown key raises ValueError."""
    for key, value in keywords.items():
        if key == "mode":
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"For 'context.set_context', the argument 'mode' should be int, but got {value!r}.")
            if value not in (GRAPH_MODE, PYNATIVE_MODE):
                raise ValueError(f"For 'context.set_context', the argument 'mode' should be context.GRAPH_MODE (0) or "
                                 f"context.PYNATIVE_MODE (1), but got {value}.")  # fmt: skip
            modes.mode = value
        elif key == "device_target":
            _set_device(value)
        elif key == "device_id":
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"For 'context.set_context', the argument 'device_id' should be int, but got {value}.")
            if not 0 <= value <= 4095:
                raise ValueError(f"For 'context.set_context', the argument 'device_id' must be in range [0, 4095], but got {value}.")
            _settings[key] = value
        elif key in _DEFAULTS:
            wanted = type(_DEFAULTS[key])
            if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
                raise TypeError(f"For 'context.set_context', the argument '{key}' should be {wanted.__name__}, but got {value!r}.")
            if key == "max_call_depth" and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
                raise ValueError(f"For 'context.set_context', the argument 'max_call_depth' must be greater than 0, but got {value}.")
            if key == "print_file_path" and value and os.path.isdir(value):
                raise IOError(f"For 'context.set_context', the argument 'print_file_path' should be a file, but got the directory {value}.")
            if key == "save_graphs_path":
                value = os.path.realpath(value)
                os.makedirs(value, exist_ok=True)
            _settings[key] = value
            modes.deterministic, modes.call_depth = _settings["deterministic"] == "ON", _settings["max_call_depth"]
        elif key in _OLD:
            _once(f"context key {key} of early releases is ignored")
        else:
            raise ValueError(f"For 'context.set_context', the keyword argument {key} is not recognized! "
                             "Please check the name of the key.")  # fmt: skip


def _set_device(target):
    if not isinstance(target, str):
        raise TypeError(f"For 'context.set_context', the argument 'device_target' should be str, but got {target!r}.")
    if target not in _DEVICES:
        raise ValueError(f"For 'context.set_context', the argument 'device_target' must be one of {list(_DEVICES[:3])}, but got {target}.")
    if target != "CPU":
        _once(f"device_target {target} runs on this machine's processor", notice=True)
    _settings["device_target"] = "Ascend" if target == "Davinci" else target


def get_context(attr_key):
    """The value of a key."""
    if attr_key == "mode":
        return modes.mode
    if attr_key == "enable_ge" or attr_key in _OLD:  # test files ask which backend runs them
        return False
    if attr_key not in _settings:
        raise ValueError(f"For 'context.get_context', the argument {attr_key} is not recognized!")
    return _settings[attr_key]


_PARALLEL = {
    "device_num": 1, "global_rank": 0, "gradients_mean": False, "gradient_fp32_sync": True,
    "parallel_mode": ParallelMode.STAND_ALONE, "auto_parallel_search_mode": "dynamic_programming",
    "search_mode": "dynamic_programming", "parameter_broadcast": False, "full_batch": False,
    "strategy_ckpt_load_file": "", "strategy_ckpt_save_file": "", "enable_parallel_optimizer": False,
    "all_reduce_fusion_config": [], "pipeline_stages": 1, "grad_accumulation_step": 1, "parallel_optimizer_config": {},
    "comm_fusion": {}, "dataset_strategy": "data_parallel", "enable_alltoall": False, "optimizer_weight_shard_size": -1,
    "optimizer_weight_shard_aggregated_save": False, "sharding_propagation": False,
    "communi_parallel_mode": "all_group_parallel", "strategy_ckpt_config": {},
}  # fmt: skip
_RENAMED = {"mirror_mean": "gradients_mean", "cast_before_mirror": "gradient_fp32_sync"}
_parallel = dict(_PARALLEL)
_given = set()  # keys that the script has set


def set_auto_parallel_context(**keywords):
    """Sets keys of parallel training."""
    for key, value in keywords.items():
        key = _RENAMED.get(key, key)
        if key not in _PARALLEL:
            raise ValueError(f"For 'context.set_auto_parallel_context', the keyword argument {key} is not recognized!")
        if isinstance(_PARALLEL[key], bool) and not isinstance(value, bool):
            raise TypeError(f"For 'context.set_auto_parallel_context', the argument '{key}' must be bool, but got {value!r}.")
        if key == "parallel_mode" and value not in ParallelMode.MODE_LIST:
            raise ValueError(f"For 'context.set_auto_parallel_context', the argument 'parallel_mode' must be one of "
                             f"{ParallelMode.MODE_LIST}, but got {value}.")  # fmt: skip
        if key == "device_num" and not 1 <= value <= 4096:
            raise ValueError(f"Device num must be in [1, 4096], but got {value}")
        if key == "global_rank" and not 0 <= value <= 4095:
            raise ValueError(f"The context configuration parameter 'global_rank' must be in [0, 4095], but got {value}.")
        if key in ("comm_fusion", "all_reduce_fusion_config"):
            _set_fusion(key, value)
        _parallel[key] = value
        _given.add(key)
    _check_parallel_mode()


def _check_parallel_mode():
    """Refuses what several ranks cannot do yet."""
    mode = _parallel["parallel_mode"]
    if max(ranks.announced(), ranks.group().size) == 1:
        return
    if mode in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL):
        refuse(f"parallel_mode {mode}", "operators are not split over several ranks", "ParallelMode.DATA_PARALLEL")
    if _parallel["pipeline_stages"] > 1:
        refuse("pipeline_stages", "layers are not spread over several ranks", "ParallelMode.DATA_PARALLEL")


def _set_fusion(key, value):
    """Checks how gradients are put together, and tells the engine up to how many bytes: split indices are the reducer's."""
    if key == "all_reduce_fusion_config":
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            raise TypeError(f"For 'context.set_auto_parallel_context', the argument '{key}' must be a list of int, but got {value}.")
        return
    if not isinstance(value, dict):
        raise TypeError(f"For 'context.set_auto_parallel_context', the argument '{key}' must be dict, but got {type(value)}.")
    for kind, config in value.items():
        if kind not in ("allreduce", "allgather", "reducescatter"):
            raise KeyError(f"comm fusion type must be allreduce, allgather or reducescatter, but got {kind}")
        if not isinstance(config, dict):
            raise TypeError(f"For 'comm_fusion', the '{kind}' config must be dict, but got the type : {type(config)}.")
        for name in ("mode", "config"):
            if name not in config:
                raise KeyError(f"For 'comm_fusion', the key '{name}' should be contained.")
        if config["mode"] not in ("auto", "size", "index")[: 3 if kind == "allreduce" else 2]:
            raise KeyError(f"fusion method mode must be auto, index or size, but got {config['mode']}")
    reduced = value.get("allreduce")
    if reduced and reduced["mode"] == "index":
        _parallel["all_reduce_fusion_config"] = list(reduced["config"])
    elif reduced:
        megabytes = 64 if reduced["mode"] == "auto" else reduced["config"]
        if type(megabytes) is not int or megabytes < 0:
            raise ValueError(f"fusion threshold must be larger than 0, but got {megabytes}")
        job.set_fusion(**({"bytes": megabytes << 20} if megabytes else {"none": True}))


def get_auto_parallel_context(attr_key):
    """The value of a key of parallel training. device_num and global_rank, where the script sets none, are the job's in data parallel."""
    key = _RENAMED.get(attr_key, attr_key)
    if key not in _parallel:
        raise ValueError(f"'{attr_key}' is not a key of the parallel context")
    if key in ("device_num", "global_rank") and key not in _given and _parallel["parallel_mode"] != ParallelMode.STAND_ALONE:
        return ranks.group().size if key == "device_num" else ranks.group().rank
    return _parallel[key]


def reset_auto_parallel_context():
    """Sets all keys of parallel training back."""
    _parallel.update(_PARALLEL)
    _given.clear()


def set_ps_context(**keywords):
    """Parameter servers: only enable_ps=False."""
    if keywords.get("enable_ps"):
        refuse("set_ps_context", "parameter servers are not supported")


def get_ps_context(attr_key):
    return False if attr_key == "enable_ps" else 0


def reset_ps_context():
    """There is nothing to set back."""


def _get_mode():
    return modes.mode
