"""Ranks and groups of ranks. They come from the environment, so no engine has to be started first."""

from npu_bridge import environment

WORLD = "hccl_world_group"
_groups = {}


def _members(group):
    if group == WORLD:
        return list(range(environment.rank_size()))
    if group not in _groups:
        raise ValueError(f"group {group} does not exist; create_group makes it")
    return _groups[group]


def create_group(group, rank_num, rank_ids):
    size = environment.rank_size()
    if group == WORLD or group in _groups:
        raise ValueError(f"group {group} exists already")
    if rank_num != len(rank_ids) or len(set(rank_ids)) != len(rank_ids):
        raise ValueError(f"group {group}: rank_num is {rank_num}, rank_ids is {list(rank_ids)}")
    if any(not 0 <= rank < size for rank in rank_ids):
        raise ValueError(f"group {group}: rank_ids is {list(rank_ids)}, there are {size} ranks")
    _groups[group] = list(rank_ids)
    environment.add_group(group, rank_ids)


def destroy_group(group):
    if group == WORLD:
        raise ValueError(f"group {WORLD} cannot be destroyed")
    _members(group)
    environment.remove_group(group)
    del _groups[group]


def get_rank_size(group=WORLD):
    return len(_members(group))


def get_rank_id(group=WORLD):
    return get_group_rank_from_world_rank(environment.rank_id(), group)


def get_local_rank_size(group=WORLD):
    return environment.local_rank_size() if group == WORLD else len(_local_members(group))


def get_local_rank_id(group=WORLD):
    return environment.local_rank_id() if group == WORLD else _local_members(group).index(environment.rank_id())


def _local_members(group):
    return [rank for rank in _members(group) if rank in environment.local_ranks()]


def get_world_rank_from_group_rank(group, group_rank_id):
    members = _members(group)
    if not 0 <= group_rank_id < len(members):
        raise ValueError(f"group {group} has no rank {group_rank_id}, it has {len(members)}")
    return members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id, group):
    members = _members(group)
    if world_rank_id not in members:
        raise ValueError(f"rank {world_rank_id} is not in group {group}")
    return members.index(world_rank_id)
