"""Primitives by which ranks exchange tensors: the rules are cairn.ms.numerics.collectives."""

import numpy as np
from cairn import job
from cairn.ms import core, ranks
from cairn.ms.numerics import basic, collectives
from mindspore._checkparam import Validator
from mindspore.communication.management import _get_group
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, Operator, primitive, tensor

_WORLD = ranks.WORLD


class ReduceOp:
    """How AllReduce and ReduceScatter combine."""

    SUM, MAX, MIN, PROD = "sum", "max", "min", "prod"


def _prepare(self):
    """Checks what communication primitives share, and sets the attributes that scripts change: `fusion` is the number of the bucket that an
    AllReduce joins, 1 for those that set_auto_parallel_context(comm_fusion=...) cuts, 0 for none."""
    if "op" in self.attrs:
        if not isinstance(self.op, str):
            raise TypeError(f"For '{self.name}', the 'op' should be str, but got {type(self.op).__name__}.")
        Validator.check_string(self.op, ("sum", "max", "min", "prod"), "op", self.name)
    if not isinstance(self.group, str):
        raise TypeError(f"For '{self.name}', the 'group' should be str, but got {type(self.group).__name__}.")
    self.add_prim_attr("group", _get_group(self.group))
    self.add_prim_attr("rank_size", _size(self))
    for name, value in (("fusion", 0), ("index", 0), ("no_eliminate", True)):
        self.add_prim_attr(name, value)


def _size(self):
    try:
        return ranks.group(self.group).size
    except KeyError:
        raise ValueError(f"For '{self.name}', the group '{self.group}' does not exist.") from None


def _collective(name, compute, doc, prepare=None, **attributes):
    def check(self):
        _prepare(self)
        if prepare is not None:
            prepare(self)

    return primitive(name, compute, doc, check, **attributes, group=_WORLD)


def _numbers(self, x):
    tensor(x, self.name, "number")
    return x


def fusion_of(number):
    """The attributes of a row for a bucket's number."""
    return {"fusion": min(number, 2), "fusion_id": number if number > 1 else -1}


def _all_reduce(self, x):
    return collectives.all_reduce(_numbers(self, x), self.op, self.group, name=str(self.attrs.get("parameter", "")), **fusion_of(self.fusion))


def _at_least_one_dim(self, x):
    if not len(_numbers(self, x).shape):
        raise ValueError(f"For '{self.name}', the input must have a first dimension, but got shape ().")
    return x


def _parted(self, x, count):
    if _at_least_one_dim(self, x).shape[0] % count:
        raise ValueError(f"For '{self.name}', the first dimension of 'x_shape' should be divided by 'rank_size', "
                         f"but got 'x_shape[0]': {x.shape[0]}, 'rank_size': {count}.")  # fmt: skip
    return x


AllReduce = _collective("AllReduce", _all_reduce, "The sum, max, min or prod over all ranks of a group.", op=ReduceOp.SUM)
AllGather = _collective(
    "AllGather", lambda self, x: collectives.all_gather(_at_least_one_dim(self, x), self.group), "What all ranks have, along axis 0."
)
ReduceScatter = _collective(
    "ReduceScatter",
    lambda self, x: collectives.reduce_scatter(_parted(self, x, _size(self)), self.op, self.group),
    "This rank's part along axis 0 of the sum, max, min or prod over all ranks.",
    op=ReduceOp.SUM,
)


def _check_root(self):
    Validator.check_value_type("root_rank", self.root_rank, [int], self.name)
    if not 0 <= self.root_rank < self.rank_size:
        raise ValueError(f"For '{self.name}', the 'root_rank' must be in [0, {self.rank_size - 1}], but got {self.root_rank}.")


def _broadcast(self, x):
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"For '{self.name}', the 'input_x' should be a tuple, but got {type(x).__name__}!")
    return tuple(collectives.broadcast(_numbers(self, each), self.root_rank, self.group) for each in x)


Broadcast = _collective("Broadcast", _broadcast, "What rank root_rank has, of each tensor of a tuple.", _check_root, root_rank=REQUIRED)


def _check_all_to_all(self):
    for name in ("split_count", "split_dim", "concat_dim"):
        Validator.check_value_type(name, getattr(self, name), [int], self.name)
    if self.split_count != self.rank_size:
        raise ValueError(f"For '{self.name}', the 'split_count' must be equal to 'rank_size', "
                         f"but got 'split_count': {self.split_count}, 'rank_size': {self.rank_size}.")  # fmt: skip


