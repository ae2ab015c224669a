"""Layers that keep what THOR needs of them: A of their inputs and G of the gradients of their results."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, images, reductions
from mindspore import context
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.layer.basic import Dense
from mindspore.nn.layer.conv import Conv2d
from mindspore.nn.layer.embedding import Embedding, EmbeddingLookup
from mindspore.ops import operations as P

__all__ = ["DenseThor", "Conv2dThor", "EmbeddingThor", "EmbeddingLookupThor"]


def on_gpu():
    """Whether factors are scaled as THOR for GPU does, not as that for Ascend."""
    return context.get_context("device_target") == "GPU"


def _product(x, rows, transpose_a):
    """x^T x or x x^T over a number, in float32."""
    x = basic.cast(x, np.float32)
    made = core.matmul(x, x, transpose_a=True) if transpose_a else core.matmul(x, x, transpose_b=True)
    return core.mul(made, np.float32(1 / rows))


class _Factored:
    """What the twins of layers share. `thor` says whether a step brings the factors up to date."""

    thor = True
    places = 1  # of a result that one set of inputs makes: the normalizer of convolutions

    def factored_parameter(self):
        """The Parameter whose gradient the factors are for."""
        return self.weight

    def _keep(self, a, g):
        prefix = self.factored_parameter().name.rpartition(".")[0]
        for name, shape in (("matrix_a", a), ("matrix_g", g)):
            setattr(self, name, Parameter(Tensor(np.zeros(shape, np.float32)), f"{prefix}.{name}".lstrip("."), requires_grad=False))
        self.getG = P.InsertGradientOf(self.save_gradient)

    def _watches(self):
        return self.thor and self.training

    def _flat_gradient(self, dout):
        rows = basic.reshape(dout, (-1, dout.shape[-1]))
        return _product(rows, rows.shape[-1] if on_gpu() and isinstance(self, Dense) else rows.shape[0], True)

    def save_gradient(self, dout):
        """Keeps G of the gradient, which goes on as it is."""
        core.assign(self.matrix_g, self._flat_gradient(dout))
        return dout


class DenseThor(_Factored, Dense):
    """Dense whose factors are kept."""

    def _prepare_factors(self):
        self._keep((self.in_channels,) * 2, (self.out_channels,) * 2)

    def construct(self, x):
        if not self._watches():
            return super().construct(x)
        shape = x.shape
        rows = basic.reshape(x, (-1, shape[-1]))
        core.assign(self.matrix_a, _product(rows, self.in_channels if on_gpu() else rows.shape[0], True))
        y = self.getG(core.matmul(rows, self.weight, transpose_b=True))
        if self.has_bias:
            y = core.add(y, self.bias)
        if self.activation_flag:
            y = self.activation(y)
        return basic.reshape(y, (*shape[:-1], self.out_channels))


class Conv2dThor(_Factored, Conv2d):
    """Conv2d whose factors are kept, over windows of the image."""

    def _prepare_factors(self):
        self._keep((int(np.prod(self.weight.shape[1:])),) * 2, (self.out_channels,) * 2)

    def construct(self, x):
        if not self._watches():
            return super().construct(x)
        self._check(x)
        windows = images.patches(basic.cast(x, np.float32), self.kernel_size, self.stride, self.dilation, self._around(x))
        count, _, _, self.places = windows.shape
        columns = basic.reshape(windows, (count, -1, self.places))
        core.assign(self.matrix_a, self._of_columns(columns))
        pads, stride, dilation = self._window()
        y = images.conv(x, self.weight, self.pad_mode, pads, stride, dilation, self.group, self.data_format)
        return self._with_bias(self.getG(y))

    def _around(self, x):
        if self.pad_mode != "same":
            return self.pads
        made = []
        for size, kernel, stride, dilation in zip(x.shape[2:], self.kernel_size, self.stride, self.dilation):
            more = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
            made += [more // 2, more - more // 2]
        return tuple(made)

    def _of_columns(self, columns):
        """The product of columns [images, channels, places]: of their mean over images on GPU, else of all."""
        count, channels, places = columns.shape
        if on_gpu():
            return _product(reductions.mean(columns, 0), places, False)
        return _product(basic.reshape(core.transpose(columns, permutation=[1, 0, 2]), (channels, -1)), count * places, False)

    def _flat_gradient(self, dout):
        return self._of_columns(basic.reshape(dout, (*dout.shape[:2], -1)))


class _Rows(_Factored):
    """A is how often each row of the table was asked for."""

    def _prepare_factors(self):
        size = self.embedding_table.shape
        self._keep(size[:1], size[1:] * 2)

    def factored_parameter(self):
        return self.embedding_table

    def construct(self, ids):
        if not self._watches():
            return super().construct(ids)
        one, zero = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)
        hot = arrays.one_hot(arrays.wide(basic.reshape(ids, (-1,))), self.embedding_table.shape[0], one, zero)
        core.assign(self.matrix_a, core.reduce_sum(hot, axes=[0], keep_dims=False))
        return self.getG(super().construct(ids))


class EmbeddingThor(_Rows, Embedding):
    """Embedding whose factors are kept."""


class EmbeddingLookupThor(_Rows, EmbeddingLookup):
    """EmbeddingLookup whose factors are kept."""


_TWINS = {Dense: DenseThor, Conv2d: Conv2dThor, Embedding: EmbeddingThor, EmbeddingLookup: EmbeddingLookupThor}


def factored(net):
    """The layers of the net that keep factors; those that do not yet become their twins, in place."""
    found = []
    for cell in net.cells_and_names():
        cell = cell[1]
        twin = _TWINS.get(type(cell))
        if twin is not None and not (isinstance(cell, Conv2d) and (cell.group > 1 or cell.data_format != "NCHW")):
            cell.__class__ = twin
            cell._prepare_factors()
        if isinstance(cell, _Factored):
            found.append(cell)
    return found
