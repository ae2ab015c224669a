"""Functions of arithmetic, comparison and reduction."""

import builtins

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations.more_ops import channel_shuffle, mvlgamma, nan_to_num, pdist  # noqa: F401
from mindspore.ops.operations._form import pair, same_type, tensor

_INSTANCES = {
    "abs": "Abs", "absolute": "Abs", "acos": "ACos", "arccos": "ACos", "acosh": "Acosh", "add": "Add", "asin": "Asin",
    "arcsin": "Asin", "asinh": "Asinh", "atan": "Atan", "arctan": "Atan", "atan2": "Atan2", "arctan2": "Atan2", "atanh": "Atanh",
    "bessel_i0": "BesselI0", "bessel_i0e": "BesselI0e", "bessel_i1": "BesselI1", "bessel_i1e": "BesselI1e",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "ceil": "Ceil", "cos": "Cos",
    "cosh": "Cosh", "digamma": "Digamma", "divide": "RealDiv", "equal": "Equal", "eq": "Equal", "erf": "Erf", "erfc": "Erfc",
    "erfinv": "Erfinv", "exp": "Exp", "expm1": "Expm1", "floor": "Floor", "floor_div": "FloorDiv", "floor_divide": "FloorDiv",
    "floor_mod": "FloorMod", "ge": "GreaterEqual", "greater_equal": "GreaterEqual", "ger": "Ger", "greater": "Greater",
    "gt": "Greater", "hypot": "Hypot", "igamma": "Igamma", "igammac": "Igammac", "inv": "Inv", "invert": "Invert",
    "isfinite": "IsFinite", "isinf": "IsInf", "isnan": "IsNan", "le": "LessEqual", "less_equal": "LessEqual", "lerp": "Lerp",
    "less": "Less", "lt": "Less", "lgamma": "Lgamma", "linspace": "LinSpace", "log": "Log", "log1p": "Log1p",
    "log_matrix_determinant": "LogMatrixDeterminant", "logical_and": "LogicalAnd", "logical_not": "LogicalNot",
    "logical_or": "LogicalOr", "logical_xor": "LogicalXor", "matrix_determinant": "MatrixDeterminant", "det": "MatrixDeterminant",
    "matrix_inverse": "MatrixInverse", "inverse": "MatrixInverse", "matrix_solve": "MatrixSolve", "maximum": "Maximum",
    "minimum": "Minimum", "mul": "Mul", "multiply": "Mul", "ne": "NotEqual", "not_equal": "NotEqual", "neg": "Neg",
    "negative": "Neg", "polygamma": "Polygamma", "pow": "Pow", "population_count": "PopulationCount",
    "reciprocal": "Reciprocal", "rint": "Rint", "round": "Round", "rsqrt": "Rsqrt", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "square": "Square", "squared_difference": "SquaredDifference", "sub": "Sub",
    "subtract": "Sub", "tan": "Tan", "trunc": "Trunc", "truncate_div": "TruncateDiv", "truncate_mod": "TruncateMod",
    "xdivy": "Xdivy", "xlogy": "Xlogy", "zeta": "Zeta", "addn": "AddN", "accumulate_n": "AccumulateNV2",
    "div_no_nan": "DivNoNan", "mul_no_nan": "MulNoNan", "left_shift": "LeftShift",
    "right_shift": "RightShift", "gcd": "Gcd", "lcm": "Lcm", "heaviside": "Heaviside", "sinc": "Sinc", "trace": "Trace", "fmax": "Fmax", "fmin": "Fmin",
    "arccosh": "Acosh", "arcsinh": "Asinh", "arctanh": "Atanh", "true_divide": "RealDiv", "floormod": "FloorMod", "floordiv": "FloorDiv",
    "addcdiv": "Addcdiv", "addcmul": "Addcmul",
    # Names of the functional module since 0.5
    "tensor_add": "Add", "tensor_sub": "Sub", "tensor_mul": "Mul", "tensor_div": "RealDiv", "tensor_floordiv": "FloorDiv",
    "tensor_mod": "FloorMod", "tensor_pow": "Pow", "pows": "Pow", "tensor_exp": "Exp", "tensor_expm1": "Expm1",
    "tensor_lt": "Less", "tensor_le": "LessEqual", "tensor_gt": "Greater", "tensor_ge": "GreaterEqual",
}  # fmt: skip
for _name, _primitive in _INSTANCES.items():
    globals()[_name] = getattr(P, _primitive)()
