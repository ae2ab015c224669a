"""Primitives of arithmetic, comparison and reduction."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore._checkparam import Validator
from mindspore.common import dtype as mstype
from mindspore.ops.operations._form import REQUIRED, Operator, binary, pair, primitive, same_type, static, tensor, unary

_FLOATS = {
    "Exp": core.exp, "Expm1": core.expm1, "Log": core.log, "Log1p": core.log1p, "Sqrt": core.sqrt,
    "Rsqrt": core.rsqrt, "Sin": core.sin, "Cos": core.cos,
    "Tan": core.tan, "Asin": core.asin, "ACos": core.acos, "Atan": core.atan, "Sinh": core.sinh, "Cosh": core.cosh,
    "Asinh": core.asinh, "Acosh": core.acosh, "Atanh": core.atanh, "Erf": core.erf, "Erfc": core.erfc,
    "Erfinv": core.erf_inverse, "Lgamma": core.log_gamma, "Digamma": core.digamma, "BesselI0e": core.bessel_i0e,
    "BesselI1e": core.bessel_i1e, "Rint": core.round, "Floor": core.floor, "Ceil": core.ceil,
    "MatrixDeterminant": core.determinant, "LogMatrixDeterminant": core.log_determinant,
}  # fmt: skip
_NUMBERS = {"Abs": core.abs, "Neg": core.neg, "Sign": core.sign, "Square": core.square}


def _bessel(name, of_exponential):
    def compute(x):
        return core.mul(of_exponential(x), core.exp(core.abs(x)))

    return unary(name, compute)


def _reciprocal(x):
    """1 / x; of whole numbers what C's division gives, with 0 for 1 / 0."""
    if basic.is_float(x):
        return core.reciprocal(x)
    zero = core.equal(x, basic.number(0, x))
    return core.select(zero, basic.number(_of_zero(basic.nptype(x)), x), core.truncate_div(basic.like(x, 1), core.select(zero, basic.number(1, x), x)))


def _of_zero(dtype):
    """What NumPy's reciprocal gives for a whole 0."""
    with np.errstate(all="ignore"):
        return np.reciprocal(np.zeros(1, dtype))[0]


Reciprocal, Inv = unary("Reciprocal", _reciprocal, "number"), unary("Inv", _reciprocal, "number")
for _name, _row in _FLOATS.items():
    globals()[_name] = unary(_name, _row)
for _name, _row in _NUMBERS.items():
    globals()[_name] = unary(_name, _row, "number")


def _test(row, of_others):
    """A test of floats; what other numbers answer is known."""
    return lambda x: row(x) if basic.is_float(x) else core.identity(np.full(x.shape, of_others))


IsNan, IsInf, IsFinite = (
    unary(name, _test(row, of_others), "any")
    for name, row, of_others in (("IsNan", core.is_nan, False), ("IsInf", core.is_inf, False), ("IsFinite", core.is_finite, True))
)
BesselI0, BesselI1 = _bessel("BesselI0", core.bessel_i0e), _bessel("BesselI1", core.bessel_i1e)
Round = unary(
    "Round", lambda x: core.round(x) if basic.is_float(x) else x, "number", "Nearest whole number, halves to even."
)
Trunc = unary("Trunc", lambda x: core.mul(core.sign(x), core.floor(core.abs(x))), "float", "Whole number towards 0.")
LogicalNot = unary("LogicalNot", core.not_, "bool")
Invert = unary("Invert", core.bit_not, "int")
PopulationCount = unary("PopulationCount", lambda x: basic.cast(core.population_count(x), np.uint8), "int")



def _ordered(row):
    """Bools are compared as 0 and 1."""
    return lambda x, y: row(*(basic.cast(each, np.int32) if basic.nptype(each).kind == "b" else each for each in (x, y)))


