"""Jobs of several processes, called ranks, which exchange tensors by collectives.

    cairn.job.join()                       # as the environment says: RANK_TABLE_FILE, RANK_ID, RANK_SIZE, CM_*, mpirun, cairn launch
    total = cairn.ops.all_reduce(x, ranks=cairn.job.group().size)
    cairn.job.leave()

Every rank calls the same collectives of a group in the same order. A rank that does not, dies or stops ends them on all others
with a cairn.Error that names it; after that the job is of no more use. See docs/explanation/collectives.md.
"""

import atexit
import dataclasses
import json
import sys

from cairn import _cairn


@dataclasses.dataclass(frozen=True)
class Group:
    """rank: of this process among the members, -1 if it is none; local_rank, local_size: among those on this host; ranks: the
    members as ranks of the job, in the group's order."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    ranks: tuple


def join(**options):
    """Joins the job that the options and, after them, the environment describe; without either it has one rank. Joins nest.

    options: rank, size, local_rank, local_size; table, a rank table file; address, "host:port" where rank 0 waits for the
    others; token, which keeps jobs apart; transport: "auto", "gloo", "mpi"; shared_memory: False to use the transport within a host as well;
    timeout: seconds that a collective waits for another rank; connect_timeout: for all ranks to come.
    """
    _cairn._job_join(json.dumps(options) if options else "")


def leave():
    """Undoes one join; the last waits until all ranks have left, at most for the timeout."""
    _cairn._job_leave()


def joined():
    return _cairn._job_joined()


def group(name="world"):
    """The Group of that name; "world" has all ranks."""
    view = _cairn._job_group(name)
    return Group(**{**view, "ranks": tuple(view["ranks"])})


def group_create(name, ranks):
    """All members call it with the same ranks of the job; others may, too."""
    _cairn._job_group_create(name, list(ranks))


def group_destroy(name):
    _cairn._job_group_destroy(name)


def set_fusion(group="world", **strategy):
    """How all_reduce nodes of models made from now on are put together: bytes=8388608, indices=[20, 159] (the last gradient of
    each bucket), percents=[60, 40] (of all bytes), none=True."""
    _cairn._job_set_fusion(group, json.dumps(strategy))


def set_timeout(seconds):
    """How long collectives wait for another rank from now on; all ranks say the same."""
    _cairn._job_set_timeout(seconds)


def describe():
    """rank, size, hosts, groups, transport with the reason for it, timeouts, and calls, bytes, seconds and waiting of each kind
    of collective."""
    return json.loads(_cairn._job_describe())


@atexit.register
def _leave_at_exit():
    if hasattr(sys, "last_value"):  # an exception ends this process: the others learn at once that it is gone
        return
    while joined():
        leave()
