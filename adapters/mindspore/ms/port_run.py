"""`python -m cairn.ms.port_run EXPECTED RECORD STEPS SCRIPT [ARGUMENTS...]`: runs a migrated script with the weights, the order and
the random numbers of the original's run (port_torch), and records the same of it."""

import os
import random
import runpy
import sys

import numpy as np

import cairn.ms  # noqa: F401
import mindspore
import mindspore.dataset
from cairn.ms import gradient, recorded
from cairn.ms.numerics import random as numbers
from mindspore import nn, ops
from mindspore.common import initializer


def gradient_list(gradients):
    return gradients if isinstance(gradients, (tuple, list)) else [gradients]


class Enough(SystemExit):
    pass


class Recorder:
    def __init__(self, expected, steps):
        self.expected, self.steps, self.losses, self.networks, self.seen = expected, steps, [], [], set()
        self.parameters, self.taken = {}, []  # by id
        self.again = False  # inside a function that runs a second time, for a gradient within the loss
        self.depth, self.layers, self.names, self.arrays, self.missing = 0, {}, {}, {}, []
        self.optimizers, self.given = 0, set()  # by id

    def optimizing(self, plain):
        """Weights of networks that are never called as such come from the optimizer that has the same number."""

        def begin(optimizer, *arguments, **keywords):
            plain(optimizer, *arguments, **keywords)
            number, held = self.optimizers, list(optimizer.parameters)
            np.random.seed(1000 + number)
            self.optimizers += 1
            for place, parameter in enumerate(held if self.expected.get(f"held:{number}") == len(held) else []):
                value = self.expected.get(f"held:{number}:{place}")
                if value is None or value.size != parameter.size or {id(parameter)} & (self.seen | self.given):
                    continue
                self.given.add(id(parameter))
                parameter.set_data(mindspore.Tensor(value.reshape(parameter.shape).astype(parameter.asnumpy().dtype)))

        return begin

    def enter(self, cell):
        own = [] if isinstance(cell, nn.Optimizer) else [id(each) for each in cell.get_parameters() if isinstance(each, mindspore.Parameter)]
        if not own or self.seen.issuperset(own):
            return
        self.seen.update(own)
        number = len(self.networks)
        np.random.seed(number)
        self.networks.append(cell)
        for name, parameter in cell.parameters_and_names():
            given = self.expected.get(f"before:{number}:{name}")
            if given is None and not parameter.requires_grad and name.endswith(("gamma", "beta")):
                continue  # of a normalisation that is not affine: ones and zeros
            if given is None or given.size != parameter.size:
                self.missing.append(f"{number}:{name}")
            else:
                parameter.set_data(mindspore.Tensor(given.reshape(parameter.shape).astype(parameter.asnumpy().dtype)))
        for name, parameter in cell.parameters_and_names():
            self.parameters.setdefault(id(parameter), f"{number}:{name}")
        for path, part in cell.cells_and_names():
            self.names.setdefault(id(part), f"{number}:{path}")

    def call(self, plain):
        def call(cell, *arguments, **keywords):
            if not self.depth:
                self.enter(cell)
            self.depth += 1
            try:
                made = plain(cell, *arguments, **keywords)
            finally:
                self.depth -= 1
            name = self.names.get(id(cell))
            if not self.losses and not self.again and name is not None and not cell.cells():
                first = gradient.tensors_of(made)
                count = self.layers[name] = self.layers.get(name, 0) + 1
                if first:
                    self.arrays[f"layer:{len(self.arrays)}:{name}:{count}"] = np.array(first[0].asnumpy())
            return made

        return call

    def grad(self, plain):
        def grad(*arguments, **keywords):
            function = plain(*arguments, **keywords)

            def unrecorded(*inputs, **named):
                before, self.again = self.again, True
                try:
                    return function(*inputs, **named)
                finally:
                    self.again = before

            return unrecorded

        return grad

    def value_and_grad(self, plain):
        def value_and_grad(*arguments, **keywords):
            function = plain(*arguments, **keywords)
            weights = keywords.get("weights", arguments[2] if len(arguments) > 2 else None)

            def recorded(*inputs, **named):
                if len(self.losses) >= self.steps:
                    raise Enough(0)
                value, gradients = function(*inputs, **named)
                if len(self.losses) < 3 and weights is not None:
                    for parameter, made in zip(weights, gradient_list(gradients)):
                        if id(parameter) in self.parameters:
                            key = f"grad:{len(self.losses)}:{self.parameters[id(parameter)]}"
                            self.arrays[key] = np.array(float(np.linalg.norm(made.asnumpy().astype(np.float64))))
                self.losses.append(float(np.sum(gradient.tensors_of(value)[0].asnumpy())))
                return value, gradients

            return recorded

        return value_and_grad

    def backward(self, plain):
        def recorded_backward(tensor, *arguments, **keywords):
            if len(self.losses) >= self.steps:
                raise Enough(0)
            own = {id(each): each for cell in self.networks for each in cell.get_parameters() if len(self.losses) < 3}
            before = {key: each.grad for key, each in own.items()}
            plain(tensor, *arguments, **keywords)
            for key, each in own.items():
                if each.grad is not None and key in self.parameters:
                    made = each.grad.asnumpy() - (0 if before[key] is None else before[key].asnumpy())
                    self.arrays[f"grad:{len(self.losses)}:{self.parameters[key]}"] = np.array(float(np.linalg.norm(made.astype(np.float64))))
            self.losses.append(float(np.sum(tensor.asnumpy())))

        return recorded_backward

    def asked(self, plain):
        """Of a script without backward(), what it takes gradients of counts as its losses."""

        def asked(outputs, *arguments, **keywords):
            if not self.again and not keywords.get("create_graph"):
                self.taken.append(float(sum(np.sum(each.asnumpy()) for each in gradient.tensors_of(outputs))))
            return plain(outputs, *arguments, **keywords)

        return asked

    def save(self, path):
        for number, cell in enumerate(self.networks):
            for name, parameter in cell.parameters_and_names():
                self.arrays[f"after:{number}:{name}"] = parameter.asnumpy()
        np.savez(path, losses=np.array(self.losses or self.taken[: self.steps]), missing=np.array(self.missing, str), **self.arrays)


