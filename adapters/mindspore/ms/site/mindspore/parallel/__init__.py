"""Parallel training. The private names that scripts import are here."""

from cairn.ms import refuse


def set_algo_parameters(**settings):
    """Settings of the search for strategies, of which there is none."""
    known = {"fully_use_devices", "elementwise_op_strategy_follow", "enable_algo_approxi", "algo_approxi_epsilon", "tensor_slice_align_enable",
             "tensor_slice_align_size"}  # fmt: skip
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"For 'set_algo_parameters', the argument '{unknown[0]}' is not recognized.")
    _settings.update(settings)


_settings = {}


def get_algo_parameters(attr_key):
    """A setting of set_algo_parameters."""
    return _settings.get(attr_key, {"fully_use_devices": True, "algo_approxi_epsilon": 0.1, "tensor_slice_align_size": 16}.get(attr_key, False))


def reset_algo_parameters():
    """Forgets the settings."""
    _settings.clear()


def __getattr__(name):
    if name in ("shard", "parameter_broadcast", "Layout", "rank_list_for_transform", "transform_checkpoints"):
        refuse(f"mindspore.parallel.{name}", "operators are not split over several ranks", "ParallelMode.DATA_PARALLEL")
    raise AttributeError(f"module 'mindspore.parallel' has no attribute '{name}'")
