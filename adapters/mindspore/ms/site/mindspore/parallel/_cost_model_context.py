"""Settings of the cost model that a search for strategies would use; there is no search, so they are only kept."""

_DEFAULTS = {
    "device_memory_capacity": 16.0 * 1024.0 * 1024.0 * 1024.0, "costmodel_alpha": 1.0, "costmodel_beta": 400.0, "costmodel_gamma": 0.001,
    "costmodel_simplify_cal": True, "costmodel_communi_threshold": 2048.0, "costmodel_communi_const": 3072.0, "costmodel_communi_bias": 1024.0,
    "run_phase": 0, "multi_subgraphs": False, "is_multi_subgraphs": False, "costmodel_allreduce_fusion_algorithm": 0,
    "costmodel_allreduce_fusion_times": 0, "costmodel_allreduce_fusion_tail_percent": 0.1, "costmodel_allreduce_fusion_tail_time": 0.1,
    "costmodel_allreduce_fusion_allreduce_inherent_time": 0.1, "costmodel_allreduce_fusion_allreduce_bandwidth": 0.1,
    "costmodel_allreduce_fusion_computation_time_parameter": 0.1, "dp_algo_enable_approxi": False, "dp_algo_approxi_epsilon": 0.1,
    "dp_algo_single_loop": False,
}  # fmt: skip
_settings = dict(_DEFAULTS)


def _known(name):
    if name not in _DEFAULTS:
        raise ValueError(f"For 'set_cost_model_context', the argument {name} is not recognized.")
    return name


def set_cost_model_context(**settings):
    """Sets keys of the cost model."""
    _settings.update({_known(name): value for name, value in settings.items()})


def get_cost_model_context(attr_key):
    """The value of a key."""
    return _settings[_known(attr_key)]


def reset_cost_model_context():
    """All keys as they were at first."""
    _settings.update(_DEFAULTS)