_BINARY = {
    "Add": (core.add, "any"), "Sub": (core.sub, "number"), "Mul": (core.mul, "any"), "Div": (basic.divide, "number"),
    "RealDiv": (basic.divide, "number"), "FloorDiv": (core.floor_div, "number"), "FloorMod": (core.mod, "number"),
    "Mod": (core.truncate_mod, "number"), "TruncateMod": (core.truncate_mod, "number"), "Pow": (basic.pow, "any"),
    "Maximum": (core.maximum, "number"), "Minimum": (core.minimum, "number"),
    "SquaredDifference": (core.squared_difference, "number"), "Atan2": (core.atan2, "float"),
    "Xlogy": (basic.xlogy, "float"), "Xdivy": (basic.xdivy, "float"), "DivNoNan": (basic.div_no_nan, "number"),
    "MulNoNan": (basic.mul_no_nan, "number"), "Hypot": (basic.hypot, "float"), "Igamma": (core.incomplete_gamma, "float"),
    "Igammac": (core.incomplete_gamma_upper, "float"), "Zeta": (core.zeta, "float"),
    "Equal": (core.equal, "any"), "NotEqual": (core.not_equal, "any"), "Less": (_ordered(core.less), "any"),
    "LessEqual": (_ordered(core.less_equal), "any"), "Greater": (_ordered(core.greater), "any"),
    "GreaterEqual": (_ordered(core.greater_equal), "any"), "BitwiseAnd": (core.bit_and, "int"),
    "BitwiseOr": (core.bit_or, "int"), "BitwiseXor": (core.bit_xor, "int"), "LeftShift": (core.shift_left, "int"),
    "RightShift": (core.shift_right, "int"),
}  # fmt: skip


def _of_bools(function, name):
    """Add and Mul of bools are or and and, a power of bools is false at 0 ** 1 alone."""
    logical = {"Add": core.or_, "Mul": core.and_, "Pow": lambda x, y: core.or_(x, core.not_(y))}.get(name)
    if logical is None:
        return function
    return lambda x, y: (logical if basic.nptype(x).kind == "b" else function)(x, y)


for _name, (_row, _kinds) in _BINARY.items():
    globals()[_name] = binary(_name, _of_bools(_row, _name), _kinds)
TensorAdd = Add  # noqa: F821


def _towards_zero(x, y):
    if not basic.is_float(x):
        return core.truncate_div(x, y)
    quotient = core.div(x, y)
    return core.mul(core.sign(quotient), core.floor(core.abs(quotient)))


TruncateDiv = binary("TruncateDiv", _towards_zero)


def _logical(name, row):
    def compute(self, x, y):
        for each in (x, y):
            if not isinstance(each, bool):
                tensor(each, name, "bool")
        return row(x, y)

    return primitive(name, compute, f"{name} of two tensors of bool.")


LogicalAnd, LogicalOr = _logical("LogicalAnd", core.and_), _logical("LogicalOr", core.or_)
LogicalXor = _logical("LogicalXor", core.xor)


def _approximate(self, x, y):
    x, y = pair(x, y, self.name)
    return core.less(core.abs(core.sub(x, y)), basic.number(self.tolerance, x))


ApproximateEqual = primitive(
    "ApproximateEqual", _approximate, "True where |x - y| < tolerance.",
    lambda self: Validator.check_value_type("tolerance", self.tolerance, [float], "ApproximateEqual"), tolerance=1e-5,
)  # fmt: skip


def _alike(x, y, name):
    if basic.nptype(tensor(x, name)) != basic.nptype(tensor(y, name)):
        raise TypeError(f"For '{name}', the dtypes must be equal, but got {x.dtype} and {y.dtype}.")
    return x, y


IsClose = primitive(
    "IsClose", lambda self, x, y: basic.is_close(*_alike(x, y, "IsClose"), self.rtol, self.atol, self.equal_nan),
    "True where |x - y| <= atol + rtol * |y|.",
    lambda self: [Validator.check_non_negative_float(getattr(self, each), each, "IsClose") for each in ("rtol", "atol")],
    rtol=1e-5, atol=1e-8, equal_nan=True,
)  # fmt: skip


def _lerp(self, start, end, weight):
    start, end = pair(start, end, "Lerp")
    return core.add(start, core.mul(core.sub(end, start), same_type(weight, start)))


Lerp = primitive("Lerp", _lerp, "start + weight * (end - start)")


def _keep_dims(self):
    Validator.check_bool(self.keep_dims, "keep_dims", self.name)


def _reduction(name, function, kinds):
    def compute(self, x, axis=()):
        tensor(x, name, kinds)
        axis = static(axis, name, "axis") if axis is not None else ()
        return function(x, axis, self.keep_dims)

    return primitive(name, compute, f"{name} along the axes, () for all.", _keep_dims, keep_dims=False)


