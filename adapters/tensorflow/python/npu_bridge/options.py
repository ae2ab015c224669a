"""The one table of the NpuOptimizer entry's keys: type, default, allowed values, what each does here. It checks sessions,
gives NPURunConfig its rules and writes docs/reference/tensorflow-options.md (`python -m npu_bridge.options`)."""

import difflib
import json
import logging
from typing import NamedTuple

from npu_bridge.precision_modes import MIXED, PRECISION, PRECISION_V2

ACTS, MET, NOTED, OLD = "acts", "met", "noted", "old"


class Option(NamedTuple):
    key: str
    kind: str  # AttrValue field: s string, b bool, i int
    default: object
    allowed: tuple  # empty: any value of the kind
    status: str
    meaning: str


MIXLISTS, MIXLIST_CHANGES = ("black-list", "white-list", "gray-list"), ("to-add", "to-remove")
ALWAYS_DYNAMIC = "every dimension may change from run to run here, without this option"
NO_DEVICE = "there is no such device part here"
NO_CLUSTER = "deployment over several devices is not done"
RANKS = "cairn launch starts the processes and numbers them"
COLLECTIVES = "collectives run beside the other steps by themselves"

TABLE = (
    # Execution and placement
    Option("use_off_line", "b", True, (), ACTS, "False: stock TensorFlow runs the session"),
    Option("mix_compile_mode", "b", False, (), MET, "operators the engine lacks stay with TensorFlow; so they do always"),
    Option("enable_data_pre_proc", "b", False, (), MET, "a step takes its data from the input pipeline by itself, and so do all steps of iterations_per_loop"),
    Option("iterations_per_loop", "i", 1, (), ACTS, "training steps in one run of the op named IterationOp"),
    Option("lower_functional_ops", "b", False, (), ACTS, "True: TensorFlow lowers conditions and loops, which then stay with it"),
    Option("graph_run_mode", "i", 1, (0, 1), ACTS, "0: inference, which frozen_variable needs; what else is trained or inferred the graph itself says"),
    Option("job", "s", "localhost", (), NOTED, "role of the process: " + RANKS),
    Option("task_index", "i", 0, (), NOTED, "number of the process: " + RANKS),
    Option("frozen_variable", "b", False, (), ACTS,
           "True, with graph_run_mode 0: variables are constants, as they are when a session first runs a set of shapes"),
    Option("variable_placement", "s", "Device", ("Host", "Device"), NOTED, "variables always lie in TensorFlow's memory"),
    Option("in_out_pair_flag", "b", True, (), NOTED, "the engine takes all that it can, whatever is named"),
    Option("in_out_pair", "s", None, (), NOTED, "the engine takes all that it can, whatever is named"),
    Option("const_input", "s", None, (), NOTED, "inputs that never change: found from the graph"),
    Option("session_device_id", "i", None, (), MET, "the processor answers to every number"),
    Option("deterministic", "i", 0, (0, 1), ACTS, "1: convolutions by their definition, not by Winograd's method; a step gives the same bits whatever the number of threads in any case"),
    Option("external_weight", "b", False, (), NOTED, "weights stay in TensorFlow's memory"),
    Option("insert_op_file", "s", None, (), NOTED, "image preprocessing on the device: " + NO_DEVICE),
    Option("local_rank_id", "i", None, tuple(range(8)), NOTED, RANKS),
    Option("local_device_list", "s", None, (), NOTED, RANKS),
    Option("experimental_logical_device_cluster_deploy_mode", "s", "LB", (), NOTED, NO_CLUSTER),
    Option("experimental_logical_device_id", "s", None, (), NOTED, NO_CLUSTER),
    Option("experimental_model_deploy_mode", "s", None, (), NOTED, NO_CLUSTER),
    Option("experimental_model_deploy_devicelist", "s", None, (), NOTED, NO_CLUSTER),
    Option("resource_config_path", "s", None, (), NOTED, NO_CLUSTER),
    Option("enable_graph_parallel", "b", False, (), NOTED, NO_CLUSTER),
    Option("graph_parallel_option_path", "s", None, (), NOTED, NO_CLUSTER),
    Option("distribute_config", "s", None, (), NOTED, NO_CLUSTER),
    Option("es_cluster_config", "s", None, (), NOTED, "there is no embedding service"),
    Option("experimental_accelerate_train_mode", "s", None, (), NOTED, "computation keeps its types"),
    # Precision
    Option("precision_mode", "s", None, PRECISION, ACTS, "operators whose values are rounded to 16 bits; they add up in float32"),
    Option("precision_mode_v2", "s", None, PRECISION_V2, ACTS, "the same by newer names"),
    Option("modify_mixlist", "s", None, (), ACTS, "JSON file of changes to the lists of a mixed mode, by operator type"),
    Option("customize_dtypes", "s", None, (), ACTS, "file of types of single operators: lines Name::InputDtype:float16,OutputDtype:float32"),
    Option("op_precision_mode", "s", None, (), NOTED, "kernels have one precision each"),
    Option("op_select_implmode", "s", None,
           ("high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all"),
           NOTED, "kernels have one precision each"),
    Option("optypelist_for_implmode", "s", None, (), NOTED, "kernels have one precision each"),
    Option("enable_reduce_precision", "b", False, (), NOTED, "has no effect on the platform either"),
    Option("enable_compress_weight", "b", False, (), NOTED, NO_DEVICE),
    Option("compress_weight_conf", "s", None, (), NOTED, NO_DEVICE),
    # Dynamic shape
    Option("dynamic_input", "b", False, (), MET, ALWAYS_DYNAMIC),
    Option("dynamic_graph_execute_mode", "s", "dynamic_execute", ("dynamic_execute", "lazy_recompile"), MET, ALWAYS_DYNAMIC),
    Option("dynamic_inputs_shape_range", "s", None, (), MET, ALWAYS_DYNAMIC),
    Option("input_shape", "s", None, (), MET, ALWAYS_DYNAMIC),
    Option("dynamic_dims", "s", None, (), MET, ALWAYS_DYNAMIC),
    Option("dynamic_node_type", "i", None, (0, 1), MET, ALWAYS_DYNAMIC),
    Option("jit_compile", "s", "auto", ("true", "false", "auto"), MET, "a plan is made for each shape in milliseconds"),
    # Compilation, tuning, caches
    Option("fusion_switch_file", "s", None, (), NOTED, "fusions of this engine have other names"),
    Option("enable_scope_fusion_passes", "s", None, (), NOTED, "fusions of this engine have other names"),
    Option("op_compiler_cache_mode", "s", None, ("enable", "force", "disable"), NOTED, "kernels are not compiled to files"),
    Option("op_compiler_cache_dir", "s", None, (), NOTED, "kernels are not compiled to files"),
    Option("graph_compiler_cache_dir", "s", None, (), NOTED, "plans are made anew in each process"),
    Option("aoe_mode", "s", None, ("1", "2", "4", "mdat"), NOTED, "there is no tuner yet"),
    Option("work_path", "s", "./", (), NOTED, "there is no tuner yet"),
    Option("aoe_config_file", "s", None, (), NOTED, "there is no tuner yet"),
    Option("auto_tune_mode", "s", None, (), NOTED, "there is no tuner yet"),
    Option("mstune_mode", "s", None, (), NOTED, "there is no tuner yet"),
    Option("topo_sorting_mode", "i", None, (0, 1), NOTED, "the planner chooses the order"),
    Option("variable_format_optimize", "b", None, (), NOTED, "variables keep TensorFlow's layout"),
    Option("min_group_size", "i", None, (), MET, "clusters without benefit are dissolved by themselves"),
    Option("graph_memory_max_size", "s", None, (), NOTED, "memory is taken as needed"),
    Option("variable_memory_max_size", "s", None, (), NOTED, "memory is taken as needed"),
    Option("buffer_optimize", "s", "l2_optimize", ("l2_optimize", "off_optimize"), NOTED, NO_DEVICE),
    Option("enable_small_channel", "i", 0, (0, 1), NOTED, NO_DEVICE),
    Option("soc_config", "s", None, (), NOTED, NO_DEVICE),
    Option("device_type", "s", "default_device_type", (), NOTED, NO_DEVICE),
    Option("stream_max_parallel_num", "s", None, (), NOTED, NO_DEVICE),
    Option("ac_parallel_enable", "s", None, ("0", "1"), NOTED, NO_DEVICE),
    # Memory, time limits, collectives
    Option("static_memory_policy", "i", 0, (), NOTED, "the planner reuses memory by itself"),
    Option("atomic_clean_policy", "i", 0, (), NOTED, NO_DEVICE),
    Option("memory_optimization_policy", "s", None, (), NOTED, "nothing is recomputed to save memory"),
    Option("graph_slice", "s", None, ("auto", "manual"), NOTED, "nothing is recomputed to save memory"),
    Option("graph_exec_timeout", "i", 600000, (), NOTED, "a step runs to its end"),
    Option("stream_sync_timeout", "i", -1, (), NOTED, "a step runs to its end"),
    Option("event_sync_timeout", "i", -1, (), NOTED, "a step runs to its end"),
    Option("op_wait_timeout", "i", None, (), NOTED, "a step runs to its end"),
    Option("op_execute_timeout", "i", None, (), NOTED, "a step runs to its end"),
    Option("hccl_timeout", "i", None, (), ACTS, "seconds that a collective waits for another rank; cairn launch --timeout goes before"),
    Option("hcom_parallel", "b", True, (), NOTED, COLLECTIVES),
    Option("hcom_multi_mode", "b", False, (), NOTED, COLLECTIVES),
    Option("is_tailing_optimization", "b", False, (), NOTED, COLLECTIVES),
    Option("HCCL_algorithm", "s", None, (), NOTED, COLLECTIVES),
    # Debugging
    Option("enable_dump", "b", False, (), ACTS, "True: what every operator of a step makes goes to files in dump_path"),
    Option("dump_path", "s", None, (), ACTS, "folder of dumps"),
    Option("dump_step", "s", None, (), ACTS, "steps to dump, numbers and ranges (10-20) between bars, counted from 0 for each cluster; unset: all"),
    Option("dump_mode", "s", "output", ("input", "output", "all"), ACTS, "what operators read, make, or both"),
    Option("dump_data", "s", "tensor", ("tensor", "stats"), ACTS, "stats: a table of extremes, means and norms instead of tensors"),
    Option("dump_layer", "s", None, (), ACTS, "only these operators, names between blanks"),
    Option("enable_dump_debug", "b", False, (), ACTS, "True: operators that make values that are not finite are told and dumped"),
    Option("dump_debug_mode", "s", "all", ("aicore_overflow", "atomic_overflow", "all"), MET, "all arithmetic is watched"),
    Option("enable_exception_dump", "i", None, (0, 1, 2), ACTS, "1, 2: what a failing operator read goes to dump_path/extra-info"),
    Option("op_debug_level", "i", None, (0, 1, 2, 3, 4), NOTED, "there are no compiler files"),
    Option("op_debug_config", "s", None, (), NOTED, "there are no compiler files"),
    Option("debug_dir", "s", None, (), NOTED, "there are no compiler files"),
    Option("profiling_mode", "b", False, (), ACTS, "True: the session's steps are recorded until it is closed"),
    Option("profiling_options", "s", None, (), ACTS, "JSON as in PROFILING_OPTIONS: output, training_trace, task_trace, aic_metrics, ..."),
    # Of earlier versions of the platform
    Option("enable_auto_mix_precision", "b", None, (), OLD, "precision_mode"),
    Option("allow_mix_compile", "b", None, (), OLD, "mix_compile_mode"),
    Option("master_slave_mode", "b", None, (), OLD, ""),
    Option("optypelist", "s", None, (), OLD, "optypelist_for_implmode"),
    Option("autotune_tune_mode", "s", None, (), OLD, "auto_tune_mode"),
    Option("fp_point", "s", None, (), OLD, "profiling_options"),
    Option("bp_point", "s", None, (), OLD, "profiling_options"),
)  # fmt: skip
BY_KEY = {option.key: option for option in TABLE}
KIND_NAMES = {"s": "string", "b": "bool", "i": "int"}
TYPES = {"s": (str, bytes), "b": (bool,), "i": (int,)}

