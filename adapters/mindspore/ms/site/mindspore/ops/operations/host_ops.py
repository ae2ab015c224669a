"""Primitives that functions of the script compute on NumPy arrays, and Fourier transforms: they end a captured graph."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic
from cairn.ms.refusal import refuse
from cairn.ms.tensor import wrap
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, host, primitive


def _called(name, function, inputs, results):
    """Tensors of what the function makes of arrays; results: of each its dtype and shape, None where any will do."""
    made = function(*(np.array(each.asnumpy()) if isinstance(each, Tensor) else each for each in inputs))
    made = made if isinstance(made, (tuple, list)) else (made,)
    if results is not None and len(made) != len(results):
        raise TypeError(f"For '{name}', the function should return {len(results)} results, but it returned {len(made)}.")
    arrays = [np.asarray(each) for each in made]
    for array, (dtype, shape) in zip(arrays, results or ()):
        if array.dtype != dtype or array.shape != tuple(shape):
            raise TypeError(f"For '{name}', a result should be of {dtype} and shape {tuple(shape)}, but it is of {array.dtype} and {array.shape}.")
    return tuple(wrap(np.ascontiguousarray(each) if each.ndim else each) for each in arrays)


def _py_func(self, *inputs):
    inputs = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
    if len(inputs) != len(self.in_types):
        raise ValueError(f"For 'PyFunc', there should be {len(self.in_types)} inputs, but got {len(inputs)}.")
    return _called("PyFunc", self.fn, inputs, [(basic.as_np(dtype), shape) for dtype, shape in zip(self.out_types, self.out_shapes)])


PyFunc = primitive(
    "PyFunc", _py_func, "What a function of arrays makes of the inputs.", fn=REQUIRED, in_types=REQUIRED, in_shapes=REQUIRED, out_types=REQUIRED,
    out_shapes=REQUIRED, stateful=True,
)  # fmt: skip
PyFunc.foreign = True


def _custom(self, *inputs):
    def forward(*given):
        return _called(self.name, self.func, given, None)

    if self.bprop is None:
        made = forward(*inputs)
    else:
        made = core.custom(forward, lambda given, results, slopes: _slopes(self.bprop, given, results, slopes), inputs)
    listed = isinstance(self.out_shape, (tuple, list)) and any(isinstance(each, (tuple, list)) for each in self.out_shape)
    return made[0] if len(made) == 1 and not listed else made


def _slopes(function, inputs, results, slopes):
    one = [each[0] if len(each) == 1 else each for each in (results, slopes)]
    made = function(*inputs, *one)
    return made if isinstance(made, tuple) else (made,)


def _check_custom(self):
    hybrid = self.func_type == "hybrid" and hasattr(self.func, "ms_kernel_flag")
    if self.func_type != "pyfunc" and not hybrid or not callable(self.func):
        refuse(f"Custom with func_type '{self.func_type}'", "has no compiler here", "func_type 'pyfunc' or a function under ops.ms_kernel")


Custom = primitive(
    "Custom", _custom, "A function of arrays (func_type 'pyfunc', or under ms_kernel) with the gradient bprop.", _check_custom, func=REQUIRED, out_shape=None,
    out_dtype=None, func_type="hybrid", bprop=None, reg_info=None,
)  # fmt: skip
Custom.foreign = True

_NORMS = ("backward", "forward", "ortho")


def _fourier(self, x):
    axes, norm = tuple(range(-self.signal_ndim, 0)), self.norm
    sizes = tuple(self.signal_sizes) or None
    if self.real and not self.inverse:
        made = np.fft.rfftn(x, axes=axes, norm=norm) if self.onesided else np.fft.fftn(x, axes=axes, norm=norm)
    elif self.real:
        made = np.fft.irfftn(x, sizes, axes, norm) if self.onesided else np.fft.ifftn(x, axes=axes, norm=norm).real
    else:
        made = (np.fft.ifftn if self.inverse else np.fft.fftn)(x, axes=axes, norm=norm)
    single = x.dtype in (np.float32, np.complex64)
    return made.astype(("complex64" if made.dtype.kind == "c" else "float32") if single else made.dtype)


def _check_fourier(self):
    if isinstance(self.signal_ndim, bool) or not isinstance(self.signal_ndim, int):
        raise TypeError(f"For 'FFTWithSize', 'signal_ndim' must be int, but got {type(self.signal_ndim).__name__}.")
    if self.signal_ndim not in (1, 2, 3):
        raise ValueError(f"For 'FFTWithSize', 'signal_ndim' must be in [1, 3], but got {self.signal_ndim}.")
    if self.norm not in _NORMS:
        raise ValueError(f"For 'FFTWithSize', 'norm' must be one of {', '.join(_NORMS)}, but got {self.norm}.")


FFTWithSize = host(
    "FFTWithSize", _fourier, "The discrete Fourier transform over the last axes.", _check_fourier, signal_ndim=REQUIRED, inverse=REQUIRED,
    real=REQUIRED, norm="backward", onesided=True, signal_sizes=(),
)  # fmt: skip
