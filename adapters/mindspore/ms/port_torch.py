"""`python port_torch.py RECORD STEPS SCRIPT [ARGUMENTS...]`, run by `cairn port --to mindspore` in an environment with PyTorch:
runs a training script without shuffling, random numbers drawn from NumPy, and records what the migrated script is to repeat.

Recorded: the weights of each network at its first call, by their names in MindSpore, and when an optimizer takes them, by their
places there, for networks that are never called as such; the loss of each backward(); what each layer gave until the first of
them; the weights in the end."""

import importlib.util
import os
import random
import runpy
import sys
import types
import unittest.mock
import weakref

import numpy as np
import torch

NAMES = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


class Enough(SystemExit):
    pass


def renamed(module):
    """[(name in MindSpore, tensor)] of a module's parameters and moving statistics."""
    found = []
    for path, part in module.named_modules():
        path = path.removeprefix("module.").removeprefix("module")
        norm = any("Norm" in each.__name__ and each.__module__.startswith("torch.") for each in type(part).__mro__)  # not one of the script's own
        for name, value in [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]:
            if norm:
                name = NAMES.get(name, name)
            elif isinstance(part, torch.nn.Embedding) and name == "weight":
                name = "embedding_table"
            elif isinstance(part, torch.nn.PReLU) and name == "weight":
                name = "w"
            if value is not None and name != "num_batches_tracked":
                found.append((f"{path}.{name}" if path else name, value))
    return found


class Recorder:
    def __init__(self, steps):
        self.steps, self.losses, self.networks, self.seen = steps, [], [], set()
        self.depth, self.layers, self.names, self.arrays, self.taken = 0, {}, {}, {}, []
        self.optimizers, self.modules = 0, weakref.WeakSet()

    def making(self, plain):
        def begin(module, *arguments, **keywords):
            plain(module, *arguments, **keywords)
            self.modules.add(module)

        return begin

    def optimizing(self, plain):
        def begin(optimizer, *arguments, **keywords):
            plain(optimizer, *arguments, **keywords)
            if isinstance(optimizer, torch.optim.LBFGS) or not type(optimizer).__module__.startswith("torch."):
                return  # none of MindSpore's
            np.random.seed(1000 + self.optimizers)  # initialisation may have drawn here, or there
            held = [value for group in optimizer.param_groups for value in group["params"]]
            own = {id(value) for module in self.modules for value in module.__dict__.get("_parameters", {}).values()}
            self.arrays[f"held:{self.optimizers}"] = np.array(len(held))
            for place, value in enumerate(held):
                if id(value) in own and id(value) not in self.seen:
                    self.arrays[f"held:{self.optimizers}:{place}"] = value.detach().cpu().numpy().copy()
            self.optimizers += 1

        return begin

    def enter(self, module, *_):
        self.depth += 1
        own = [id(each) for each in module.parameters() if isinstance(each, torch.nn.Parameter)]
        if self.depth > 1 or not own or self.seen.issuperset(own):
            return
        self.seen.update(own)
        number = len(self.networks)
        np.random.seed(number)  # initialisation may have drawn here, or there
        self.networks.append(module)
        for name, value in renamed(module):
            self.arrays[f"before:{number}:{name}"] = value.detach().cpu().numpy().copy()
        for path, part in module.named_modules():
            path = path.removeprefix("module.").removeprefix("module")
            self.names.setdefault(id(part), f"{number}:{path}")

    def leave(self, module, _, result):
        self.depth -= 1
        name = self.names.get(id(module))
        if self.losses or name is None or next(module.children(), None) is not None:
            return
        while isinstance(result, (tuple, list)):
            packed = isinstance(result, torch.nn.utils.rnn.PackedSequence)
            result = torch.nn.utils.rnn.pad_packed_sequence(result, module.batch_first)[0] if packed else result[0]
        count = self.layers[name] = self.layers.get(name, 0) + 1
        self.arrays[f"layer:{len(self.arrays)}:{name}:{count}"] = result.detach().cpu().numpy().copy()

    def backward(self, plain):
        def backward(tensor, *arguments, **keywords):
            if len(self.losses) >= self.steps:
                raise Enough(0)
            early = [(f"grad:{len(self.losses)}:{number}:{name}", value, None if value.grad is None else value.grad.clone())
                     for number, module in enumerate(self.networks) for name, value in renamed(module)
                     if len(self.losses) < 3 and value.requires_grad and value.is_leaf]  # fmt: skip
            plain(tensor, *arguments, **keywords)
            for key, value, before in early:
                if value.grad is not None:
                    self.arrays[key] = np.array(float((value.grad - (0 if before is None else before)).norm()))
            self.losses.append(float(tensor.detach().sum()))

        return backward

    def asked(self, plain):
        """Of a script without backward(), what it takes gradients of counts as its losses."""

        def asked(outputs, *arguments, **keywords):
            if not keywords.get("create_graph"):
                self.taken.append(float(sum(each.detach().sum() for each in ([outputs] if torch.is_tensor(outputs) else outputs))))
            return plain(outputs, *arguments, **keywords)

        return asked

    def save(self, path):
        for number, module in enumerate(self.networks):
            for name, value in renamed(module):
                self.arrays[f"after:{number}:{name}"] = value.detach().cpu().numpy()
        np.savez(path, losses=np.array(self.losses or self.taken[: self.steps]), **self.arrays)


