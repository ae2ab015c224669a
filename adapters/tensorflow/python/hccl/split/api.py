"""How a script wants its gradients put together for the all-reduces (npu_bridge.hccl.collectives)."""

from hccl.manage.api import WORLD, get_rank_size

_strategies = {}


def set_split_strategy_by_idx(idx_list, group=WORLD):
    """Last gradient index of each part, rising."""
    numbers = list(idx_list)
    if not numbers or any(not isinstance(n, int) or n < 0 for n in numbers) or numbers != sorted(set(numbers)):
        raise ValueError(f"idx_list is {numbers}, should be rising gradient indices such as [20, 100, 159]")
    _record(group, ("index", numbers))


def set_split_strategy_by_size(percent_list, group=WORLD):
    """Share of the gradients' bytes in each part, in percent."""
    numbers = list(percent_list)
    if not numbers or any(n < 0 for n in numbers) or abs(sum(numbers) - 100) > 1e-6:
        raise ValueError(f"percent_list is {numbers}, should add up to 100, such as [60, 40]")
    _record(group, ("size", numbers))


def _record(group, strategy):
    get_rank_size(group)  # the group exists
    _strategies[group] = strategy


def strategy(group=WORLD):
    """What was recorded: ("index" or "size", numbers), or None."""
    return _strategies.get(group)
