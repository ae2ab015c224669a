"""Ranks and groups of one process. RANK_SIZE above 1 is refused: training would be another one."""

import os

from cairn.ms import refuse

__all__ = ["GlobalComm", "HCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "create_group", "destroy_group", "get_group_rank_from_world_rank",
           "get_group_size", "get_local_rank", "get_local_rank_size", "get_rank", "get_world_rank_from_group_rank", "init", "release"]  # fmt: skip

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP = "hccl_world_group", "nccl_world_group", "mccl_world_group"
_WORLDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_BACKENDS = {"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"}


class GlobalComm:
    """What init() has set."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


_groups = {}


def init(backend_name=None):
    """One rank is ready."""
    if backend_name is None:
        from mindspore import context

        backend_name = _BACKENDS.get(context.get_context("device_target"), "hccl")
    if not isinstance(backend_name, str):
        raise TypeError(f"For 'init', the argument 'backend_name' must be a string, but got the type : {type(backend_name)}")
    if backend_name not in _WORLDS:
        raise RuntimeError(f"For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got {backend_name}.")
    for name in ("RANK_SIZE", "OMPI_COMM_WORLD_SIZE"):
        if os.environ.get(name, "1").isdigit() and int(os.environ.get(name, "1")) > 1:
            refuse(f"mindspore.communication.init with {name}={os.environ[name]}", "there is one rank", f"{name}=1")
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = backend_name, _WORLDS[backend_name], True


def release():
    """Ends what init() began."""
    GlobalComm.INITED = False
    _groups.clear()


def _known(group, who):
    if not isinstance(group, str):
        raise TypeError(f"For '{who}', the argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    if group not in _groups and group not in (*_WORLDS.values(), GlobalComm.WORLD_COMM_GROUP):
        raise ValueError(f"For '{who}', the group '{group}' does not exist.")


def get_rank(group=GlobalComm.WORLD_COMM_GROUP):
    """This process's rank: 0."""
    _known(group, "get_rank")
    return 0


def get_local_rank(group=GlobalComm.WORLD_COMM_GROUP):
    """Its rank on this machine: 0."""
    _known(group, "get_local_rank")
    return 0


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP):
    """Ranks in a group: 1."""
    _known(group, "get_group_size")
    return 1


def get_local_rank_size(group=GlobalComm.WORLD_COMM_GROUP):
    """Ranks on this machine: 1."""
    _known(group, "get_local_rank_size")
    return 1


def get_world_rank_from_group_rank(group, group_rank_id):
    """The world's number of a group's rank."""
    _known(group, "get_world_rank_from_group_rank")
    if not isinstance(group_rank_id, int):
        raise TypeError("For 'get_world_rank_from_group_rank', the argument 'group_rank_id' must be type of int, but got "
                        f"{type(group_rank_id)}.")
    return _only(group_rank_id, "group_rank_id")


def get_group_rank_from_world_rank(world_rank_id, group):
    """A group's number of a rank."""
    _known(group, "get_group_rank_from_world_rank")
    if not isinstance(world_rank_id, int):
        raise TypeError("For 'get_group_rank_from_world_rank', the argument 'world_rank_id' must be type of int, but got "
                        f"{type(world_rank_id)}.")
    return _only(world_rank_id, "world_rank_id")


def _only(rank, name):
    if rank != 0:
        raise ValueError(f"The argument '{name}' must be 0, since there is one rank, but got {rank}.")
    return 0


def create_group(group, rank_ids):
    """A group of rank 0."""
    if not isinstance(group, str) or not isinstance(rank_ids, list):
        raise TypeError("For 'create_group', the argument 'group' must be a string and 'rank_ids' a list.")
    if not group or not rank_ids:
        raise ValueError("For 'create_group', the arguments 'group' and 'rank_ids' must not be empty.")
    if rank_ids != [0]:
        raise ValueError(f"For 'create_group', the argument 'rank_ids' must be [0], since there is one rank, but got {rank_ids}.")
    _groups[group] = rank_ids


def destroy_group(group):
    """Removes a group."""
    if group in _WORLDS.values():
        raise ValueError("For 'destroy_group', the world group cannot be destroyed.")
    _known(group, "destroy_group")
    _groups.pop(group)