class Generator(torch.Generator):
    """A generator whose numbers are those of a RandomState of NumPy, as in migrated scripts."""

    def __init__(self, device="cpu"):
        self.numbers = np.random.RandomState()

    def manual_seed(self, seed):
        self.numbers.seed(seed)
        return super().manual_seed(seed)


def stream(generator):
    return generator.numbers if isinstance(generator, Generator) else np.random


def from_numpy(name):
    def drawn(*size, dtype=None, device=None, requires_grad=False, generator=None, **others):
        draw = getattr(stream(generator), name)
        size = size or (others.get("size", ()),)
        size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
        made = torch.from_numpy(np.asarray(draw(*size), np.float32)).to(dtype or torch.float32)
        return made.requires_grad_(requires_grad)

    return drawn


def dropout(x, p=0.5, training=True, inplace=False):
    if not training or p == 0:
        return x
    kept = (np.random.rand(*x.shape).astype(np.float32) < np.float32(1 - p)).astype(np.float32)
    return x * torch.from_numpy(kept) * float(np.float32(1 / (1 - p)))


def feature_dropout(x, p=0.5, training=True, inplace=False):
    if not training or p == 0:
        return x
    shape = [*x.shape[:2], *[1] * (x.ndim - 2)]
    kept = (np.random.rand(*shape).astype(np.float32) < np.float32(1 - p)).astype(np.float32)
    return x * torch.from_numpy(kept) * float(np.float32(1 / (1 - p)))


def attention(plain):
    """Attention whose dropout draws as the others do."""

    def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **others):
        if not dropout_p:
            return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **others)
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if attn_mask is not None:
            boolean = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, -torch.inf) if boolean else scores + attn_mask
        return dropout(scores.softmax(-1), dropout_p) @ value

    return attend


def layer_by_layer(plain):
    """A recurrent network whose dropout between layers draws as the others do."""

    def forward(self, x, state=None):
        alone = not self.training or not self.dropout or self.num_layers == 1
        if alone or not isinstance(x, torch.Tensor) or x.dim() != 3 or getattr(self, "proj_size", 0):
            return plain(self, x, state)
        x = x.transpose(0, 1) if self.batch_first else x
        lstm, directions = self.mode == "LSTM", 2 if self.bidirectional else 1
        if state is None:
            zeros = x.new_zeros(self.num_layers * directions, x.shape[1], self.hidden_size)
            state = (zeros, zeros) if lstm else zeros
        run, per, last = getattr(torch._VF, self.mode.lower()), len(self._flat_weights) // self.num_layers, []
        for layer in range(self.num_layers):
            part = slice(layer * directions, (layer + 1) * directions)
            begin = tuple(each[part].contiguous() for each in state) if lstm else state[part].contiguous()
            weights = self._flat_weights[layer * per : (layer + 1) * per]
            x, *end = run(x, begin, weights, self.bias, 1, 0.0, True, self.bidirectional, False)
            last.append(end)
            x = dropout(x, self.dropout) if layer + 1 < self.num_layers else x
        last = tuple(torch.cat(each) for each in zip(*last))
        return x.transpose(0, 1) if self.batch_first else x, last if lstm else last[0]

    return forward


def randint(low, high=None, size=None, *, dtype=torch.int64, generator=None, **_):
    low, high, size = (0, low, high) if size is None else (low, high, size)
    return torch.from_numpy(np.asarray(stream(generator).randint(low, high, tuple(size)))).to(dtype)


def uniform_in_place(plain):
    """Tensor.uniform_ of the script's own; PyTorch's initialisers draw elsewhere, as those of MindSpore do."""

    def uniform_(self, a=0.0, b=1.0, *, generator=None):
        if sys._getframe(1).f_globals["__name__"].startswith("torch."):
            return plain(self, a, b, generator=generator)
        with torch.no_grad():
            return self.copy_(torch.from_numpy(stream(generator).uniform(a, b, tuple(self.shape))))

    return uniform_