_told = set()


def warn_once(sentence):
    if sentence not in _told:
        _told.add(sentence)
        logging.getLogger("npu_bridge").warning(sentence)


def nearest(key):
    """The known key that `key` was most likely meant to be, or None."""
    known = [option.key for option in TABLE if option.status != OLD]
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), lowered, 1, 0.6)
    return lowered[close[0]] if close else None


def check_entry(entry):
    """Puts right and checks a NpuOptimizer entry: a value in the wrong field is moved to the right one, an unknown or old
    key and an option without effect are told once, a value that is not allowed is an error."""
    for key in sorted(entry.parameter_map):
        field = entry.parameter_map[key]
        option = BY_KEY.get(key)
        if option is None or option.status == OLD:
            _tell_unknown(key, option)
            continue
        value = _moved(option, field)
        if value is not None:
            check_value(option, value)
            note(option, value)
    values = {key: value_of(entry, key) for key in entry.parameter_map if key in BY_KEY}
    check_together(values)
    return values


def note(option, value):
    """Tells once that the key changes nothing, when its value asks for a change."""
    if option.status == NOTED and value != option.default:
        warn_once(f"NpuOptimizer: {option.key} has no effect: {option.meaning}")


def check_value(option, value):
    if option.kind == "i" and option.key == "iterations_per_loop" and value < 1:
        raise ValueError("iterator_per_loop should be int and must >= 1")
    if option.key == "hccl_timeout" and value is not None and value < 1:
        raise ValueError(f"hccl_timeout is {value}, should be >= 1")
    if option.kind == "i" and option.key == "session_device_id" and value < 0:
        raise ValueError(f"session_device_id is {value}, should be >= 0")
    if option.allowed and value not in option.allowed and value != option.default and value != "":
        choices = ", ".join(map(str, option.allowed))
        raise ValueError(f"{option.key} is {value}, should be one of: {choices}")