ReduceSum = _reduction("ReduceSum", reductions.total, "any")
ReduceMean = _reduction("ReduceMean", reductions.mean, "number")
ReduceMax, ReduceMin = (
    _reduction("ReduceMax", reductions.maximum, "number"),
    _reduction("ReduceMin", reductions.minimum, "number"),
)
ReduceProd = _reduction("ReduceProd", reductions.product, "number")
ReduceAll, ReduceAny = (
    _reduction("ReduceAll", reductions.all_of, "bool"),
    _reduction("ReduceAny", reductions.any_of, "bool"),
)
EuclideanNorm = _reduction("EuclideanNorm", lambda x, axis, keep: reductions.norm(x, axis, 2, keep), "float")


def _reduce_std(self, x):
    axes = basic.axes_of(self.axis, len(tensor(x, self.name, "float").shape))
    ddof = 1 if self.unbiased else 0
    return reductions.std(x, axes, ddof, self.keep_dims), reductions.mean(x, axes, self.keep_dims)


ReduceStd = primitive(
    "ReduceStd", _reduce_std, "Standard deviation and mean along the axes.", axis=(), unbiased=True, keep_dims=False
)
LpNorm = primitive(
    "LpNorm", lambda self, x: reductions.norm(tensor(x, self.name, "float"), self.axis, self.p, self.keep_dims, self.epsilon),
    "(sum |x|^p)^(1/p) along the axes.", lambda self: Validator.check_value_type("axis", self.axis, [int, tuple, list], "LpNorm"), axis=REQUIRED, p=2, keep_dims=False, epsilon=1e-12,
)  # fmt: skip
LogSumExp = primitive(
    "LogSumExp",
    lambda self, x, axis=(): reductions.log_sum_exp(x, axis, self.keep_dims),
    "log(sum(exp(x)))",
    keep_dims=False,
)


def _check_arg(self):
    Validator.check_is_int(self.axis, "axis", self.name)
    if "output_type" in self.attrs:
        if self.output_type not in (mstype.int32, mstype.int64):
            raise TypeError(f"For '{self.name}', the 'output_type' must be int32 or int64, but got {self.output_type}.")


def _arg(name, row):
    def compute(self, x):
        return reductions.arg(row, tensor(x, name, "number"), self.axis, basic.as_np(self.output_type))

    return primitive(name, compute, "Index along the axis.", _check_arg, axis=-1, output_type=mstype.int32)


def _arg_with_value(name, row):
    def compute(self, x):
        return reductions.arg_with_value(row, tensor(x, name, "number"), self.axis, self.keep_dims)

    return primitive(name, compute, "(index, value) along the axis.", _check_arg, axis=0, keep_dims=False)


Argmax, Argmin = _arg("Argmax", "arg_max"), _arg("Argmin", "arg_min")
ArgMaxWithValue, ArgMinWithValue = (
    _arg_with_value("ArgMaxWithValue", "arg_max"),
    _arg_with_value("ArgMinWithValue", "arg_min"),
)


def _running(name, function):
    def compute(self, x, axis):
        tensor(x, name, "number")
        Validator.check_is_int(static(axis, name, "axis"), "axis", name)
        return function(x, static(axis, name, "axis"), self.exclusive, self.reverse)

    return primitive(name, compute, "Running result along the axis.", exclusive=False, reverse=False)


CumSum, CumProd = _running("CumSum", reductions.cumsum), _running("CumProd", reductions.cumprod)


def _cum_extreme(name, row, combine):
    def compute(self, x):
        values = reductions.cumulative(combine, tensor(x, name, "number"), self.axis)
        hits = core.equal(x, values)
        if basic.is_float(x):  # the first NaN is the extreme from there on
            nan = core.is_nan(x)
            before = reductions.cumsum(basic.cast(nan, np.int32), self.axis, exclusive=True)
            hits = core.select(core.greater(before, np.int32(0)), core.less(before, np.int32(0)), core.or_(hits, nan))
        size = x.shape[self.axis % len(x.shape)]
        places = np.arange(size, dtype=np.int32).reshape([-1] + [1] * (len(x.shape) - 1 - self.axis % len(x.shape)))
        found = core.select(hits, places, np.int32(-1))
        return values, reductions.cumulative(core.maximum, found, self.axis)

    return primitive(name, compute, "Running extreme along the axis and its last place.", axis=REQUIRED)


Cummax, Cummin = _cum_extreme("Cummax", "arg_max", core.maximum), _cum_extreme("Cummin", "arg_min", core.minimum)


