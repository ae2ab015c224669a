"""Gradients as PyTorch takes them, for migrated scripts whose loss is made by several functions: eager calls are recorded from
where `start()` is called, and backward() goes from a tensor through all that made it. MindSpore 1.10 has nothing of the kind.

Tensors hold what made them, so that what nothing refers to any more is not kept. Calls are recorded only where a Parameter
with requires_grad, or a tensor given to watched(), is among what their inputs were made of."""

import atexit
import contextlib

import numpy
from mindspore import ops
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor

from cairn.ms import core, tape
from cairn.ms.tensor import wrap

Tensor.grad = None  # until a backward() gives one


class _Uncounted:
    """In place of a list whose parts nothing reads: only their number is known."""

    def __init__(self):
        self.count = 0

    def append(self, _):
        self.count += 1

    def __len__(self):
        return self.count


class Graph(tape.Tape):
    def __init__(self):
        super().__init__()
        self.records, self.values, self.lines = _Uncounted(), _Uncounted(), _Uncounted()

    def scope(self):
        raise NotImplementedError("gradients of functions cannot be taken while all calls are recorded: wrap them in recorded.no_grad()")

    def follows(self, tensor):
        """Whether gradients go to the tensor, or through it."""
        mark = tensor._mark
        if isinstance(tensor, Parameter) and tensor.requires_grad:
            if mark is None or mark.tape is not self or mark.array is not tensor._array:
                tensor._mark = tape.Value(self, tensor._array, owner=tensor)
            return True
        return mark is not None and mark.tape is self and (mark.record is not None or mark.origin is not None or mark.owner is not None)

    def call(self, row, inputs, attributes):
        if row is not tape._stop and any([self.follows(each) for each in inputs if isinstance(each, Tensor)]):
            return super().call(row, inputs, attributes)
        return row.run(*inputs, **attributes)

    def came(self, integers, given):
        if self.follows(given):
            super().came(integers, given)

    def custom(self, forward, backward, inputs, always=False):
        if any([self.follows(each) for each in inputs if isinstance(each, Tensor)]):
            return super().custom(forward, backward, inputs, always)
        return tuple(forward(*inputs))

    def assign(self, parameter, value):
        super().assign(parameter, value)
        mark = parameter._mark
        if mark is not None and mark.tape is self and mark.owner is None:
            mark.owner = parameter


def _calls(results):
    """The calls that made these values, in their order, and the values that no call made."""
    calls, leaves, seen, left = {}, {}, set(), list(results)
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        record = value.record
        if record is None:
            leaves[id(value)] = value
            continue
        if record.inputs is None:
            raise RuntimeError("backward() went through this graph before, and its calls are not kept: the first one takes retain_graph=True")
        if id(record) not in calls:
            calls[id(record)] = record
            left.extend([each for each in record.inputs if isinstance(each, tape.Value)])
    return sorted(calls.values(), key=lambda each: each.outputs[0].number), list(leaves.values())


def _taken(results, seeds, wanted, calls, recorded):
    """({value: its gradient} of those that gradients reach, the calls between); recorded: gradients can be differentiated again."""
    graph, pending = results[0].tape, {}
    active = {*wanted}
    path = tape._path(calls, active, results)
    active.update([value for call in path for value in call.outputs])
    with _recorder(graph if recorded else None):
        for value, seed in zip(results, seeds):
            tape._accumulate(pending, value, wrap(numpy.ones_like(value.array)) if seed is None else seed)
        for part in reversed(tape._parts(path)):
            if isinstance(part, tape.Cut):
                tape._through_cut(part, pending, active)
            else:
                tape._through_calls(part, pending, active, graph if recorded else None)
    return pending, path


def _free(calls):
    for call in calls:
        call.inputs, call.outputs = None, ()


@contextlib.contextmanager
def _recorder(graph):
    before, core.here.recorder = core.here.recorder, graph
    try:
        yield
    finally:
        core.here.recorder = before