def check_together(values):
    """Rules between keys, with the platform's wording where users quote it."""
    has = lambda key: values.get(key) not in (None, "", False)
    if has("precision_mode") and has("precision_mode_v2"):
        raise ValueError("'precision_mode' and 'precision_mode_v2' can not be assigned at the same time.")
    if has("modify_mixlist") and values.get("precision_mode") not in MIXED and values.get("precision_mode_v2") not in MIXED:
        raise ValueError(f"modify_mixlist needs a mixed precision_mode, one of: {', '.join(MIXED)}")
    if has("modify_mixlist"):
        _check_mixlist(values["modify_mixlist"])
    if has("optypelist_for_implmode") and not has("op_select_implmode"):
        raise ValueError("when use optypelist_for_implmode, op_select_implmode must be set.")
    together = ("input_shape", "dynamic_dims", "dynamic_node_type")
    if any(values.get(key) not in (None, "") for key in together) and not all(
        values.get(key) not in (None, "") for key in together
    ):
        raise ValueError("input_shape, dynamic_dims and dynamic_node_type should use together.")
    if has("frozen_variable") and values.get("graph_run_mode", 1) != 0:
        warn_once("NpuOptimizer: frozen_variable has no effect: graph_run_mode is 1, training")
    if values.get("iterations_per_loop", 1) > 1 and values.get("dynamic_graph_execute_mode") == "lazy_recompile":
        raise ValueError("iterations_per_loop only support 1 in lazy_recompile mode.")
    if (values.get("enable_dump") or values.get("enable_dump_debug")) and not has("dump_path"):
        raise ValueError("if use dump function, dump_path must be set.")
    if has("in_out_pair") and values.get("mix_compile_mode") is False:
        raise ValueError("mix_compile_mode must be True when use in_out_pair.")


