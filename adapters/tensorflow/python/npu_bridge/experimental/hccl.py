"""Ranks by the names of the experimental interface."""

from hccl.manage.api import get_rank_id, get_rank_size


def get_actual_rank_size(group="hccl_world_group"):
    return get_rank_size(group)


def get_user_rank_size():
    return get_rank_size()


def get_user_rank_id():
    return get_rank_id()
