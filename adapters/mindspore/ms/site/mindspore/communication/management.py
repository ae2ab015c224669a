"""Ranks and groups of the job that this process is part of: see docs/how-to/run-mindspore-scripts.md for how jobs start."""

from cairn import job
from cairn.ms import ranks

__all__ = ["GlobalComm", "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "create_group", "destroy_group",
           "get_group_rank_from_world_rank", "get_group_size", "get_local_rank", "get_local_rank_size", "get_rank",
           "get_world_rank_from_group_rank", "init", "release"]  # fmt: skip

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP = ranks.WORLDS
_WORLDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_BACKENDS = {"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"}
ranks.take_over_mpi()


class GlobalComm:
    """What init() has set."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


_groups = {}  # those that this process created: their ranks


def init(backend_name=None):
    """Joins the job that the environment describes; without a description the job has one rank."""
    from mindspore import context

    if backend_name is None:
        backend_name = _BACKENDS.get(context.get_context("device_target"), "hccl")
    if not isinstance(backend_name, str):
        raise TypeError(f"For 'init', the argument 'backend_name' must be a string, but got the type : {type(backend_name)}")
    if backend_name not in _WORLDS:
        raise RuntimeError(f"For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got {backend_name}.")
    if not GlobalComm.INITED:
        job.join()
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = backend_name, _WORLDS[backend_name], True
    context._check_parallel_mode()


def release():
    """Leaves the job."""
    _groups.clear()
    if GlobalComm.INITED:
        GlobalComm.INITED = False
        job.leave()


def _known(group, who):
    if not isinstance(group, str):
        raise TypeError(f"For '{who}', the argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    if not job.joined() and ranks.announced() > 1:
        raise RuntimeError(f"For '{who}', Distributed Communication has not been inited: call mindspore.communication.init() first.")
    try:
        return ranks.group(group)
    except KeyError:
        raise ValueError(f"For '{who}', the group '{group}' does not exist.") from None


def _member(group, who):
    found = _known(group, who)
    if found.rank < 0:
        raise RuntimeError(f"For '{who}', rank {ranks.group().rank} is no member of the group '{group}', which has {list(found.ranks)}.")
    return found


def get_rank(group=GlobalComm.WORLD_COMM_GROUP):
    """This process's rank in a group."""
    return _member(group, "get_rank").rank


def get_local_rank(group=GlobalComm.WORLD_COMM_GROUP):
    """Its rank among those of the group on this machine."""
    return _member(group, "get_local_rank").local_rank


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP):
    """Ranks in a group."""
    return _known(group, "get_group_size").size


def get_local_rank_size(group=GlobalComm.WORLD_COMM_GROUP):
    """Ranks of a group on this machine."""
    return _known(group, "get_local_rank_size").local_size


def _whole(value, name, who):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{who}', the argument '{name}' must be type of int, but got {type(value)}.")
    return value


def get_world_rank_from_group_rank(group, group_rank_id):
    """The world's number of a group's rank."""
    members = _known(group, "get_world_rank_from_group_rank").ranks
    if not 0 <= _whole(group_rank_id, "group_rank_id", "get_world_rank_from_group_rank") < len(members):
        raise ValueError(f"The argument 'group_rank_id' must be in [0, {len(members) - 1}], the ranks of '{group}', but got {group_rank_id}.")
    return members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id, group):
    """A group's number of a rank."""
    members = list(_known(group, "get_group_rank_from_world_rank").ranks)
    if _whole(world_rank_id, "world_rank_id", "get_group_rank_from_world_rank") not in members:
        raise ValueError(f"The argument 'world_rank_id' must be one of {members}, the ranks of '{group}', but got {world_rank_id}.")
    return members.index(world_rank_id)


def create_group(group, rank_ids):
    """A group of some ranks, which all of them create with the same list."""
    if not isinstance(group, str) or not isinstance(rank_ids, list):
        raise TypeError("For 'create_group', the argument 'group' must be a string and 'rank_ids' a list.")
    if not group or not rank_ids:
        raise ValueError("For 'create_group', the arguments 'group' and 'rank_ids' must not be empty.")
    if group in _groups:
        if _groups[group] != rank_ids:
            raise ValueError(f"The group {group} has been created, the rank_list is {_groups[group]}, but current rank_list for the group is {rank_ids}")
        return
    if len(set(rank_ids)) < len(rank_ids):
        raise ValueError(f"List rank_ids in Group {group} has duplicate data!")
    size = _known(GlobalComm.WORLD_COMM_GROUP, "create_group").size
    wrong = [each for each in rank_ids if not 0 <= _whole(each, "rank_ids", "create_group") < size]
    if wrong:
        raise ValueError(f"For 'create_group', the argument 'rank_ids' must hold ranks in [0, {size - 1}], but got {wrong[0]}.")
    if not job.joined():
        raise RuntimeError("For 'create_group', Distributed Communication has not been inited: call mindspore.communication.init() first.")
    job.group_create(group, rank_ids)
    _groups[group] = list(rank_ids)


def destroy_group(group):
    """Removes a group."""
    if group in _WORLDS.values():
        raise ValueError("For 'destroy_group', the world group cannot be destroyed.")
    _known(group, "destroy_group")
    job.group_destroy(group)
    _groups.pop(group, None)


def _get_group(group):
    """The world group that init() has chosen, where that of hccl is meant, which is the default everywhere."""
    return GlobalComm.WORLD_COMM_GROUP if group == HCCL_WORLD_COMM_GROUP else group
