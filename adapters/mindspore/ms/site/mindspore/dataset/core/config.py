"""Settings of the data pipeline: `mindspore.dataset.config`."""

import json

from cairn.ms import level

_UINT32 = 2**32 - 1
_DEFAULT_SEED = 5489  # of the Mersenne twister in the C++ library: the seed of a script that sets none, where that is fixed
_values = {"seed": _DEFAULT_SEED, "prefetch_size": 16, "num_parallel_workers": 8, "monitor_sampling_interval": 1000,
           "callback_timeout": 60, "auto_num_workers": False, "numa_enable": False, "enable_shared_mem": True,
           "auto_offload": False, "enable_autotune": False, "enable_watchdog": True, "multiprocessing_timeout_interval": 300,
           "autotune_interval": 0, "dynamic_shape": False, "fast_recovery": True, "sending_batches": 0}  # fmt: skip
_chosen = set()


def _whole(name, value, least, most=2**31 - 1):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} isn't of type int.")
    if not least <= value <= most:
        raise ValueError(f"{name} is not within the required interval of [{least}, {most}].")
    return value


def _flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name} isn't of type bool.")
    return value


def _pair(name, check, *bounds):
    def setter(value):
        _values[name] = check(name, value, *bounds)
        _chosen.add(name)

    def getter():
        return _values[name]

    setter.__name__, getter.__name__ = f"set_{name}", f"get_{name}"
    setter.__doc__, getter.__doc__ = f"Sets {name}.", f"The value of {name}."
    return setter, getter


set_seed, get_seed = _pair("seed", _whole, 0, _UINT32)
set_prefetch_size, get_prefetch_size = _pair("prefetch_size", _whole, 1)
set_num_parallel_workers, _workers = _pair("num_parallel_workers", _whole, 1)
set_monitor_sampling_interval, get_monitor_sampling_interval = _pair("monitor_sampling_interval", _whole, 1)
set_callback_timeout, get_callback_timeout = _pair("callback_timeout", _whole, 1)
set_auto_num_workers, get_auto_num_workers = _pair("auto_num_workers", _flag)
set_numa_enable, get_numa_enable = _pair("numa_enable", _flag)
set_enable_shared_mem, get_enable_shared_mem = _pair("enable_shared_mem", _flag)
set_auto_offload, get_auto_offload = _pair("auto_offload", _flag)
_set_autotune, get_enable_autotune = _pair("enable_autotune", _flag)
set_autotune_interval, get_autotune_interval = _pair("autotune_interval", _whole, 0)
set_enable_watchdog, get_enable_watchdog = _pair("enable_watchdog", _flag)
set_multiprocessing_timeout_interval, get_multiprocessing_timeout_interval = _pair("multiprocessing_timeout_interval", _whole, 1)
set_dynamic_shape, get_dynamic_shape = _pair("dynamic_shape", _flag)
set_fast_recovery, get_fast_recovery = _pair("fast_recovery", _flag)
set_sending_batches, get_sending_batches = _pair("sending_batches", _whole, 0)


def set_enable_autotune(enable, filepath_prefix=None):
    """Has each pipeline that ends written as JSON to filepath_prefix_0.json, as what tuning came to; there is nothing to tune."""
    if filepath_prefix is not None and not isinstance(filepath_prefix, str):
        raise TypeError(f"filepath_prefix must be a str value but was: {filepath_prefix}.")
    if filepath_prefix == "":
        raise RuntimeError("The value of filepath_prefix should not be an empty string.")
    _set_autotune(enable)
    _values["autotune_file"] = f"{filepath_prefix}_0.json" if enable and filepath_prefix else None


def autotune_file():
    """The file that the next pipeline to end is written to, or None."""
    return _values.get("autotune_file")


def get_num_parallel_workers():
    """The number of workers of an operation that names none: 4 in 0.5, 8 since."""
    return _workers() if "num_parallel_workers" in _chosen or level.at_least("1.1") else 4


def seed_is_fixed():
    """Whether a pipeline repeats itself from one run to the next: where a seed was set, and always in 0.5."""
    return "seed" in _chosen or not level.at_least("1.1")


_IN_FILES = {"numParallelWorkers": "num_parallel_workers", "opConnectorSize": "prefetch_size", "seed": "seed",
             "monitorSamplingInterval": "monitor_sampling_interval", "autoOffload": "auto_offload"}  # fmt: skip


def load(file):
    """Reads settings from a JSON file."""
    with open(file, encoding="utf-8") as text:
        for name, value in json.load(text).items():
            name = _IN_FILES.get(name, name)
            if "set_" + name in globals():
                globals()["set_" + name](value)


def __getattr__(name):
    if name == "set_auto_tune_mode":
        return lambda *_: 0
    raise AttributeError(f"module 'mindspore.dataset.config' has no attribute '{name}'")
