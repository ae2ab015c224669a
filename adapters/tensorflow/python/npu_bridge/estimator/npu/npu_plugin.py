"""Process-wide calls of the platform. The engine needs no start; sessions left open are closed at the end of the process."""

from npu_bridge import options


def npu_resource_init(graph_run_mode=1, op_debug_level=0, enable_profiling=False, profiling_options=None,
                      precision_mode=None, enable_scope_fusion_passes=None, enable_exception_dump=2, aoe_mode=None,
                      work_path=None, op_compiler_cache_mode=None, op_compiler_cache_dir=None, debug_dir=None,
                      hcom_multi_mode=False, distribute_config=None, aoe_config_file=None, precision_mode_v2=None,
                      auto_tune_mode=None, mstune_mode=None):  # fmt: skip
    """Checks its options; those of each session count, in the NpuOptimizer entry."""
    given = {key: value for key, value in locals().items() if key in options.BY_KEY and value not in (None, "")}
    for key, value in given.items():
        options.check_value(options.BY_KEY[key], value)
    options.check_together(given)
    if precision_mode or precision_mode_v2:
        options.warn_once("npu_resource_init: precision_mode has no effect here; set it in the session's NpuOptimizer entry")


def npu_resource_shutdown():
    npu_close()


def npu_close():
    """Nothing outlives its session here."""


def set_device_sat_mode(mode):
    """How overflow shows: 0 saturation, 1 infinity and NaN. Processors do the latter."""
    if mode not in (0, 1):
        raise ValueError(f"mode is {mode}, should be 0 or 1")
    if mode == 0:
        options.warn_once("set_device_sat_mode: saturation is not supported, overflow gives infinity")


def is_inf_nan_enabled():
    return True


def _no_remote_memory(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"npu_plugin.{name}: remote memory is not supported")

    return refuse


npu_rdma_pool_init = rdma_remote_init = rdma_remote_register = _no_remote_memory("rdma")
get_rdma_cache = _no_remote_memory("get_rdma_cache")