def _median(self, x):
    x, axis, keep = (basic.reshape(x, (-1,)), 0, False) if self.global_median else (x, self.axis, self.keep_dims)
    value, index = reductions.median(x, axis, keep)
    return value, basic.cast(index, np.int64)


AddV2 = binary("AddV2", core.add)
Median = primitive("Median", _median, "Lower median and its index.", global_median=False, axis=0, keep_dims=False)


def _matmul(name, ranks):
    def compute(self, x, y):
        of_x, of_y = len(tensor(x, name, "number").shape), len(tensor(y, name, "number", "y").shape)
        if not ranks(of_x, of_y):
            raise ValueError(f"For '{name}', the dimensions of 'x' and 'y' do not fit, but got shapes {x.shape} and {y.shape}.")
        if basic.nptype(x) != basic.nptype(y):
            raise TypeError(f"For '{name}', the dtypes of the inputs must be equal, but got {x.dtype} and {y.dtype}.")
        return core.matmul(x, y, transpose_a=self.transpose_a, transpose_b=self.transpose_b)

    def check(self):
        Validator.check_bool(self.transpose_a, "transpose_a", name)
        Validator.check_bool(self.transpose_b, "transpose_b", name)

    return primitive(name, compute, "Product of matrices.", check, transpose_a=False, transpose_b=False)


MatMul = _matmul("MatMul", lambda x, y: x == y == 2)
BatchMatMul = _matmul("BatchMatMul", lambda x, y: x > 2 <= y or y > 2 <= x)


def _sum_of(name):
    def compute(self, *tensors):
        if len(tensors) == 1:
            if not isinstance(tensors[0], (tuple, list)):
                raise TypeError(f"For '{name}', the inputs must be a tuple or list, but got {type(tensors[0]).__name__}.")
            tensors = tensors[0]
        if not tensors:
            raise ValueError(f"For '{name}', at least one input is needed.")
        out = tensor(tensors[0], name, "any")
        for each in tensors[1:]:
            if basic.nptype(tensor(each, name)) != basic.nptype(out):
                raise TypeError(f"For '{name}', all dtypes must be equal, but got {out.dtype} and {each.dtype}.")
            if tuple(each.shape) != tuple(out.shape):
                raise ValueError(f"For '{name}', all shapes must be equal, but got {out.shape} and {each.shape}.")
            out = core.add(out, each)
        return out

    return primitive(name, compute, "Sum of a tuple of tensors.")


AddN, AccumulateNV2 = _sum_of("AddN"), _sum_of("AccumulateNV2")


class LinSpace(Operator):
    """num numbers from start to stop."""

    def __init__(self):
        super().__init__("LinSpace")

    def compute(self, start, stop, num):
        Validator.check_positive_int(num, "num", "LinSpace")
        return arrays.linspace(tensor(start, "LinSpace", "float"), tensor(stop, "LinSpace", "float"), num)


def _product_with(name, front):
    def compute(self, x, a, b, alpha, beta):
        scaled = core.mul(front(a, b), same_type(alpha, x))
        return core.add(core.mul(x, same_type(beta, x)), scaled)

    return primitive(name, compute, "beta * x + alpha * product")


Baddbmm = _product_with("Baddbmm", core.matmul)
Addcdiv = primitive(
    "Addcdiv",
    lambda self, x, a, b, value: core.add(x, core.mul(core.div(a, b), same_type(value, x))),
    "x + value * a / b",
)
Addcmul = primitive(
    "Addcmul",
    lambda self, x, a, b, value: core.add(x, core.mul(core.mul(a, b), same_type(value, x))),
    "x + value * a * b",
)
Ger = primitive(
    "Ger",
    lambda self, x, y: core.mul(basic.expand(tensor(x, "Ger"), 1), basic.expand(tensor(y, "Ger"), 0)),
    "Outer product.",
)


def _cross(self, x, y):
    axis = self.dim if self.dim != -65530 else next(a for a, size in enumerate(x.shape) if size == 3)
    (x1, x2, x3), (y1, y2, y3) = arrays.unstack(x, axis), arrays.unstack(y, axis)
    parts = [core.sub(core.mul(a, b), core.mul(c, d))
             for a, b, c, d in ((x2, y3, x3, y2), (x3, y1, x1, y3), (x1, y2, x2, y1))]  # fmt: skip
    return basic.stack(parts, axis)