tensor_sum = reduce_sum = P.ReduceSum()
reduce_mean, reduce_max, reduce_min, reduce_prod = P.ReduceMean(), P.ReduceMax(), P.ReduceMin(), P.ReduceProd()
reduce_all, reduce_any = P.ReduceAll(), P.ReduceAny()


def div(x, y, rounding_mode=None):
    """x / y, rounded by "floor" or "trunc"."""
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"For ops.div, rounding_mode must be None, 'floor' or 'trunc', but got {rounding_mode}.")
    x, y = pair(x, y, "Div")
    if rounding_mode == "floor":
        return core.floor_div(x, y)
    if rounding_mode == "trunc":
        return P.TruncateDiv()(x, y)
    if not basic.is_float(x):
        x, y = (core.cast(each, dtype=np.dtype(np.float32)) for each in (x, y))
    return core.div(x, y)


def matmul(x1, x2, dtype=None):
    """Product of matrices, vectors and stacks of matrices by NumPy's rules."""
    made = basic.matmul(*pair(x1, x2, "MatMul"))
    return made if dtype is None else basic.cast(made, dtype)


dot_matrix = matmul


def bmm(input_x, mat2):
    """Product of stacks of matrices."""
    return P.BatchMatMul()(input_x, mat2)


def mm(input, mat2):  # noqa: A002
    """Product of two matrices."""
    return P.MatMul()(input, mat2)


def mv(mat, vec):
    """Matrix times vector."""
    return basic.matmul(mat, vec)


def outer(x1, x2):
    """Outer product of two vectors."""
    return P.Ger()(*pair(x1, x2, "Outer"))


def _combined(x, product, beta, alpha):
    return core.add(core.mul(x, same_type(beta, x)), core.mul(product, same_type(alpha, x)))


def addmm(x, mat1, mat2, *, beta=1, alpha=1):
    """beta * x + alpha * (mat1 @ mat2)"""
    return _combined(x, basic.matmul(mat1, mat2), beta, alpha)


def baddbmm(x, batch1, batch2, beta=1, alpha=1):
    """beta * x + alpha * (batch1 @ batch2)"""
    return _combined(x, basic.matmul(batch1, batch2), beta, alpha)


def addmv(x, mat, vec, beta=1, alpha=1):
    """beta * x + alpha * (mat @ vec)"""
    return _combined(x, basic.matmul(mat, vec), beta, alpha)


def addr(x, vec1, vec2, beta=1, alpha=1):
    """beta * x + alpha * outer product"""
    return _combined(x, core.mul(basic.expand(vec1, 1), basic.expand(vec2, 0)), beta, alpha)


def addbmm(x, batch1, batch2, *, beta=1, alpha=1):
    """beta * x + alpha * sum of products of matrices."""
    return _combined(x, core.reduce_sum(core.matmul(batch1, batch2), axes=[0], keep_dims=False), beta, alpha)


def dot(x1, x2):
    """Product over the last axis of x1 and the last but one of x2."""
    if len(x2.shape) > 2 or len(x1.shape) > 2:
        return tensor_dot(x1, x2, ((len(x1.shape) - 1,), (builtins.max(len(x2.shape) - 2, 0),)))
    return matmul(x1, x2)


def tensor_dot(x1, x2, axes):
    """Product over some axes of both."""
    if isinstance(axes, int):
        axes = (tuple(range(len(x1.shape) - axes, len(x1.shape))), tuple(range(axes)))
    first, second = ([each] if isinstance(each, int) else list(each) for each in axes)
    first, second = _counted(first, x1), _counted(second, x2)
    keep1, keep2 = ([a for a in range(len(x.shape)) if a not in gone] for x, gone in ((x1, first), (x2, second)))
    count = int(np.prod([x1.shape[a] for a in first]))
    a = basic.reshape(core.transpose(x1, permutation=keep1 + first), (-1, count))
    b = basic.reshape(core.transpose(x2, permutation=second + keep2), (count, -1))
    shape = tuple(x1.shape[i] for i in keep1) + tuple(x2.shape[i] for i in keep2)
    return basic.reshape(core.matmul(a, b), shape)