def _check_mixlist(path):
    """The file is {list: {"to-add" or "to-remove": [operator types]}}."""
    try:
        with open(path, encoding="utf-8") as file:
            lists = json.load(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"modify_mixlist: {path} cannot be read: {error}") from None
    if not isinstance(lists, dict):
        raise ValueError(f"modify_mixlist: {path} is not a JSON object of lists")
    for name, changes in lists.items():
        if name not in MIXLISTS:
            raise ValueError(f"modify_mixlist: {path}: '{name}' should be one of: {', '.join(MIXLISTS)}")
        for change, types in changes.items() if isinstance(changes, dict) else [(changes, None)]:
            if change not in MIXLIST_CHANGES or not isinstance(types, list) or not all(isinstance(t, str) for t in types):
                raise ValueError(f"modify_mixlist: {path}: {name} should have to-add and to-remove with lists of operator types")


def value_of(entry, key):
    """The value of a key as Python has it: str, bool or int; the table's default where the entry lacks it."""
    option = BY_KEY[key]
    if key not in entry.parameter_map:
        return option.default
    value = getattr(entry.parameter_map[key], option.kind)
    return value.decode() if isinstance(value, bytes) else value


def set_value(entry, key, value):
    """Writes `value` (str, bool or int; None writes nothing) in the field of its key."""
    if value is not None:
        kind = BY_KEY[key].kind
        setattr(entry.parameter_map[key], kind, str(value).encode() if kind == "s" else value)