def start():
    """Eager calls of this thread are recorded from here on."""
    if core.here.recorder is None:
        core.here.recorder = _started[0] = _started[0] or Graph()


_started = [None]
atexit.register(lambda: (setattr(core.here, "recorder", None), _started.clear()))


class no_grad(contextlib.ContextDecorator):
    """Nothing is recorded within; mode: whether this is so."""

    def __init__(self, mode=True):
        self._graph, self._before = None if mode else _started[0], []

    def __enter__(self):
        self._before.append(core.here.recorder)
        core.here.recorder = self._graph

    def __exit__(self, *_):
        core.here.recorder = self._before.pop()


def enable_grad():
    return no_grad(False)


class set_grad_enabled(contextlib.ContextDecorator):
    """From here on calls are recorded, or not; as a context, until its end."""

    def __init__(self, mode):
        self._before = core.here.recorder
        core.here.recorder = _started[0] if mode else None

    def __enter__(self):
        pass

    def __exit__(self, *_):
        core.here.recorder = self._before


def _mark(tensor, what):
    graph = _started[0]
    mark = tensor._mark
    if graph is None or mark is None or not graph.follows(tensor):
        raise RuntimeError(f"{what} was not made from a Parameter or a watched tensor since recording began")
    return tensor._mark


def watched(tensor, requires_grad=True):
    """tensor.requires_grad_(): gradients go to the tensor from here on."""
    if isinstance(tensor, Parameter):
        tensor.requires_grad = requires_grad
    elif requires_grad and not _started[0].follows(tensor):
        tensor._mark = tape.Value(_started[0], tensor.asnumpy(), owner=tensor)
    return tensor


def backward(tensor, gradient=None, retain_graph=None, create_graph=False):
    """tensor.backward(): adds its gradients to those that lie beside the Parameters and watched tensors it was made of."""
    result = _mark(tensor, "the loss")
    if gradient is None and tensor.size != 1:
        raise RuntimeError(f"backward() without a gradient takes a tensor of one element, this one has the shape {tensor.shape}")
    calls, leaves = _calls([result])
    leaves = [each for each in leaves if each.owner is not None]
    made, path = _taken([result], [gradient], leaves, calls, create_graph)
    for leaf in leaves:
        if leaf in made:
            before = leaf.owner.grad
            leaf.owner.grad = made[leaf] if before is None else before + made[leaf]
    if not (create_graph if retain_graph is None else retain_graph):
        _free(path)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """torch.autograd.grad: the gradients of outputs by inputs, a tuple."""
    outputs, inputs = ([each] if isinstance(each, Tensor) else list(each) for each in (outputs, inputs))
    seeds = [grad_outputs] if grad_outputs is None or isinstance(grad_outputs, Tensor) else list(grad_outputs)
    results = [_mark(each, "what is differentiated") for each in outputs]
    wanted = [_mark(each, "what gradients are asked by") for each in inputs]
    calls, _ = _calls(results)
    pending, path = _taken(results, seeds * len(results) if len(seeds) == 1 else seeds, wanted, calls, create_graph)
    made = []
    for value, tensor in zip(wanted, inputs):
        if value not in pending and not (allow_unused or materialize_grads):
            raise RuntimeError("a tensor by which gradients are asked was not used: allow_unused=True gives None for it")
        made.append(pending.get(value, ops.zeros_like(tensor) if materialize_grads else None))
    if not (create_graph if retain_graph is None else retain_graph):
        _free(path)
    return tuple(made)


def step(optimizer, closure=None):
    """optimizer.step(): the optimizer is called with the gradients that lie beside its Parameters; those without one are left."""
    loss = None if closure is None else closure()
    with no_grad():
        kept = {parameter: parameter.asnumpy().copy() for parameter in optimizer.parameters if parameter.grad is None}
        optimizer(tuple(ops.zeros_like(each) if each.grad is None else each.grad for each in optimizer.parameters))
        for parameter, array in kept.items():
            parameter.set_data(Tensor(array))
    return loss
