"""NPURunConfig: the Estimator's configuration. Names and allowed values of its options come from npu_bridge.options."""

import inspect
import json
import os

import tensorflow.compat.v1 as tf

from npu_bridge import options
from npu_bridge.estimator.npu import util
from npu_bridge.estimator.npu.npu_config import (
    DumpConfig,
    DynamicInputConfig,
    ExperimentalConfig,
    MemoryConfig,
    ProfilingConfig,
    check_class,
)


class NPURunConfig(tf.estimator.RunConfig):
    """A RunConfig with the platform's options; `npu_options()` gives those as keys of the NpuOptimizer entry."""

    def __init__(self, iterations_per_loop=1, profiling_config=None, model_dir=None, tf_random_seed=None,
                 save_summary_steps=0, save_checkpoints_steps=None, save_checkpoints_secs=None, session_config=None,
                 keep_checkpoint_max=5, keep_checkpoint_every_n_hours=10000, log_step_count_steps=100, distribute=None,
                 enable_data_pre_proc=True, precision_mode=None, enable_reduce_precision=False,
                 variable_format_optimize=None, mix_compile_mode=False, hcom_parallel=True, graph_memory_max_size=None,
                 variable_memory_max_size=None, dump_config=None, stream_max_parallel_num=None,
                 is_tailing_optimization=False, horovod_mode=False, graph_run_mode=1, op_debug_level=None,
                 enable_scope_fusion_passes=None, enable_exception_dump=2, op_select_implmode=None,
                 optypelist_for_implmode=None, dynamic_input_config=None, aoe_mode=None, work_path=None,
                 buffer_optimize="l2_optimize", enable_small_channel=0, fusion_switch_file=None,
                 enable_compress_weight=False, compress_weight_conf=None, op_compiler_cache_mode=None,
                 op_compiler_cache_dir=None, debug_dir=None, hcom_multi_mode=False, dynamic_input=None,
                 dynamic_graph_execute_mode="dynamic_execute", dynamic_inputs_shape_range=None, train_distribute=None,
                 eval_distribute=None, local_rank_id=None, local_device_list=None, session_device_id=None,
                 distribute_config=None, modify_mixlist=None, op_precision_mode=None,
                 device_type="default_device_type", soc_config=None, hccl_timeout=None, op_wait_timeout=None,
                 op_execute_timeout=None, HCCL_algorithm=None, customize_dtypes=None, op_debug_config=None,
                 memory_config=None, experimental_config=None, topo_sorting_mode=None, aoe_config_file=None,
                 insert_op_file=None, stream_sync_timeout=-1, event_sync_timeout=-1, external_weight=False,
                 es_cluster_config=None, deterministic=0, frozen_variable=False, variable_placement="Device",
                 jit_compile="auto", precision_mode_v2=None, ac_parallel_enable=None, auto_tune_mode=None,
                 mstune_mode=None):  # fmt: skip
        given = dict(locals())
        self._npu = {key: given[key] for key in given if key not in ("self", "__class__")}
        self._check()
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            save_checkpoints_steps = 100
        self.iterations_per_loop = iterations_per_loop
        self.horovod_mode = horovod_mode
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=train_distribute or distribute,
            eval_distribute=eval_distribute,
        )

    def _check(self):
        npu = self._npu
        util.check_positive_integer(npu["iterations_per_loop"], "iterations_per_loop")
        util.check_bool_type(npu["mix_compile_mode"], "mix_compile_mode")
        if not isinstance(npu["horovod_mode"], bool):
            raise ValueError('"horovod_mode" type must be bool')
        if npu["mix_compile_mode"] and npu["iterations_per_loop"] != 1:
            raise ValueError('"iterations_per_loop" must be 1 with "mix_compile_mode" is True')
        if isinstance(npu["jit_compile"], bool):
            npu["jit_compile"] = str(npu["jit_compile"]).lower()
        elif not isinstance(npu["jit_compile"], str):
            raise TypeError(f'"jit_compile" type must be str, got {type(npu["jit_compile"])}')
        if npu["graph_run_mode"] not in (0, 1):
            raise ValueError(f'"graph_run_mode" value must be 0 or 1, got {npu["graph_run_mode"]}')
        if npu["enable_exception_dump"] < 0:
            raise ValueError('"enable_exception_dump" value must be >= 0')
        for name, cls in (("profiling_config", ProfilingConfig), ("dump_config", DumpConfig),
                          ("memory_config", MemoryConfig), ("experimental_config", ExperimentalConfig),
                          ("dynamic_input_config", DynamicInputConfig)):  # fmt: skip
            check_class(name, npu[name], cls)
        _check_servers(npu)
        for key, value in self.npu_options().items():
            options.check_value(options.BY_KEY[key], value)

    def npu_options(self):
        """{key of the NpuOptimizer entry: value} of what differs from the defaults here."""
        defaults = inspect.signature(NPURunConfig.__init__).parameters
        given = {key: value for key, value in self._npu.items() if value != defaults[key].default}
        given.update(_of_groups(self._npu), use_off_line=True)
        return {key: given[key] for key in options.BY_KEY if given.get(key) is not None}


def _of_groups(npu):
    """The options that the small classes carry, under their keys."""
    flat = {}
    for name in ("dump_config", "memory_config", "dynamic_input_config"):
        if npu[name] is not None:
            flat.update({key[1:]: value for key, value in vars(npu[name]).items()})
    if npu["profiling_config"] is not None:
        flat["profiling_mode"] = npu["profiling_config"]._enable_profiling
        flat["profiling_options"] = npu["profiling_config"]._profiling_options
    if npu["experimental_config"] is not None:
        for key, value in vars(npu["experimental_config"]).items():
            flat[("experimental" + key) if "experimental" + key in options.BY_KEY else key[1:]] = value
        memory = flat.pop("graph_memory_optimize_config", None)
        if memory is not None:
            flat["graph_slice"] = memory._graph_slice
    return flat


def _check_servers(npu):
    """TF_CONFIG with servers wants a parameter server strategy and the reverse."""
    cluster = json.loads(os.getenv("TF_CONFIG") or "{}").get("cluster")
    servers = npu["distribute"] is not None and "ParameterServer" in type(npu["distribute"]).__name__
    if bool(cluster) != servers:
        raise ValueError('"cluster" and "distribute" must all be set in ps mode')
    if servers and not npu["mix_compile_mode"]:
        raise ValueError('"mix_compile_mode" can only be True in ps mode')
