"""Exchange of tensors between the ranks of a group, with gradients: those of the sum over all ranks of what they differentiate."""

import numpy as np

from cairn.ms import core, ranks
from cairn.ms.numerics import basic


def _called(forward, backward, *inputs):
    """forward(*inputs), a tensor. A tape keeps it out of the functions that it compiles: these compute calls again, and the ranks would
    exchange everything twice."""
    recorder = core.here.recorder
    if recorder is None or recorder.symbolic:
        return forward(*inputs)

    def back(given, results, gradients):
        return backward(*given, results[0], gradients[0])

    return core.custom(lambda *given: (forward(*given),), back, inputs)[0]


def _of(group):
    return {"group": ranks.engine_name(group), "ranks": ranks.group(group).size}


def all_reduce(x, reduction="sum", group=ranks.WORLD, **more):
    """The sum, max, min, prod or mean over all ranks. more: name, fusion and fusion_id of the row."""

    def backward(x, y, dy):
        if reduction in ("sum", "mean"):
            return (all_reduce(dy, reduction, group),)
        if reduction == "prod":
            return (core.mul(all_reduce(dy, "sum", group), _product_of_others(x, group)),)
        return (core.mul(all_reduce(dy, "sum", group), basic.cast(core.equal(x, y), basic.nptype(dy))),)

    return _called(lambda x: core.all_reduce(x, reduction=reduction, **_of(group), **more), backward, x)


def _product_of_others(x, group):
    of_ranks, own = all_gather(basic.expand(x, 0), group), ranks.group(group)
    others = [basic.part(of_ranks, 0, i, i + 1) for i in range(own.size) if i != own.rank]
    return core.reduce_prod(core.concat(*others, axis=0), axes=[0], keep_dims=False) if others else basic.like(x, 1)


def all_gather(x, group=ranks.WORLD):
    """What all ranks have, one behind the other along axis 0."""
    return _called(lambda x: core.all_gather(x, **_of(group)), lambda x, y, dy: (reduce_scatter(dy, "sum", group),), x)


def reduce_scatter(x, reduction="sum", group=ranks.WORLD):
    """This rank's part along axis 0 of the sum, max, min or prod."""

    def backward(x, y, dy):
        if reduction not in ("sum", "mean"):
            raise ValueError(f"reduce_scatter of {reduction} has no gradient; use all_reduce and take this rank's part")
        spread = all_gather(dy, group)
        return (spread if reduction == "sum" else core.mul(spread, basic.number(1 / ranks.group(group).size, dy)),)

    return _called(lambda x: core.reduce_scatter(x, reduction=reduction, **_of(group)), backward, x)


def broadcast(x, root, group=ranks.WORLD):
    """What rank `root` of the group has."""

    def backward(x, y, dy):
        return (core.reduce_to(dy, root=root, **_of(group)),)

    return _called(lambda x: core.broadcast_from(x, root=root, **_of(group)), backward, x)


def share(parameters):
    """Gives all ranks of the job the parameters of rank 0, but for what an optimizer keeps of each rank's own part."""
    for each in parameters if ranks.several() else ():
        if each.owner is None:
            core.assign(each, broadcast(each, 0))


def all_to_all(x, group=ranks.WORLD):
    """Part i along axis 0 goes to rank i; the parts that come lie in the order of the ranks."""
    return _called(lambda x: core.all_to_all(x, **_of(group)), lambda x, y, dy: (all_to_all(dy, group),), x)


def all_to_all_v(x, send_counts, receive_counts, group=ranks.WORLD):
    """The same of a vector whose parts have any lengths, which follow each other without gaps."""
    sent, received = (np.asarray(each, np.int64) for each in (send_counts, receive_counts))
    sent_at, received_at = (np.cumsum(each) - each for each in (sent, received))

    def forward(x):
        return core.all_to_all_v(x, sent, sent_at, received, received_at, **_of(group))

    return _called(forward, lambda x, y, dy: (all_to_all_v(dy, received, sent, group),), x)


def send(x, to, tag=0, group=ranks.WORLD):
    """x, which goes to a rank of the group as well; its gradient comes from there."""
    shape, dtype = tuple(x.shape), basic.nptype(x)

    def forward(x):
        core.send(x, to=to, tag=tag, group=ranks.engine_name(group))
        return (core.identity(x),)

    def backward(given, results, gradients):
        return (core.add(gradients[0], _received(to, shape, dtype, tag, group)),)

    return core.custom(forward, backward, (x,))[0]


def receive(after, source, shape, dtype, tag=0, group=ranks.WORLD):
    """What a rank of the group sends; its gradient goes there. `after`: a tensor that is computed before."""

    def backward(given, results, gradients):
        core.send(gradients[0], to=source, tag=tag, group=ranks.engine_name(group))
        return (basic.like(given[0], 0),)

    return core.custom(lambda after: (_received(source, shape, dtype, tag, group),), backward, (after,))[0]


def _received(source, shape, dtype, tag, group):
    return core.receive(shape=[int(each) for each in shape], dtype=np.dtype(dtype), tag=tag, group=ranks.engine_name(group), **{"from": source})