def _tell_unknown(key, option):
    instead = option.meaning if option else nearest(key)
    if option:
        sentence = f"NpuOptimizer: {key} is a key of an earlier version and has no effect"
        warn_once(sentence + (f"; use {instead}" if instead else ""))
    else:
        warn_once(f"NpuOptimizer: {key} is not a known key and has no effect" + (f"; is {instead} meant?" if instead else ""))


def _moved(option, field):
    """The value, moved to the option's own field when the script has set another; None when nothing can be made of it."""
    found = field.WhichOneof("value")
    if found == option.kind:
        value = getattr(field, option.kind)
        return value.decode() if isinstance(value, bytes) else value
    if found is None:
        return None
    value = _converted(option.kind, getattr(field, found) if found in TYPES else None)
    wanted, got = KIND_NAMES[option.kind], KIND_NAMES.get(found, found)
    if value is None:
        raise ValueError(f"{option.key} is set as {got}, should be {wanted}")
    warn_once(f"NpuOptimizer: {option.key} is set as {got}, should be {wanted}; taken as {value}")
    setattr(field, option.kind, value.encode() if option.kind == "s" else value)
    return value


def _converted(kind, value):
    if isinstance(value, bytes):
        value = value.decode()
    if kind == "s" and isinstance(value, bool):
        return "true" if value else "false"
    if kind == "s" and isinstance(value, int):
        return str(value)
    if kind == "b" and isinstance(value, int):
        return bool(value)
    if kind == "b" and isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
        return value.lower() in ("true", "1")
    if kind == "i" and isinstance(value, (bool, int)):
        return int(value)
    if kind == "i" and isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return None


def markdown():
    """The reference page of the table."""
    lines = [
        "# Options of a TensorFlow session",
        "",
        "<!-- Written by `python -m npu_bridge.options`; do not edit. -->",
        "",
        "Keys of the `NpuOptimizer` entry, and the arguments of `NPURunConfig` with the same names. A key that *acts* changes",
        "something; what one that is *met* asks for is always so; one that is *noted* is accepted, checked, and said once to",
        "have no effect.",
        "",
        "| key | type | default | values | status | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for option in TABLE:
        if option.status != OLD:
            default = "" if option.default is None else option.default
            values = ", ".join(map(str, option.allowed))
            kind = KIND_NAMES[option.kind]
            lines.append(f"| `{option.key}` | {kind} | {default} | {values} | {option.status} | {option.meaning} |")
    lines += ["", "Keys of earlier versions, told once: " + ", ".join(f"`{o.key}`" for o in TABLE if o.status == OLD) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