def _all_to_all(self, x):
    dims, count = tuple(_at_least_one_dim(self, x).shape), self.split_count
    split, joined = (basic.axes_of(each, len(dims))[0] for each in (self.split_dim, self.concat_dim))
    if dims[split] % count:
        raise ValueError(f"For '{self.name}', the 'split_count' must be divisible by 'rank_size', "
                         f"but got 'split_count' {count}, 'rank_size' {dims[split]}.")  # fmt: skip
    parts = basic.reshape(x, (*dims[:split], count, dims[split] // count, *dims[split + 1 :]))
    came = basic.moved(collectives.all_to_all(basic.moved(parts, split, 0), self.group), 0, joined)
    made = list(dims)
    made[split] //= count
    made[joined] *= count
    return basic.reshape(came, tuple(made))


AlltoAll = _collective(
    "AlltoAll", _all_to_all, "Part i along split_dim goes to rank i; what comes is joined along concat_dim.", _check_all_to_all,
    split_count=REQUIRED, split_dim=REQUIRED, concat_dim=REQUIRED,
)  # fmt: skip


# Neighbours


def _exchanged(self, sends, receives, like):
    """sends: [(rank, tensor)], receives: [(rank, shape)]. The tensors that come, in order; those of one rank in the order in which it sends."""
    size = _size(self)

    def by_rank(pairs, length):
        counts = [0] * size
        for rank, each in pairs:
            counts[rank] += length(each)
        return counts, sorted(range(len(pairs)), key=lambda i: pairs[i][0])

    out, order = by_rank(sends, lambda each: int(np.prod(each.shape)))
    into, came = by_rank(receives, lambda shape: int(np.prod(shape)))
    flat = [basic.reshape(sends[i][1], (-1,)) for i in order]
    flat = core.concat(*flat, axis=0) if flat else basic.filled((0,), 0, like)
    made, begin = [None] * len(receives), 0
    flat = collectives.all_to_all_v(flat, out, into, self.group)
    for i in came:
        length = int(np.prod(receives[i][1]))
        made[i] = basic.reshape(basic.part(flat, 0, begin, begin + length), tuple(receives[i][1]))
        begin += length
    return made


def _neighbour_exchange(self, x):
    if not isinstance(x, (tuple, list)) or len(x) != len(self.send_rank_ids):
        raise TypeError(f"For '{self.name}', the input must be a tuple of {len(self.send_rank_ids)} Tensors, one for each of send_rank_ids.")
    for each, shape in zip(x, self.send_shapes):
        if tuple(_numbers(self, each).shape) != tuple(shape):
            raise ValueError(f"For '{self.name}', send_shapes has {tuple(shape)} where the input has shape {tuple(each.shape)}.")
    return tuple(_exchanged(self, list(zip(self.send_rank_ids, x)), list(zip(self.recv_rank_ids, self.recv_shapes)), basic.as_np(self.recv_type)))


def _check_neighbours(self):
    for ids in ("send_rank_ids", "recv_rank_ids"):
        least = -1 if self.name == "NeighborExchangeV2" else 0
        for each in getattr(self, ids):
            if isinstance(each, bool) or not isinstance(each, int) or not least <= each < self.rank_size:
                raise ValueError(f"For '{self.name}', the '{ids}' must hold ranks in [{least}, {self.rank_size - 1}], but got {each}.")


NeighborExchange = _collective(
    "NeighborExchange", _neighbour_exchange, "Tensors go to some ranks and come from some.", _check_neighbours,
    send_rank_ids=REQUIRED, recv_rank_ids=REQUIRED, recv_shapes=REQUIRED, send_shapes=REQUIRED, recv_type=REQUIRED,
)  # fmt: skip

# Around an image, clockwise from the top: its place as (rows, columns), each before (-1), beside (0) or behind (1).
_AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def _margins(self, lens, height, width):
    """Of each place the (begin, end) of its rows and columns inside the image, and their number."""
    top, bottom, left, right = lens
    rows, columns = {-1: (0, top), 0: (0, height), 1: (height - bottom, height)}, {-1: (0, left), 0: (0, width), 1: (width - right, width)}
    return [(rows[r], columns[c]) for r, c in _AROUND]


def _halo(self, x):
    n, c, height, width = _numbers(self, x).shape
    sends = [
        (rank, basic.part(basic.part(x, 2, *rows), 3, *columns))
        for rank, (rows, columns) in zip(self.send_rank_ids, _margins(self, self.send_lens, height, width)) if rank >= 0
    ]  # fmt: skip
    margins = _margins(self, self.recv_lens, height, width)
    wanted = [(rank, (n, c, rows[1] - rows[0], columns[1] - columns[0])) for rank, (rows, columns) in zip(self.recv_rank_ids, margins) if rank >= 0]
    came = iter(_exchanged(self, sends, wanted, basic.nptype(x)))
    around = {place: next(came) for place, rank in zip(_AROUND, self.recv_rank_ids) if rank >= 0}
    around[0, 0] = x
    lines = []
    for row in (-1, 0, 1):
        line = [around[row, column] for column in (-1, 0, 1) if (row, column) in around]
        if line:
            lines.append(core.concat(*line, axis=3))
    return core.concat(*lines, axis=2)


NeighborExchangeV2 = _collective(
    "NeighborExchangeV2", _halo, "An image with margins that come from the ranks around it.", _check_neighbours,
    send_rank_ids=REQUIRED, send_lens=REQUIRED, recv_rank_ids=REQUIRED, recv_lens=REQUIRED, data_format=REQUIRED,
)  # fmt: skip


# One to one


class Send(Operator):
    """x, which goes to rank dest_rank as well; its gradient comes from there."""

    def __init__(self, sr_tag, dest_rank, group=_WORLD, group_back=_WORLD):
        super().__init__("Send")
        self.rank, self.sr_tag, self.group = dest_rank, sr_tag, _get_group(group)

    def compute(self, x):
        return collectives.send(tensor(x, self.name), self.rank, self.sr_tag, self.group)


class Receive(Operator):
    """What rank src_rank sends. The input, which may be left out, is computed before."""

    def __init__(self, sr_tag, src_rank, shape, dtype, group=_WORLD, group_back=_WORLD):
        super().__init__("Receive")
        self.rank, self.tag, self.shape, self.dtype, self.group = src_rank, sr_tag, tuple(shape), dtype, _get_group(group)

    def compute(self, x=None):
        after = Tensor(0.0) if x is None else x
        return collectives.receive(after, self.rank, self.shape, basic.as_np(self.dtype), self.tag, self.group)


# By lists of ranks


def _of_ranks(self):
    if self.group is None:
        raise ValueError(f"For '{self.name}', the 'group' cannot be None, but got {self.group}.")
    Validator.check_value_type("group", self.group, [tuple, list], self.name)
    if len(self.group) < 2:
        raise ValueError(f"For '{self.name}', the 'group size' must be at least 2, but got {len(self.group)}.")
    self.name_of_group = "host_" + "_".join(map(str, self.group))
    try:
        ranks.group(self.name_of_group)
    except KeyError:
        job.group_create(self.name_of_group, list(self.group))


_HostAllGather = primitive(
    "_HostAllGather", lambda self, x: collectives.all_gather(_at_least_one_dim(self, x), self.name_of_group),
    "AllGather over a list of ranks.", _of_ranks, group=None,
)  # fmt: skip
_HostReduceScatter = primitive(
    "_HostReduceScatter", lambda self, x: collectives.reduce_scatter(_parted(self, x, len(self.group)), self.op, self.name_of_group),
    "ReduceScatter over a list of ranks.", _of_ranks, op=ReduceOp.SUM, group=None,
)  # fmt: skip


class HostAllGather(_HostAllGather):
    """AllGather over a list of ranks, by its name of 0.5."""


class HostReduceScatter(_HostReduceScatter):
    """ReduceScatter over a list of ranks, by its name of 0.5."""


# Of the parallel compiler


def _mirror(self, x):
    def back(given, results, gradients):
        total = collectives.all_reduce(gradients[0], "mean" if self.mean_flag else "sum", self.group)
        return (total,)

    return x if self.group is None else core.custom(lambda x: (core.identity(x),), back, (tensor(x, self.name),))[0]


_MirrorOperator = primitive("_MirrorOperator", _mirror, "x, whose gradient is summed over a group.", group=None, dev_num=None, mean_flag=None)
_VirtualDataset = primitive("_VirtualDataset", lambda self, *inputs: inputs, "Its inputs.")
