"""The private functions of HCCL, which early scripts call: those of the job's groups."""

from mindspore.communication import management

_WORLD = management.HCCL_WORLD_COMM_GROUP
MAX_GROUP_NAME_LEN, MAX_RANK_NUM = 127, 4096

get_world_rank_from_group_rank = management.get_world_rank_from_group_rank
get_group_rank_from_world_rank = management.get_group_rank_from_world_rank
destroy_group = management.destroy_group


def load_lib():
    """There is no library to load."""


def check_group(group):
    """Raises unless the group's name is a text of 1 to 127 characters."""
    if not isinstance(group, str):
        raise TypeError("The type of communication group name must be type of string, but got 'group' type : {}.".format(type(group)))
    if not 0 < len(group) <= MAX_GROUP_NAME_LEN:
        raise ValueError(f"The length of communication group name must be in range [1, {MAX_GROUP_NAME_LEN}], but got {len(group)}.")


def check_rank_num(rank_num):
    """Raises unless it is a number of ranks."""
    if not isinstance(rank_num, int):
        raise TypeError(f"The argument 'rank_num' must be type of int, but got {type(rank_num)}.")
    if not 0 < rank_num <= MAX_RANK_NUM:
        raise ValueError(f"The argument 'rank_num' must be in range [1, {MAX_RANK_NUM}], but got {rank_num}.")


def check_rank_id(rank_id):
    """Raises unless it is a rank."""
    if not isinstance(rank_id, int):
        raise TypeError(f"The argument 'rank_id' must be type of int, but got {type(rank_id)}.")
    if not 0 <= rank_id < MAX_RANK_NUM:
        raise ValueError(f"The argument 'rank_id' must be in range [0, {MAX_RANK_NUM - 1}], but got {rank_id}.")


def create_group(group, rank_num, rank_ids):
    """A group of rank_num ranks."""
    check_group(group)
    check_rank_num(rank_num)
    if not isinstance(rank_ids, list):
        raise TypeError(f"The argument 'rank_ids' must be type of list, but got {type(rank_ids)}.")
    if rank_num != len(rank_ids):
        raise ValueError(f"The argument 'rank_num' must be the number of ranks, but got {rank_num} and {len(rank_ids)} ranks.")
    management.create_group(group, rank_ids)


def get_rank_size(group=_WORLD):
    """Ranks in a group."""
    return management.get_group_size(group)


def get_rank_id(group=_WORLD):
    """This process's rank in a group."""
    return management.get_rank(group)


def get_local_rank_size(group=_WORLD):
    """Ranks of a group on this machine."""
    return management.get_local_rank_size(group)


def get_local_rank_id(group=_WORLD):
    """This process's rank among them."""
    return management.get_local_rank(group)
