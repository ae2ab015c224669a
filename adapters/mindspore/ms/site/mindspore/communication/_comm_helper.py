"""The private path to the groups."""

from mindspore.communication.management import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_group_size,
    get_local_rank,
    get_local_rank_size,
    get_rank,
    get_world_rank_from_group_rank,
)

__all__ = ["Backend", "GlobalComm", "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP"]


class Backend:
    """The names of backends; Backend("hccl") is "hccl"."""

    UNDEFINED, HCCL, NCCL, HCCL_MPI, MCCL = "undefined", "hccl", "nccl", "hccl_mpi", "mccl"

    def __new__(cls, name):
        if not isinstance(name, str):
            raise TypeError(f"For 'Backend', the class variable 'name' must be a string, but got the type : {type(name)}")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        if value == Backend.UNDEFINED:
            raise ValueError(f"For 'Backend', the class variable 'name' {name} is not supported, please use hccl or nccl.")
        return value


def _of_backend(function):
    """The helper of that name, which takes the backend too."""

    def helper(*arguments, backend=None, **keywords):
        return function(*arguments, **keywords)

    return helper


def is_hccl_available():
    """All backends are the engine's collectives."""
    return True


is_nccl_available = is_mpi_available = is_hccl_available
_get_rank_helper, _get_local_rank_helper = _of_backend(get_rank), _of_backend(get_local_rank)
_get_size_helper, _get_local_size_helper = _of_backend(get_group_size), _of_backend(get_local_rank_size)
_get_world_rank_from_group_rank_helper = _of_backend(get_world_rank_from_group_rank)
_get_group_rank_from_world_rank_helper = _of_backend(get_group_rank_from_world_rank)
_create_group_helper, _destroy_group_helper = _of_backend(create_group), _of_backend(destroy_group)
