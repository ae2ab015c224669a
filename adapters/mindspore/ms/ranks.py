"""The ranks of this process's job, by the names that scripts have for its groups."""

import json
import os
import types

import cairn
from cairn import job

WORLD = "hccl_world_group"
WORLDS = (WORLD, "nccl_world_group", "mccl_world_group")
_ALONE = types.SimpleNamespace(rank=0, size=1, local_rank=0, local_size=1, ranks=(0,))


def engine_name(group):
    """What the engine calls a group."""
    return "world" if group in WORLDS else group


def announced():
    """The number of ranks that the environment tells of; 1 where it tells nothing or a rank table has it, which is read by init()."""
    if os.environ.get("CAIRN_JOB"):
        return json.loads(os.environ["CAIRN_JOB"]).get("size", 1)
    for name in ("RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "CM_WORKER_SIZE"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 1


def take_over_mpi():
    """Sets the variables that scripts read from those of mpirun."""
    for name, of_mpi in (("RANK_ID", "RANK"), ("DEVICE_ID", "LOCAL_RANK"), ("RANK_SIZE", "SIZE")):
        if f"OMPI_COMM_WORLD_{of_mpi}" in os.environ:
            os.environ[name] = os.environ[f"OMPI_COMM_WORLD_{of_mpi}"]


def group(name=WORLD):
    """rank, size, local_rank, local_size and ranks of a group. A process without a job is alone in the world; KeyError for other groups."""
    if not job.joined():
        if name not in WORLDS:
            raise KeyError(name)
        return _ALONE
    try:
        return job.group(engine_name(name))
    except cairn.Error as error:
        if error.kind != "not_found":
            raise
        raise KeyError(name) from None


def several():
    """Whether the job has more than one rank."""
    return job.joined() and job.group("world").size > 1
