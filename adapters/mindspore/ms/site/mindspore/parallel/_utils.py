"""Private questions that scripts ask of the parallel context."""

from mindspore import context


def _get(name, default):
    try:
        return context.get_auto_parallel_context(name)
    except ValueError:
        return default


def _get_device_num():
    return 1 if _get_parallel_mode() == "stand_alone" else _get("device_num", 1)


def _get_global_rank():
    return 0 if _get_parallel_mode() == "stand_alone" else _get("global_rank", 0)


def _reduces_gradients():
    """Whether training steps add up the gradients of all ranks."""
    return _get_parallel_mode() in ("data_parallel", "hybrid_parallel")


def _get_parallel_mode():
    return _get("parallel_mode", "stand_alone")


def _get_gradients_mean():
    return _get("gradients_mean", False)


_get_mirror_mean = _get_gradients_mean


def _get_full_batch():
    return _get("full_batch", False)


def _reset_op_id():
    """Operators are not numbered."""


_reset_op_id_with_offset = _reset_op_id


def _get_pipeline_stages():
    return 1


def _get_stage_device_num():
    return 1


def _is_role_pserver():
    return False


_is_role_sched = _is_role_worker = _is_pynative_parallel = _is_in_auto_parallel_mode = _is_role_pserver


def _get_enable_parallel_optimizer():
    return _get("enable_parallel_optimizer", False)


def _get_parameter_broadcast():
    return _get("parameter_broadcast", False)


def _check_full_batch():
    """full_batch is of the modes that split operators."""