tensordot = tensor_dot


def _counted(axes, x):
    return [each % len(x.shape) for each in axes]


def _reduced(function):
    def reduce(x, axis=(), keep_dims=False, *, keepdims=None):
        return function(tensor(x, function.__name__), () if axis is None else axis, keep_dims if keepdims is None else keepdims)

    reduce.__doc__ = f"{function.__name__} along the axes, None for all."
    return reduce


amax, amin = _reduced(reductions.maximum), _reduced(reductions.minimum)
mean, prod, sum = _reduced(reductions.mean), _reduced(reductions.product), _reduced(reductions.total)  # noqa: A001
all, any = _reduced(reductions.all_of), _reduced(reductions.any_of)  # noqa: A001
logsumexp = _reduced(reductions.log_sum_exp)


def std(input_x, axis=(), unbiased=True, keep_dims=False):
    """(standard deviation, mean); unbiased takes one off the count."""
    return P.ReduceStd(axis, unbiased, keep_dims)(input_x)


def var(input, axis=None, ddof=0, keepdims=False):  # noqa: A002
    """Variance; ddof is taken off the count."""
    return reductions.variance(input, () if axis is None else axis, int(ddof), keepdims)


def argmax(x, axis=-1, output_type=mstype.int32):
    """Places of the largest along an axis; of all elements where that is None."""
    return reductions.arg("arg_max", x, axis, basic.as_np(output_type))


def argmin(x, axis=-1):
    """Places of the smallest along an axis; of all elements where that is None."""
    return reductions.arg("arg_min", x, axis, np.int32)


def max(x, axis=0, keep_dims=False):  # noqa: A001
    """(index, value) of the largest along the axis."""
    return reductions.arg_with_value("arg_max", x, axis, keep_dims)


def min(x, axis=0, keep_dims=False):  # noqa: A001
    """(index, value) of the smallest along the axis."""
    return reductions.arg_with_value("arg_min", x, axis, keep_dims)


def cumsum(x, axis, dtype=None):
    """Running sum."""
    x = x if dtype is None else basic.cast(x, dtype)
    return reductions.cumsum(x, axis)


def cumprod(input, dim, dtype=None):  # noqa: A002
    """Running product."""
    x = input if dtype is None else basic.cast(input, dtype)
    return reductions.cumprod(x, dim)


def cummax(x, axis):
    """Running maximum and its places."""
    return P.Cummax(axis)(x)


def cummin(x, axis):
    """Running minimum and its places."""
    return P.Cummin(axis)(x)


def norm(input_x, axis=(), p=2, keep_dims=False, epsilon=1e-12):
    """(sum |x|^p)^(1/p) along the axes."""
    return reductions.norm(input_x, axis, p, keep_dims, epsilon)


def median(x, global_median=False, axis=0, keep_dims=False):
    """Lower median and its index."""
    return P.Median(global_median, axis, keep_dims)(x)


def count_nonzero(x, axis=(), keep_dims=False, dtype=mstype.int32):
    """How many elements are not 0."""
    return reductions.count_nonzero(x, axis, keep_dims, basic.as_np(dtype))


def isclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True where |x1 - x2| <= atol + rtol * |x2|."""
    return P.IsClose(rtol, atol, equal_nan)(x1, x2)


def approximate_equal(x, y, tolerance=1e-5):
    """True where |x - y| < tolerance."""
    return P.ApproximateEqual(tolerance)(x, y)


def isreal(x):
    """True everywhere: tensors hold real numbers."""
    return basic.filled(x.shape, True, np.bool_)


def clip_by_norm(x, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """x, scaled down to that norm if it is larger."""
    size = reductions.norm(x, (), norm_type)
    scale = core.minimum(core.div(basic.number(max_norm, x), core.add(size, basic.number(1e-6, x))), basic.number(1, x))
    return core.mul(x, scale)


def _simple(doc):
    def mark(function):
        function.__doc__ = doc
        return function

    return mark


@_simple("Logarithm to the base 2.")
def log2(x):
    return basic.log_base(x, 2)


@_simple("Logarithm to the base 10.")
def log10(x):
    return basic.log_base(x, 10)


@_simple("log(exp(x1) + exp(x2))")
def logaddexp(x1, x2):
    return basic.log_add_exp(*pair(x1, x2, "LogAddExp"))


@_simple("log2(2^x1 + 2^x2)")
def logaddexp2(x1, x2):
    return basic.log_add_exp(*pair(x1, x2, "LogAddExp2"), base=2)


@_simple("Degrees as radians.")
def deg2rad(x):
    return core.mul(x, basic.number(np.pi / 180, x))


@_simple("Radians as degrees.")
def rad2deg(x):
    return core.mul(x, basic.number(180 / np.pi, x))


@_simple("x without its whole part.")
def frac(x):
    return core.sub(x, P.Trunc()(x))


@_simple("x itself.")
def positive(x):
    return core.identity(x)


@_simple("True below 0.")
def signbit(x):
    return core.less(x, basic.number(0, x))


@_simple("x * 2^other")
def ldexp(x, other):
    return core.mul(x, core.pow(basic.number(2, x), same_type(other, x)))


@_simple("(x1 + x2) modulo: remainder of a division that floors.")
def remainder(x, y):
    return P.FloorMod()(x, y)


@_simple("Remainder with the sign of x.")
def fmod(x, y):
    return core.truncate_mod(*pair(x, y, "Mod"))


def cross(input, other, dim=None):  # noqa: A002
    """Vector product."""
    return P.Cross(-65530 if dim is None else dim)(input, other)


def cholesky(input_x, upper=False):
    """Triangular root of positive definite matrices."""
    return P.Cholesky(upper)(input_x)


def svd(a, full_matrices=False, compute_uv=True):
    """Singular values, u and v."""
    return P.Svd(full_matrices, compute_uv)(a)


def bincount(x, weights=None, minlength=0):
    """How often each number is there."""
    size = builtins.max(int(x.asnumpy().max()) + 1 if x.size else 0, minlength)
    weights = basic.filled(x.shape, 1, np.int32) if weights is None else weights
    return arrays.segment(weights, x, size, "sum")


def trapz(y, x=None, *, dx=1.0, dim=-1):
    """Integral by trapezoids."""
    size = y.shape[dim]
    both = core.add(basic.part(y, dim, 1, size), basic.part(y, dim, 0, size - 1))
    width = basic.number(dx, y)
    if isinstance(x, Tensor):
        width = core.sub(basic.part(x, -1, 1, x.shape[-1]), basic.part(x, -1, 0, x.shape[-1] - 1))
    total = core.reduce_sum(core.mul(both, width), axes=[dim % len(y.shape)], keep_dims=False)
    return core.mul(total, basic.number(0.5, y))


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle along an axis."""
    from cairn.ms.numerics import losses

    x1, x2 = pair(x1, x2, "CosineSimilarity")
    return losses.cosine_similarity(x1, x2, dim % len(x1.shape), eps)


def cdist(x, y, p=2.0):
    """Distances between rows."""
    return P.Cdist(p)(x, y)


def exp2(x):
    """2 to the power x."""
    return core.exp(core.mul(x, basic.number(np.log(2), x)))


def clamp(x, min=None, max=None):  # noqa: A002
    """x inside of bounds."""
    x = x if min is None else maximum(x, min)  # noqa: F821
    return x if max is None else minimum(x, max)  # noqa: F821


clip = clamp


def logit(x, eps=None):
    """log(x / (1 - x))"""
    return P.Logit(-1.0 if eps is None else eps)(x)


def std_mean(x, axis=None, ddof=0, keepdims=False):
    """Standard deviation and mean."""
    return reductions.std(x, () if axis is None else axis, int(ddof), keepdims), mean(x, axis, keepdims)


def var_mean(x, axis=None, ddof=0, keepdims=False):
    """Variance and mean."""
    return var(x, axis, ddof, keepdims), mean(x, axis, keepdims)


def dist(x, y, p=2):
    """Norm of x - y."""
    return reductions.norm(core.sub(x, y), (), p)


def diff(x, n=1, axis=-1):
    """Differences of neighbours."""
    for _ in range(n):
        size = x.shape[axis]
        x = core.sub(basic.part(x, axis, 1, size), basic.part(x, axis, 0, size - 1))
    return x


def logcumsumexp(x, axis):
    """Running log(sum(exp(x)))."""
    return P.CumulativeLogsumexp()(x, axis)


del _name, _primitive
