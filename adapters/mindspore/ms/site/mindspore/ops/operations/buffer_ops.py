"""Primitives with a state of their own: replay buffers, queues and arrays of tensors, caches of embedding tables. They change tensors in
place or hold Python objects, so they run in NumPy and end a captured graph."""

import itertools

import numpy as np
from cairn.ms import core
from cairn.ms.refusal import Uncaptured
from cairn.ms.tensor import wrap
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, primitive

_held = {}  # what the primitives of queues and arrays share by their handles
_handles = itertools.count(1)


def _eager():
    if core.here.recorder is not None and core.here.recorder.symbolic:
        raise Uncaptured("a buffer changes when it runs")


def _array(x):
    return x.asnumpy() if isinstance(x, Tensor) else np.asarray(x)


def _number(x):
    return int(_array(x).reshape(-1)[0])


def _append(self, buffer, experience, count, head):
    _eager()
    count, head = _array(count).reshape(-1), _array(head).reshape(-1)
    rows = [np.reshape(_array(each), (-1, *shape)) for each, shape in zip(experience, self.buffer_shape)]
    for i in range(len(rows[0])):
        at = (head[0] + count[0]) % self.capacity
        for held, row in zip(buffer, rows):
            _array(held)[at] = row[i]
        if count[0] < self.capacity:
            count[0] += 1
        else:
            head[0] = (head[0] + 1) % self.capacity
    return Tensor(np.array([self.capacity], np.int64))


def _item(self, buffer, count, head, index):
    _eager()
    index, held = _number(index), _number(count)
    if not -held <= index < held:
        raise ValueError(f"For '{self.name}', the index {index} is outside of {held} items.")
    at = (_number(head) + index % held) % self.capacity
    return tuple(wrap(np.array(_array(each)[at])) for each in buffer)


def _sample(self, buffer, *places):
    _eager()
    count, head = places[-2:]
    if len(places) == 3:
        picked = _array(places[0])
    else:
        picked = np.random.choice(_number(count), self.batch_size, not self.unique)
    at = (_number(head) + picked.reshape(-1)) % self.capacity
    return tuple(wrap(_array(each)[at]) for each in buffer)


_BUFFER = {"capacity": REQUIRED, "buffer_shape": REQUIRED, "buffer_dtype": REQUIRED}
BufferAppend = primitive("BufferAppend", _append, "Puts one or several experiences behind those of the buffer, over the oldest when it is full.", **_BUFFER)
BufferGetItem = primitive("BufferGetItem", _item, "The experience at an index, counted from the oldest.", **_BUFFER)
BufferSample = primitive(
    "BufferSample", _sample, "Experiences at indices, or at random.", capacity=REQUIRED, batch_size=REQUIRED, buffer_shape=REQUIRED,
    buffer_dtype=REQUIRED, seed=0, unique=False,
)  # fmt: skip


def _new(value):
    handle = next(_handles)
    _held[handle] = value
    return Tensor(np.array(handle, np.int64))


def _of(handle):
    return _held[_number(handle)]


def _status():
    return Tensor(np.array([0], np.int64))


def _queue_put(self, handle, elements):
    _eager()
    queue = _of(handle)
    if len(queue["items"]) == queue["size"]:
        raise RuntimeError(f"For 'TensorsQueuePut', the queue is full: it holds {queue['size']} elements.")
    queue["items"].append(tuple(wrap(np.array(_array(each))) for each in elements))
    return _status()


def _queue_get(self, handle):
    _eager()
    items = _of(handle)["items"]
    if not items:
        raise RuntimeError("For 'TensorsQueueGet', the queue is empty.")
    return items.pop(0) if self.pop_after_get else items[0]


def _dropped(handle):
    _eager()
    _held.pop(_number(handle), None)
    return _status()


def _cleared(handle):
    _eager()
    _of(handle)["items"].clear()
    return _status()


def _size(handle):
    _eager()
    return Tensor(np.array(len(_of(handle)["items"]), np.int64))