def draw_from_numpy():
    numbers.uniform = lambda shape, dtype=np.float32: mindspore.Tensor(np.asarray(np.random.rand(*shape), dtype))
    numbers.normal = lambda shape, dtype=np.float32: mindspore.Tensor(np.asarray(np.random.randn(*shape), dtype))
    own = np.random.RandomState(1)
    initializer._stream = lambda: own
    mindspore.set_seed = lambda seed: None


def in_order():
    for kind in (mindspore.dataset.GeneratorDataset, mindspore.dataset.NumpySlicesDataset):
        begin = kind.__init__

        def unshuffled(self, *arguments, _begin=begin, **keywords):
            _begin(self, *arguments, **{**keywords, "shuffle": False})

        kind.__init__ = unshuffled


def main(expected, record, steps, script, *arguments):
    random.seed(0)
    np.random.seed(0)
    draw_from_numpy()
    in_order()
    with np.load(expected) as arrays:
        recorder = Recorder(dict(arrays), int(steps))
    nn.Optimizer.__init__ = recorder.optimizing(nn.Optimizer.__init__)
    nn.Cell.__call__ = recorder.call(nn.Cell.__call__)
    ops.grad = recorder.grad(ops.grad)
    ops.value_and_grad = recorder.value_and_grad(ops.value_and_grad)
    recorded.backward = recorder.backward(recorded.backward)
    recorded.grad = recorder.asked(recorded.grad)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (0, None):
            raise
    finally:
        recorder.save(record)


if __name__ == "__main__":
    main(*sys.argv[1:])
