"""The small classes that group the options of NPURunConfig, which stands in npu_run_config.py and is found here too."""

import enum

from npu_bridge.estimator.npu import util


class NpuExecutePlacement(enum.Enum):
    ALL = "all"
    CUBE = "cube"
    VECTOR = "vector"
    TAISHAN = "taishan"
    DVPP = "dvpp"
    HOST = "host"


class ProfilingConfig:
    def __init__(self, enable_profiling=False, profiling_options=None):
        self._enable_profiling = enable_profiling
        self._profiling_options = profiling_options


class DumpConfig:
    def __init__(self, enable_dump=False, dump_path=None, dump_step=None, dump_mode="output", enable_dump_debug=False,
                 dump_debug_mode="all", dump_data="tensor", dump_layer=None):  # fmt: skip
        self._enable_dump = enable_dump
        self._dump_path = util.check_path(dump_path) if enable_dump or enable_dump_debug else dump_path
        self._dump_step = dump_step
        self._dump_mode = dump_mode
        self._enable_dump_debug = enable_dump_debug
        self._dump_debug_mode = dump_debug_mode
        self._dump_data = dump_data
        self._dump_layer = dump_layer


class MemoryConfig:
    def __init__(self, atomic_clean_policy=0, static_memory_policy=0, memory_optimization_policy=None):
        self._atomic_clean_policy = atomic_clean_policy
        self._static_memory_policy = static_memory_policy
        self._memory_optimization_policy = memory_optimization_policy


class DynamicInputConfig:
    def __init__(self, input_shape, dynamic_dims, dynamic_node_type):
        self._input_shape = input_shape
        self._dynamic_dims = dynamic_dims
        self._dynamic_node_type = dynamic_node_type


class GraphMemoryOptimizeConfig:
    def __init__(self, recompute=None, graph_slice=None):
        for name, value in (("recompute", recompute), ("graph_slice", graph_slice)):
            if value not in (None, "auto", "manual"):
                raise ValueError(f"{name} is {value}, should be auto or manual")
        self._recompute = recompute
        self._graph_slice = graph_slice


class ExperimentalConfig:
    def __init__(self, logical_device_cluster_deploy_mode="LB", logical_device_id=None, model_deploy_mode=None,
                 model_deploy_devicelist=None, graph_memory_optimize_config=None, enable_graph_parallel=None,
                 graph_parallel_option_path=None, graph_compiler_cache_dir=None, resource_config_path=None,
                 accelerate_train_mode=None):  # fmt: skip
        check_class("graph_memory_optimize_config", graph_memory_optimize_config, GraphMemoryOptimizeConfig)
        self._logical_device_cluster_deploy_mode = logical_device_cluster_deploy_mode
        self._logical_device_id = logical_device_id
        self._model_deploy_mode = model_deploy_mode
        self._model_deploy_devicelist = model_deploy_devicelist
        self._graph_memory_optimize_config = graph_memory_optimize_config
        self._enable_graph_parallel = enable_graph_parallel
        self._graph_parallel_option_path = graph_parallel_option_path
        self._graph_compiler_cache_dir = graph_compiler_cache_dir
        self._resource_config_path = resource_config_path
        self._accelerate_train_mode = accelerate_train_mode


def check_class(name, value, cls):
    if value is not None and not isinstance(value, cls):
        raise ValueError(f"`{name}` must be provided with type `{cls.__name__}`, found {type(value).__name__}")


def __getattr__(name):
    if name == "NPURunConfig":
        from npu_bridge.estimator.npu.npu_run_config import NPURunConfig

        return NPURunConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