_QUEUE = {"dtype": REQUIRED, "shapes": REQUIRED}
TensorsQueueCreate = primitive(
    "TensorsQueueCreate", lambda self: _new({"items": [], "size": self.size or float("inf")}), "A queue of tuples of tensors.", **_QUEUE, size=0, name="TQ"
)
TensorsQueuePut = primitive("TensorsQueuePut", _queue_put, "Puts tensors at the end.", **_QUEUE)
TensorsQueueGet = primitive("TensorsQueueGet", _queue_get, "The tensors at the front.", **_QUEUE, pop_after_get=False)
TensorsQueueClose = primitive("TensorsQueueClose", lambda self, handle: _dropped(handle), "Forgets the queue.")
TensorsQueueClear = primitive("TensorsQueueClear", lambda self, handle: _cleared(handle), "Empties the queue.")
TensorsQueueSize = primitive("TensorsQueueSize", lambda self, handle: _size(handle), "How many it holds.")


def _array_new(self):
    shape = tuple(self.element_shape)
    dtype = self.dtype.numpy if hasattr(self.dtype, "numpy") else np.dtype(self.dtype)
    items = [] if self.dynamic_size else [np.zeros(shape, dtype) for _ in range(self.size)]
    return _new({"items": items, "shape": shape, "dtype": dtype, "dynamic": self.dynamic_size})


def _array_write(self, handle, index, value):
    _eager()
    held, index = _of(handle), _number(index)
    if index >= len(held["items"]):
        if not held["dynamic"]:
            raise ValueError(f"For 'TensorArrayWrite', the index {index} is outside of {len(held['items'])} elements.")
        held["items"] += [np.zeros(held["shape"], held["dtype"]) for _ in range(index + 1 - len(held["items"]))]
    held["items"][index] = np.array(_array(value), held["dtype"]).reshape(held["shape"])
    return _status()


def _array_read(self, handle, index):
    _eager()
    items, index = _of(handle)["items"], _number(index)
    if not 0 <= index < len(items):
        raise ValueError(f"For 'TensorArrayRead', the index {index} is outside of {len(items)} elements.")
    return wrap(items[index].copy())


def _stacked(handle):
    _eager()
    return wrap(np.stack(_of(handle)["items"]))


TensorArray = primitive(
    "TensorArray", _array_new, "An array of tensors of one shape.", dtype=REQUIRED, element_shape=REQUIRED, dynamic_size=True, size=0, name="TA"
)
TensorArrayWrite = primitive("TensorArrayWrite", _array_write, "Puts a tensor at an index.")
TensorArrayRead = primitive("TensorArrayRead", _array_read, "The tensor at an index.", dtype=None, element_shape=None)
TensorArrayClose = primitive("TensorArrayClose", lambda self, handle: _dropped(handle), "Forgets the array.")
TensorArrayClear = primitive("TensorArrayClear", lambda self, handle: _cleared(handle), "Empties the array.")
TensorArraySize = primitive("TensorArraySize", lambda self, handle: _size(handle), "How many it holds.")
TensorArrayStack = primitive("TensorArrayStack", lambda self, handle: _stacked(handle), "All of them in one tensor.", dtype=None, element_shape=None, dynamic_size=True, size=0)


# Caches of embedding tables.


def _swap(self, cache, places, rows):
    _eager()
    table, at, new = _array(cache), _array(places), _array(rows)
    old = np.zeros_like(new)
    for i, place in enumerate(at):
        if place >= 0:
            old[i] = table[place]
            table[place] = new[i]
    return wrap(old)


CacheSwapTable = primitive("CacheSwapTable", _swap, "Exchanges rows of a table; returns those that were there.")
MapUniform = primitive(
    "MapUniform",
    lambda self, x, per_group, groups: core.add(
        core.mul(core.mod(x, _like(groups, x)), _like(per_group, x)), core.floor_div(x, _like(groups, x))),
    "x % groups * per_group + x // groups",
)  # fmt: skip


def _like(number, x):
    return np.asarray(_number(number), _array(x).dtype)


def _padded(self, x, total, shift):
    _eager()
    given, size = _array(x), _array(total).reshape(-1)
    at = _number(shift)
    begin, count = int(size[at]), int(size[at + 1] - size[at])
    made = np.full(int(size[-1]), -1, given.dtype)
    made[begin : begin + count] = given[:count]
    return wrap(made)


PadAndShift = primitive("PadAndShift", _padded, "x at its place in a longer row, -1 elsewhere.")


def _assigned(self, variable, value):
    _eager()
    if variable.shape != value.shape:
        variable._array = np.array(_array(value), variable._array.dtype)
    else:
        _array(variable)[...] = _array(value)
    return variable


DynamicAssign = primitive("DynamicAssign", _assigned, "The variable holds the value, whatever its shape.")