Cross = primitive("Cross", _cross, "Vector product along an axis of size 3.", dim=-65530)
Cholesky = primitive(
    "Cholesky", lambda self, x: basic.swapped(core.cholesky(x), -1, -2) if self.upper else core.cholesky(x),
    "Triangular root of positive definite matrices.", upper=False,
)  # fmt: skip
def _by_last(forward, slope):
    """forward(*inputs), which has a gradient by its last input alone, dy * slope(*inputs)."""

    def compute(self, *inputs):
        def backward(given, results, gradients):
            last = core.mul(gradients[0], slope(*given))
            extra = len(last.shape) - len(given[-1].shape)
            axes = [i for i, n in enumerate(last.shape) if i < extra or given[-1].shape[i - extra] != n]
            return (*(basic.like(each, 0) for each in given[:-1]), basic.reshape(reductions.total(last, axes) if axes else last, given[-1].shape))

        return core.custom(lambda *given: (forward(*given),), backward, inputs)[0]

    return compute


def _polygamma(order, x):
    return core.polygamma(basic.cast(order, basic.nptype(x)), x)


def _beta_density(a, b, x):
    one = basic.number(1, x)
    scale = core.sub(core.sub(core.log_gamma(core.add(a, b)), core.log_gamma(a)), core.log_gamma(b))
    powers = core.add(core.mul(core.sub(a, one), core.log(x)), core.mul(core.sub(b, one), core.log1p(core.neg(x))))
    return core.exp(core.add(powers, scale))


Polygamma = primitive(
    "Polygamma", _by_last(_polygamma, lambda order, x: _polygamma(core.add(order, basic.number(1, order)), x)), "Derivative of order a of digamma."
)
Betainc = primitive("Betainc", _by_last(core.incomplete_beta, _beta_density), "Regularised incomplete beta function.")
Svd = primitive(
    "Svd", lambda self, x: core.svd(x, full=self.full_matrices) if self.compute_uv else core.svd(x, full=False)[0],
    "Singular values, and u, v.", full_matrices=False, compute_uv=True,
)  # fmt: skip
Bincount = primitive(
    "Bincount", lambda self, x, size, weights: arrays.unsorted_segment(weights, x, int(static(size, "Bincount", "size")), "sum"),
    "Sum of the weights for each value below size.",
)  # fmt: skip


def _float_status(self, x):
    finite = core.reduce_all(
        core.is_finite(tensor(x, self.name, "float")), axes=list(range(len(x.shape))), keep_dims=False
    )
    return basic.reshape(basic.cast(core.not_(finite), np.float32), (1,))


FloatStatus = primitive("FloatStatus", _float_status, "One number: 0 if all elements are finite, else 1.")


def _status(name):
    def compute(self, *inputs):
        for each in inputs:
            if tuple(tensor(each, name, "float").shape) != (8,):
                raise ValueError(f"For '{name}', the status needs 8 elements, but its shape is {each.shape}.")
        return basic.filled((8,), 0, np.float32)

    return primitive(
        name, compute, "Eight zeros: overflow is found in the gradients here, not by a flag of the device."
    )


NPUAllocFloatStatus, NPUGetFloatStatus, NPUClearFloatStatus = map(
    _status, ("NPUAllocFloatStatus", "NPUGetFloatStatus", "NPUClearFloatStatus")
)


def _histogram(self, x, bounds):
    low, high = arrays.unstack(basic.cast(bounds, np.float32), 0)
    width = core.div(core.sub(high, low), np.float32(self.nbins))
    place = basic.cast(core.floor(core.div(core.sub(basic.cast(x, np.float32), low), width)), np.int32)
    place = basic.reshape(core.clip(place, low=0.0, high=float(self.nbins - 1)), (-1,))
    return arrays.segment(basic.filled(place.shape, 1, np.int32), place, self.nbins, "sum")


HistogramFixedWidth = primitive(
    "HistogramFixedWidth", _histogram, "Counts of nbins equal ranges.", nbins=REQUIRED, dtype="int32"
)


def _matrix_solve(self, a, b):
    return core.matrix_solve(a, b, adjoint=self.adjoint)


MatrixInverse = primitive(
    "MatrixInverse", lambda self, x: core.matrix_inverse(basic.swapped(x, -2, -1) if self.adjoint else tensor(x, "MatrixInverse", "float")),
    "Inverse of matrices, or of the transposed ones.", adjoint=False,
)  # fmt: skip
MatrixSolve = primitive("MatrixSolve", _matrix_solve, "x with a x = b.", adjoint=False)
del _name, _row, _kinds