def sample(self, sample_shape=()):
    bounds = self.probs.detach().numpy().astype(np.float64).cumsum(-1)
    drawn = np.random.rand(*bounds.shape[:-1], 1) * bounds[..., -1:]
    return torch.from_numpy(np.asarray((drawn > bounds).sum(-1)))


def normal(self, sample_shape=()):
    return self.loc + self.scale * torch.randn(*self._extended_shape(torch.Size(sample_shape)))


def laplace(self, sample_shape=()):
    drawn = 2 * torch.rand(*self._extended_shape(torch.Size(sample_shape))) - 1
    return self.loc - self.scale * drawn.sign() * torch.log1p(-drawn.abs())


def waiting(self, sample_shape=()):
    return -torch.log1p(-torch.rand(*self._extended_shape(torch.Size(sample_shape)))) / self.rate


def beta(self, sample_shape=()):
    one, other = self.concentration1.detach().numpy(), self.concentration0.detach().numpy()
    return torch.from_numpy(np.asarray(np.random.beta(one, other, self._extended_shape(torch.Size(sample_shape))), np.float32))


def draw_from_numpy():
    torch.Generator = Generator
    torch.randn, torch.rand = from_numpy("randn"), from_numpy("rand")
    torch.randn_like = lambda x, **_: torch.randn(*x.shape)
    torch.rand_like = lambda x, **_: torch.rand(*x.shape)
    torch.randint = randint
    torch.randperm = torch.utils.data.dataset.randperm = lambda n, generator=None, **_: torch.from_numpy(
        stream(generator).permutation(n)
    )
    torch.bernoulli = lambda x, generator=None, **_: (torch.rand(*x.shape, generator=generator) < x).float()
    torch.normal = lambda mean, std, size=None, generator=None, **_: (
        torch.from_numpy(stream(generator).normal(mean, std, size)).float()
        if size is not None
        else mean + std * torch.randn(*torch.as_tensor(mean * std).shape)
    )
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        kind.forward = layer_by_layer(kind.forward)
    torch.Tensor.uniform_ = uniform_in_place(torch.Tensor.uniform_)
    functional = torch.nn.functional
    functional.scaled_dot_product_attention = attention(functional.scaled_dot_product_attention)
    torch.nn.functional.dropout = dropout
    torch.nn.functional.dropout2d = torch.nn.functional.dropout3d = feature_dropout
    torch.distributions.Categorical.sample = sample
    torch.distributions.multivariate_normal._standard_normal = lambda shape, dtype, device: torch.randn(*shape)
    torch.distributions.Laplace.rsample = laplace
    torch.distributions.Exponential.rsample = waiting
    torch.distributions.Beta.sample = beta
    torch.distributions.Normal.rsample = normal
    torch.distributions.Normal.sample = lambda *arguments: normal(*arguments).detach()


def in_order():
    """Loaders give their batches in the order of the dataset, in this process."""
    plain = torch.utils.data.DataLoader.__init__

    def begin(self, dataset, batch_size=1, shuffle=None, sampler=None, *others, **keywords):
        plain(self, dataset, batch_size, False, None, *others, **{**keywords, "num_workers": 0})

    torch.utils.data.DataLoader.__init__ = begin


def without_summaries():
    """Logs are not compared: a script that writes them runs where tensorboard is not installed."""
    for name in ("tensorboard", "tensorboardX"):
        if importlib.util.find_spec(name) is None:
            made = types.ModuleType("torch.utils.tensorboard" if name == "tensorboard" else name)
            made.SummaryWriter = unittest.mock.MagicMock()
            sys.modules[made.__name__] = made


def main(record, steps, script, *arguments):
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    draw_from_numpy()
    in_order()
    without_summaries()
    recorder = Recorder(int(steps))
    torch.nn.modules.module.register_module_forward_pre_hook(recorder.enter)
    torch.nn.modules.module.register_module_forward_hook(recorder.leave)
    torch.nn.Module.__init__ = recorder.making(torch.nn.Module.__init__)
    torch.optim.Optimizer.__init__ = recorder.optimizing(torch.optim.Optimizer.__init__)
    torch.Tensor.backward = recorder.backward(torch.Tensor.backward)
    torch.autograd.grad = recorder.asked(torch.autograd.grad)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (0, None):
            raise
    finally:
        recorder.save(record)


if __name__ == "__main__":
    sys.path.pop(0)
    main(*sys.argv[1:])
