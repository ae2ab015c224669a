"""Groups and ranks, by all their names."""

from mindspore import Tensor, context, ops
from mindspore.communication import (
    GlobalComm,
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_group_size,
    get_local_rank,
    get_local_rank_size,
    get_rank,
    get_world_rank_from_group_rank,
    init,
    release,
)
from mindspore.communication import _hccl_management as hccl
from mindspore.communication._comm_helper import Backend, _get_rank_helper

try:
    get_rank()
except RuntimeError as error:
    assert "init" in str(error)
else:
    raise AssertionError("a rank without init")
context.set_context(device_target="Ascend")
init()
rank, size = get_rank(), get_group_size()
assert GlobalComm.INITED and GlobalComm.WORLD_COMM_GROUP == "hccl_world_group"
assert (get_local_rank(), get_local_rank_size()) == (rank, size) == (hccl.get_rank_id(), hccl.get_rank_size())
assert _get_rank_helper(group="hccl_world_group", backend=Backend("hccl")) == rank
half = [each for each in range(size) if each % 2 == rank % 2][::-1]
name = f"half_{rank % 2}"
create_group(name, half)
assert get_group_size(name) == len(half) and get_rank(name) == half.index(rank)
assert [get_world_rank_from_group_rank(name, i) for i in range(len(half))] == half
assert get_group_rank_from_world_rank(rank, name) == half.index(rank)
assert ops.AllReduce(group=name)(Tensor([float(rank)])).asnumpy().tolist() == [float(sum(half))]
assert ops.AllGather(name)(Tensor([rank])).asnumpy().tolist() == half
for wrong, error in (((name, [0]), ValueError), (("other", [0, 0]), ValueError), (("other", [size]), ValueError), (("", [0]), ValueError)):
    try:
        create_group(*wrong)
    except error:
        continue
    raise AssertionError(wrong)
destroy_group(name)
try:
    get_group_size(name)
except ValueError:
    pass
else:
    raise AssertionError("a group that was destroyed")
assert context.get_auto_parallel_context("device_num") == 1
context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL)
assert context.get_auto_parallel_context("device_num") == size and context.get_auto_parallel_context("global_rank") == rank
for mode in (context.ParallelMode.AUTO_PARALLEL, context.ParallelMode.SEMI_AUTO_PARALLEL):
    try:
        context.set_auto_parallel_context(parallel_mode=mode)
    except NotImplementedError as error:
        assert "DATA_PARALLEL" in str(error)
    else:
        raise AssertionError(mode)
release()
print("fine")
